//! PyTorch's allocator under each of its settings.

use vramfit_vgpu_schema::Report;

use super::environments::{self, Environment};
use super::machine::{self, Machine, assert_as_expected, laptop};

#[track_caller]
fn checked(environment: &Environment, setting: &str, part: &str, least: usize) -> Report {
    machine::checked(environment, "allocator", setting, part, least)
}

#[test]
fn segments_of_the_default_kind_are_charged_as_they_are_made_and_freed() {
    let report = checked(&environments::main(), "backend:native", "native", 14);
    assert_eq!(report.estimates, Vec::<String>::new());
}

#[test]
fn on_each_pytorch_expandable_segments_are_charged_by_the_page() {
    for environment in environments::all() {
        let report = checked(&environment, "expandable_segments:True", "expandable", 30);
        assert_eq!(report.estimates, Vec::<String>::new());
    }
}

#[test]
fn on_each_pytorch_cuda_malloc_async_is_charged_by_an_estimate_that_the_report_names() {
    for environment in environments::all() {
        let report = checked(&environment, "backend:cudaMallocAsync", "pool", 25);
        assert!(report.estimates.iter().any(|it| it.contains("32 MiB")), "{:?}", report.estimates);
    }
}

#[test]
fn large_blocks_are_not_split_where_the_program_says_so() {
    checked(&environments::main(), "max_split_size_mb:64", "split", 7);
}

#[test]
fn sizes_are_rounded_to_parts_of_a_power_of_two_where_the_program_says_so() {
    checked(&environments::main(), "roundup_power2_divisions:4", "round_up", 4);
}

#[test]
fn unused_blocks_are_collected_above_a_threshold_and_a_fraction_is_a_limit() {
    checked(&environments::main(), "garbage_collection_threshold:0.5", "collected", 5);
}

#[test]
fn a_program_can_have_pools_of_its_own() {
    checked(&environments::main(), "backend:native", "pools", 8);
}

#[test]
fn a_snapshot_with_history_is_read_by_pytorchs_own_tools() {
    checked(&environments::main(), "backend:native", "history", 7);
}

#[test]
fn the_drivers_memory_calls_keep_to_its_manual() {
    let (output, report) = Machine::new(vec![laptop()]).run("driver_memory", &[]);
    assert_as_expected(&output, 66);
    assert_eq!(report.not_implemented, Vec::<String>::new());
}
