//! CUDA graphs: captured, replayed, and what is forbidden meanwhile.

use vramfit_vgpu_schema::Report;

use super::attempts;
use super::environments::{self, Environment};
use super::machine;

#[track_caller]
fn checked(environment: &Environment, setting: &str, part: &str, least: usize) -> Report {
    machine::checked(environment, "graphs", setting, part, least)
}

#[test]
fn a_capture_does_nothing_and_a_replay_does_it() {
    checked(&environments::main(), "backend:native", "values", 3);
}

#[test]
fn on_each_pytorch_a_whole_training_step_is_captured_and_its_launches_count_at_each_replay() {
    for environment in environments::all() {
        let report = checked(&environment, "backend:native", "training", 3);
        // Three steps, one capture that counts for nothing, ten replays: of each product of a linear
        // layer thirteen, and those of the graphed callables (three to warm up, one replay).
        let products: u64 = report.gemms.iter().map(|it| it.count).sum();
        assert!(products >= 13 * 5, "{}: {:?}", environment.name, report.gemms);
    }
}

#[test]
fn a_training_step_is_captured_with_expandable_segments() {
    let report = checked(&environments::main(), "expandable_segments:True", "training", 3);
    assert_eq!(report.estimates, Vec::<String>::new());
}

#[test]
fn a_training_step_is_captured_with_cuda_malloc_async_whose_calls_become_nodes() {
    let report = checked(&environments::main(), "backend:cudaMallocAsync", "training", 4);
    assert!(report.estimates.iter().any(|it| it.contains("graphs that allocate")), "{report:?}");
}

#[test]
fn calls_of_the_libraries_are_captured_and_count_at_each_replay() {
    let report = checked(&environments::main(), "backend:native", "libraries", 3);
    // Done once before the capture, which counts for nothing, and at both replays.
    for call in ["cufftXtExec", "cusolverDnXpotrf", "cusparseSpMM"] {
        assert_eq!(attempts::calls(&report, call), 3, "{call} in {:?}", report.kernels);
    }
    // And once to make the tensors.
    assert_eq!(attempts::calls(&report, "cublasSgetrfBatched"), 4, "{:?}", report.kernels);
}

#[test]
fn streams_join_captures_and_graphs_share_pools() {
    checked(&environments::main(), "backend:native", "other", 7);
}

#[test]
fn tensors_of_a_failed_capture_can_be_freed() {
    checked(&environments::main(), "backend:cudaMallocAsync", "failed", 2);
}

#[test]
fn what_disturbs_a_capture_is_refused_with_the_runtimes_own_errors() {
    checked(&environments::main(), "backend:native", "forbidden", 53);
}
