//! Points on a virtual GPU: what must hold whatever the numbers are.

use vramfit::measurement::Outcome;
use vramfit::units::Bytes;
use vramfit::workload::{Blocks, Checkpointing, Optimizer, OptimizerImplementation, Precision};

use crate::machine::Machine;
use crate::worker::{Worker, models, point, workload};

#[test]
fn every_profile_states_its_true_parameter_count_and_trains() {
    let machine = Machine::new(Bytes::gib(80));
    let mut worker = Worker::on(&machine);
    assert_eq!(worker.hello.device, "NVIDIA GeForce RTX 3060 (virtual)");
    for model in models() {
        let workload = workload(&model, 64);
        // The worker refuses a profile whose count is wrong.
        let memory =
            worker.ran(&workload, point(Precision::Bf16, Checkpointing::None, 2, 1)).memory;
        let parameters = Bytes(4 * workload.subject.built_in().unwrap().parameters);
        assert!(memory.weights >= parameters, "{model}");
        // The last bias of the physics-informed network moves no derivative and so gets no gradient.
        let trained = parameters.saturating_sub(Bytes(4));
        assert!(memory.gradients >= trained, "{model}");
        assert!(memory.optimizer_state >= trained + trained, "{model}");
        assert!(memory.activations > Bytes::ZERO, "{model}");
        assert!(memory.reserved_peak >= memory.allocated_peak, "{model}");
    }
    assert!(worker.end().success());
}

#[test]
fn a_point_measures_the_same_whatever_was_measured_before() {
    let machine = Machine::new(Bytes::gib(24));
    let mut worker = Worker::on(&machine);
    let (gpt2, resnet) = (workload("gpt2-small", 256), workload("resnet50", 0));
    let point = point(Precision::Fp32, Checkpointing::None, 4, 1);
    let first = worker.ran(&gpt2, point).memory;
    worker.ran(&resnet, point);
    assert_eq!(worker.ran(&gpt2, point).memory, first);
}

#[test]
fn running_out_of_memory_is_an_answer_in_pytorchs_words_and_the_worker_goes_on() {
    let machine = Machine::new(Bytes::gib(4));
    let mut worker = Worker::on(&machine);
    for model in ["gpt2-small", "resnet50"] {
        let workload = workload(model, 1024);
        let setting = |micro_batch| point(Precision::Bf16, Checkpointing::Full, micro_batch, 2);
        let Outcome::OutOfMemory { message } = worker.measure(&workload, setting(512)) else {
            panic!("`{model}` ran");
        };
        assert!(message.starts_with("CUDA out of memory. Tried to allocate"), "{message}");
        worker.ran(&workload, setting(1));
    }
}

#[test]
fn each_knob_changes_what_it_should() {
    let machine = Machine::new(Bytes::gib(80));
    let mut worker = Worker::on(&machine);
    let mut workload = workload("gpt2-small", 512);
    let plain = point(Precision::Fp32, Checkpointing::None, 4, 1);
    let memory = worker.ran(&workload, plain).memory;

    let mut setting = |precision, checkpointing, accumulation| {
        worker.ran(&workload, point(precision, checkpointing, 4, accumulation)).memory
    };
    let full = setting(Precision::Fp32, Checkpointing::Full, 1);
    let half = setting(Precision::Fp32, Checkpointing::Every(2), 1);
    assert!(full.activations.get() * 4 < memory.activations.get());
    assert!(full.activations < half.activations && half.activations < memory.activations);
    assert!(setting(Precision::Bf16, Checkpointing::None, 1).activations < memory.activations);
    let accumulated = setting(Precision::Fp32, Checkpointing::None, 2);
    // Gradients are kept through the second micro-step.
    let kept = accumulated.allocated_peak.saturating_sub(memory.allocated_peak);
    assert!(kept.get() * 10 > memory.gradients.get() * 9, "{kept} of {}", memory.gradients);
    // From the third on nothing is new.
    assert_eq!(setting(Precision::Fp32, Checkpointing::None, 16), accumulated);

    workload.optimizer = Some(Optimizer::Sgd);
    assert_eq!(worker.ran(&workload, plain).memory.optimizer_state, Bytes::ZERO);
    workload.optimizer = Some(Optimizer::SgdMomentum);
    let momentum = worker.ran(&workload, plain).memory.optimizer_state;
    assert!(momentum.get() * 3 < memory.optimizer_state.get() * 2);
}

#[test]
fn a_fused_step_needs_no_temporary_of_the_size_of_the_model() {
    let machine = Machine::new(Bytes::gib(24));
    let mut worker = Worker::on(&machine);
    let mut workload = workload("mlp", 0);
    let point = point(Precision::Fp32, Checkpointing::None, 1, 1);
    let foreach = worker.ran(&workload, point).memory.allocated_peak;
    workload.optimizer_implementation = OptimizerImplementation::Fused;
    let fused = worker.ran(&workload, point).memory.allocated_peak;
    let parameters = 4 * workload.subject.built_in().unwrap().parameters;
    let saved = foreach.saturating_sub(fused).get();
    assert!(saved.abs_diff(parameters) < parameters / 20, "{saved} for {parameters}");
}

#[test]
fn what_blocks_save_is_what_checkpointing_them_saves() {
    let machine = Machine::new(Bytes::gib(80));
    let mut worker = Worker::on(&machine);
    for (model, sequence, count) in [("gpt2-small", 512, 12), ("resnet50", 0, 16), ("pinn", 0, 6)] {
        let workload = workload(model, sequence);
        for precision in [Precision::Fp32, Precision::Bf16] {
            let full = point(precision, Checkpointing::Full, 4, 1);
            let blocks = worker.survey(&workload, full).unwrap();
            assert_eq!(blocks.len(), count, "{model}");
            assert!(blocks.iter().all(|block| block.seconds > 0.0), "{model} {blocks:?}");
            let mut activations = |checkpointing| {
                let point = point(precision, checkpointing, 4, 1);
                worker.ran(&workload, point).memory.activations.get()
            };
            let none = activations(Checkpointing::None);
            if model == "pinn" {
                // Its loss holds derivatives of the blocks, which are more than the blocks themselves.
                continue;
            }
            let some = Blocks::new([0, 1, 4]).unwrap();
            let chosen = |index: u32| some.contains(index);
            let saved = |covered: &dyn Fn(u32) -> bool| -> u64 {
                let blocks = (0..).zip(&blocks).filter(|(index, _)| covered(*index));
                blocks.map(|(_, block)| block.saved.get()).sum()
            };
            for (checkpointing, expected) in [
                (Checkpointing::Full, saved(&|_| true)),
                (Checkpointing::Blocks(some), saved(&chosen)),
            ] {
                let found = none - activations(checkpointing);
                let what = format!("{model} {precision} {checkpointing}: {found} for {expected}");
                assert!(found.abs_diff(expected) < expected / 20, "{what}");
            }
        }
    }
}

#[test]
fn early_blocks_of_a_residual_network_save_more_than_late_ones() {
    let machine = Machine::new(Bytes::gib(24));
    let full = point(Precision::Fp32, Checkpointing::Full, 8, 1);
    let blocks = Worker::on(&machine).survey(&workload("resnet50", 0), full).unwrap();
    assert!(blocks[0].saved.get() > 4 * blocks[15].saved.get(), "{blocks:?}");
    assert!(blocks[1].output.get() > 4 * blocks[15].output.get(), "{blocks:?}");
}

#[test]
fn a_survey_takes_no_more_memory_than_full_checkpointing_does() {
    // Without checkpointing this takes more than 8 GiB.
    let machine = Machine::new(Bytes::gib(6));
    let mut worker = Worker::on(&machine);
    let workload = workload("gpt2-small", 1024);
    let plain = worker.measure(&workload, point(Precision::Fp32, Checkpointing::None, 4, 1));
    assert!(matches!(plain, Outcome::OutOfMemory { .. }), "{plain:?}");
    let full = point(Precision::Fp32, Checkpointing::Full, 4, 1);
    worker.ran(&workload, full);
    assert_eq!(worker.survey(&workload, full).unwrap().len(), 12);
}

#[test]
fn blocks_that_a_model_does_not_have_are_refused() {
    let machine = Machine::new(Bytes::gib(24));
    let mut worker = Worker::on(&machine);
    let blocks = Checkpointing::Blocks("0+12".parse().unwrap());
    let outcome = worker.measure(&workload("gpt2-small", 64), point(Precision::Fp32, blocks, 1, 1));
    let Outcome::Failed { message, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(message, "`blocks-0+12` names block 12, and the model has 12, from 0");
}
