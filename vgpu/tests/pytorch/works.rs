//! What launches ask of the device, against what the tensors' sizes say.

use std::process::Stdio;

use vramfit_vgpu_cost::{Direction, StreamingClass, Work};
use vramfit_vgpu_schema::{PricedWork, Report, folder};

use super::machine::{Machine, laptop};

/// Runs program `name` with all of its works in the report.
#[track_caller]
fn run(name: &str, arguments: &[&str]) -> (String, Report) {
    let machine = Machine::new(vec![laptop()]);
    let child = machine
        .program(name)
        .args(arguments)
        .env(folder::ALL_WORK_VARIABLE, "1")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    machine.finish(name, child)
}

/// Bytes of a kernel that is bound by memory, or operations of another.
fn figure(work: &Work) -> (&'static str, u64) {
    match *work {
        Work::Product(it) => ("operations", 2 * it.m * it.n * it.k * it.batch),
        Work::Convolution(it) => {
            let taps = it.inputs / it.groups * it.filter_positions;
            ("operations", 2 * it.batch * it.outputs * it.output_positions * taps)
        }
        Work::Attention(it) => {
            let products = if it.direction == Direction::Forward { 2 } else { 5 };
            let whole = 2 * products * it.heads * it.queries * it.keys * it.head_size;
            ("operations", if it.causal { whole / 2 } else { whole })
        }
        Work::Streaming(it) => ("bytes", it.bytes),
        Work::Copy(it) => ("bytes", it.bytes),
        Work::Collective(_) | Work::Unknown => ("nothing", 0),
    }
}

fn is_guess(work: &PricedWork) -> bool {
    match work.work {
        Work::Streaming(it) => it.class == StreamingClass::Unrecognised,
        Work::Unknown => true,
        _ => false,
    }
}

#[test]
fn launches_ask_for_what_the_tensors_sizes_say() {
    let (output, report) = run("works", &[]);
    let mut wrong = Vec::new();
    for line in output.lines() {
        let fields: Vec<&str> = line.split('\t').collect();
        let [label, kernel, unit, expected] = fields[..] else { panic!("{line}") };
        let of_kernel = || report.work.iter().filter(|it| it.name.contains(kernel));
        let expected = (unit, expected.parse::<u64>().unwrap());
        if !of_kernel().any(|it| figure(&it.work) == (expected.0, expected.1)) {
            let found: Vec<_> = of_kernel().map(|it| figure(&it.work).1).collect();
            wrong.push(format!("{label}: {kernel} should ask for {expected:?}, not {found:?}"));
        }
    }
    let largest = report.work.iter().map(|it| figure(&it.work).1).max();
    assert!(largest < Some(1 << 32), "a size was misread: {largest:?}");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(output.lines().count() > 150, "only {} checks ran", output.lines().count());
}
