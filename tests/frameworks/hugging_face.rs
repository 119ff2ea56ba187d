use crate::is_thorough;
use crate::program::{MIB, Program, Trained};

/// The `Trainer`; it looks whether the loss is finite before it logs it.
fn trainer<'a>(arguments: &[&'a str]) -> Program<'a> {
    Program::new("hf_trainer", arguments).reads(&["bool"])
}

fn plain() -> Trained {
    trainer(&["--bf16"]).trains(3, 3)
}

#[test]
fn the_trainer_takes_the_same_bytes_again_and_without_shadow_execution_those_of_a_mask_more() {
    let first = plain();
    assert_eq!(plain().peaks(), first.peaks());
    // It asks whether sequences are packed, by `all()` of a small tensor. Where nothing answers, it
    // makes a mask for each sequence, and attention in another way.
    let without = trainer(&["--bf16"]).flags(&["--no-shadow"]).trains(3, 3);
    let mask = 4 * 256 * 256;
    assert!(without.allocated() > first.allocated() + mask, "{:?}", without.peaks());
    let reads = &without.document.processes[0].read_backs;
    assert!(reads.iter().any(|read| read.bytes == 1), "{reads:?}");
}

#[test]
fn the_trainers_loader_workers_do_not_touch_the_gpu() {
    assert_eq!(trainer(&["--bf16", "--workers", "2"]).trains(3, 3).peaks(), plain().peaks());
}

#[test]
fn each_optimizer_of_the_trainer_keeps_what_it_is_known_to_keep() {
    let precisions = if is_thorough() { &["--bf16", "--fp16"][..] } else { &["--fp16"] };
    for precision in precisions {
        let allocated = |optimizer: &str| {
            let run = trainer(&[precision, "--optim", optimizer]).trains(3, 3);
            (run.allocated(), run.number("parameters"))
        };
        let (adamw, parameters) = allocated("adamw_torch");
        let (fused, _) = allocated("adamw_torch_fused");
        // One tensor for each of a hundred parameters is the step, which the fused one has on the GPU.
        assert!(fused.abs_diff(adamw) < MIB, "{precision}: {fused} and {adamw}");
        // Adafactor has a row and a column in place of AdamW's two states of 4 bytes.
        let (adafactor, _) = allocated("adafactor");
        let states = 8 * parameters;
        let saved = adamw - adafactor;
        assert!(saved > states * 9 / 10 && saved < states * 12 / 10, "{precision}: {saved}");
    }
}

#[test]
fn the_trainers_batch_checkpointing_and_accumulation_change_the_peak_as_they_should() {
    let plain = plain();
    let double = trainer(&["--bf16", "--batch-size", "8"]).trains(3, 3);
    // Logits in fp32 and their gradient alone are 2 x 4 bytes x 8192 tokens of a vocabulary.
    let logits = 2 * 4 * 8192 * 256 * 4;
    assert!(double.allocated() > plain.allocated() + logits, "{:?}", double.peaks());

    let checkpointed = trainer(&["--bf16", "--checkpointing"]).trains(3, 3);
    assert!(checkpointed.allocated() < plain.allocated() * 4 / 5, "{:?}", checkpointed.peaks());

    let accumulated = trainer(&["--bf16", "--accum", "4"]).trains(3, 12);
    let added = accumulated.allocated() - plain.allocated();
    // Gradients are kept into the next forward pass; a new one of the largest weight comes on top.
    let gradients = 4 * plain.number("parameters");
    assert!(added > 0 && added < gradients + 4 * 8192 * 512, "{added} of {gradients}");
}

#[test]
fn a_trainer_that_is_too_large_ends_at_the_users_line() {
    let lines = trainer(&["--bf16", "--batch-size", "256"]).runs_out_of_memory();
    assert_eq!(lines, ["trainer.train()"]);
}

#[test]
fn adapters_take_less_than_all_weights_and_checkpointing_less_still() {
    // The norm of gradients is of the weights' type.
    let program =
        |arguments: &[&'static str]| Program::new("peft_lora", arguments).reads(&["bfloat16"]);
    let adapters = program(&[]).trains(3, 3);
    // Rank 8 on four projections of six layers: q and o are 512 x 512, k and v 256 x 512.
    assert_eq!(adapters.number("trained"), 6 * 8 * (2 * (512 + 512) + 2 * (256 + 512)));
    let full = program(&["--full"]).trains(3, 3);
    // Without gradients and two states of the frozen weights, in bf16.
    let saved = full.allocated() - adapters.allocated();
    assert!(saved > 2 * full.number("trained"), "{saved}");
    let checkpointed = program(&["--checkpointing"]).trains(3, 3);
    assert!(checkpointed.allocated() < adapters.allocated() * 3 / 4, "{:?}", checkpointed.peaks());
    if is_thorough() {
        assert_eq!(program(&[]).trains(3, 3).peaks(), adapters.peaks());
    }
}
