//! The worker in Python, given the originals of built-in models as a user's functions, beside the
//! Rust worker: the same steps take the same memory.

use std::path::Path;

use vramfit::measurement::{Memory, Point, Ran};
use vramfit::units::Bytes;
use vramfit::workload::{Checkpointing, Optimizer, OptimizerImplementation, Precision, Workload};

use crate::machine::Machine;
use crate::worker::{Worker, point, workload};

/// Both workers on one virtual GPU each.
struct Pair {
    rust: Worker,
    python: Worker,
    workload: Workload,
}

impl Pair {
    fn new(machines: &[Machine; 2], function: &str, model: &str, sequence: u32) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/parity/functions.py");
        Self {
            rust: Worker::on(&machines[0]),
            python: Worker::of_function(&machines[1], &file, function),
            workload: workload(model, sequence),
        }
    }

    #[track_caller]
    fn compare(&mut self, point: Point) {
        let Self { rust, python, workload } = self;
        let (expected, found): (Ran, Ran) =
            (rust.ran(workload, point), python.ran(workload, point));
        let what = format!("{} {point:?} {workload:?}", workload.subject.name());
        for (name, part) in PARTS {
            let (expected, found) = (part(&expected.memory).get(), part(&found.memory).get());
            // Which block of a segment is taken may differ, by the alignment of a tensor or two.
            let tolerance = (expected / 100).max(2 << 20);
            assert!(expected.abs_diff(found) <= tolerance, "{name}: {found}, {expected}: {what}");
        }
        assert_eq!(found.memory.context, Bytes::ZERO);
    }

    #[track_caller]
    fn compare_blocks(&mut self, point: Point) {
        let Self { rust, python, workload } = self;
        let expected = rust.survey(workload, point).unwrap();
        let found = python.survey(workload, point).unwrap();
        assert_eq!(found.len(), expected.len());
        for (index, (expected, found)) in expected.iter().zip(&found).enumerate() {
            for (expected, found) in
                [(expected.saved, found.saved), (expected.output, found.output)]
            {
                let (expected, found) = (expected.get(), found.get());
                let tolerance = (expected / 50).max(2 << 20);
                let what = format!("block {index}: {found}, {expected}");
                assert!(expected.abs_diff(found) <= tolerance, "{what}");
            }
            assert!(found.seconds > 0.0);
        }
    }
}

/// A part of the memory by its name.
type Part = (&'static str, fn(&Memory) -> Bytes);

const PARTS: [Part; 5] = [
    ("weights", |memory| memory.weights),
    ("gradients", |memory| memory.gradients),
    ("optimizer state", |memory| memory.optimizer_state),
    ("activations", |memory| memory.activations),
    ("allocated peak", |memory| memory.allocated_peak),
];

fn machines() -> [Machine; 2] {
    [Machine::new(Bytes::gib(24)), Machine::new(Bytes::gib(24))]
}

#[test]
fn gpt2_of_transformers_takes_what_the_built_in_one_takes() {
    let machines = machines();
    let mut pair = Pair::new(&machines, "gpt2", "gpt2-small", 512);
    for precision in Precision::ALL {
        for checkpointing in [Checkpointing::None, Checkpointing::Full, Checkpointing::Every(3)] {
            pair.compare(point(precision, checkpointing, 4, 1));
            pair.compare(point(precision, checkpointing, 2, 2));
        }
    }
    pair.compare(Point { remainder: Some(1), ..point(Precision::Fp32, Checkpointing::None, 3, 2) });
    let some = Checkpointing::Blocks("0-2+7".parse().unwrap());
    for precision in [Precision::Fp32, Precision::Bf16] {
        pair.compare_blocks(point(precision, Checkpointing::Full, 4, 1));
        pair.compare(point(precision, some, 4, 1));
    }
}

#[test]
fn resnet50_of_torchvision_takes_what_the_built_in_one_takes() {
    let machines = machines();
    let mut pair = Pair::new(&machines, "resnet50", "resnet50", 0);
    for precision in [Precision::Fp32, Precision::Bf16] {
        for checkpointing in [Checkpointing::None, Checkpointing::Full, Checkpointing::Every(2)] {
            pair.compare(point(precision, checkpointing, 8, 2));
        }
        pair.compare_blocks(point(precision, Checkpointing::Full, 8, 1));
        pair.compare(point(precision, Checkpointing::Blocks("0+5".parse().unwrap()), 8, 1));
    }
}

#[test]
fn optimizers_and_clipping_take_what_the_rust_workers_take() {
    let machines = machines();
    let mut pair = Pair::new(&machines, "gpt2", "gpt2-small", 64);
    let implementations = [
        OptimizerImplementation::Foreach,
        OptimizerImplementation::Fused,
        OptimizerImplementation::ForLoop,
    ];
    for optimizer in Optimizer::ALL {
        for implementation in implementations {
            pair.workload.optimizer = Some(optimizer);
            pair.workload.optimizer_implementation = implementation;
            pair.compare(point(Precision::Fp16, Checkpointing::None, 1, 1));
        }
    }
    pair.workload.gradient_clipping = Some(1.0);
    pair.compare(point(Precision::Fp32, Checkpointing::None, 1, 1));
    pair.compare(point(Precision::Fp16, Checkpointing::None, 1, 1));
}
