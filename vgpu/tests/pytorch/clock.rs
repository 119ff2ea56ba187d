//! Virtual time, as PyTorch's events tell it and as the report has it.

use std::collections::BTreeMap;

use vramfit_vgpu_cost::{Copy, Route, Speed, Work, price};
use vramfit_vgpu_schema::Time;

use super::machine::{MIB, Machine, assert_as_expected, laptop};

#[track_caller]
fn checked(part: &str, least: usize) {
    let (output, _) = Machine::new(vec![laptop()]).run("clock", &[part]);
    assert_as_expected(&output, least);
}

#[track_caller]
fn assert_close(a: f64, b: f64, what: &str) {
    assert!((a - b).abs() <= 1e-3 * b, "{what}: {a} and {b}");
}

#[test]
fn events_tell_what_the_cost_model_says() {
    let (output, report) = Machine::new(vec![laptop()]).run("clock", &["times"]);
    let told: BTreeMap<&str, f64> = output
        .lines()
        .filter_map(|line| line.split_once('\t'))
        .map(|(name, milliseconds)| (name, milliseconds.parse().unwrap()))
        .collect();
    let copies = [
        ("pinned", Route::Pinned),
        ("pageable", Route::Pageable),
        ("device", Route::Device),
        ("fill", Route::Fill),
    ];
    for (name, route) in copies {
        let work = Work::Copy(Copy { route, bytes: 256 * MIB });
        assert_close(told[name], 1e3 * price(&work, &Speed::small()).seconds, name);
    }
    let product = report.work.iter().find(|it| it.name.starts_with("cublas")).unwrap();
    let each = price(&product.work, &Speed::small()).seconds;
    assert_close(told["product"], 1e3 * each, "product");
    assert_close(product.seconds, each * product.count as f64, "products in the report");
}

#[test]
fn the_report_says_where_the_time_went_and_what_cost_it() {
    let (_, report) = Machine::new(vec![laptop()]).run("clock", &["times"]);
    let [Time { total, busy, compute, memory, launch, transfer }] = report.time[..] else {
        panic!("{:?}", report.time);
    };
    assert_close(busy, compute + memory + launch + transfer, "one stream");
    assert!(total >= busy && transfer > memory && memory > 0.0, "{:?}", report.time);
    let listed: f64 = report.work.iter().map(|it| it.seconds).sum();
    assert_close(listed, busy, "all works");
    assert!(report.work.is_sorted_by(|a, b| a.seconds >= b.seconds));
    assert!(report.work.iter().all(|it| !it.name.starts_with("_Z")), "{:?}", report.work);
}

#[test]
fn streams_run_side_by_side_in_the_order_that_events_make_and_share_the_device() {
    checked("streams", 3);
}

#[test]
fn the_host_takes_its_time_and_graphs_spare_it() {
    checked("host", 8);
}

#[test]
fn the_host_waits_for_the_device_where_it_synchronises() {
    checked("waiting", 5);
}

#[test]
fn what_others_take_of_a_busy_machine_is_not_dispatch() {
    checked("starved", 2);
}
