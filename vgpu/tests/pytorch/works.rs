//! What launches ask of the device, against what the tensors' sizes say.

use vramfit_vgpu_cost::{Direction, StreamingClass, Work};
use vramfit_vgpu_schema::{PricedWork, Report, folder};

use super::machine::Machine;
use super::shadow::{helped, roomy};

/// Runs program `name`, with the help of the Python side, and with all of its works in the report.
#[track_caller]
fn run(name: &str, arguments: &[&str]) -> (String, Report) {
    let machine = Machine::new(vec![roomy()]);
    let mut program = helped(&machine, name);
    let child = program.args(arguments).env(folder::ALL_WORK_VARIABLE, "1").spawn().unwrap();
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

#[test]
fn hardly_anything_of_a_training_step_rests_on_a_guess() {
    for model in ["resnet50", "vit", "gpt2", "llama", "lstm", "compiled"] {
        let (_, report) = run("whole_steps", &[model]);
        let sum = |works: &mut dyn Iterator<Item = &PricedWork>| {
            works.fold((0, 0.0), |(count, seconds), it| (count + it.count, seconds + it.seconds))
        };
        let (count, seconds) = sum(&mut report.work.iter());
        let (guessed, guessed_seconds) = sum(&mut report.work.iter().filter(|it| is_guess(it)));
        let launches = 100.0 * guessed as f64 / count as f64;
        let time = 100.0 * guessed_seconds / seconds;
        println!("{model}: {launches:.2} % of {count} launches, {time:.2} % of their time");
        let names: Vec<_> =
            report.work.iter().filter(|it| is_guess(it)).map(|it| &it.name).collect();
        assert!(time < 3.0, "{model}: {time:.1} % of the time is guessed: {names:?}");
    }
}
