use crate::environments;
use crate::program::{MIB, Program};

fn gpt<'a>(arguments: &[&'a str]) -> Program<'a> {
    Program::new("nano_gpt", arguments)
}

#[test]
fn a_loop_of_ones_own_takes_the_same_bytes_again() {
    let first = gpt(&[]).trains(3, 6);
    assert_eq!(first.answers[0]["scale"], 65536.0, "the scaler skipped no step");
    // The fused AdamW counts its steps on the GPU, and takes back those that the scaler skipped.
    let mut reads = first.python().shadow.unknown_reads.iter().flat_map(|read| &read.place);
    assert!(reads.all(|place| !place.code.contains("step")), "{:?}", first.python().shadow);
    assert_eq!(gpt(&[]).trains(3, 6).peaks(), first.peaks());
}

#[test]
fn without_shadow_execution_the_peak_is_the_same_and_the_steps_are_not_counted() {
    // The fused AdamW counts its steps on the GPU, where nothing counts them now.
    let without = gpt(&["--dtype", "bfloat16"]).flags(&["--no-shadow"]).trains(0, 6);
    assert_eq!(gpt(&["--dtype", "bfloat16"]).trains(3, 6).peaks(), without.peaks());
    assert_eq!(without.python().shadow.absent.as_deref(), Some("switched off"));
}

#[test]
fn precision_attention_and_accumulation_change_the_peak_as_they_should() {
    let half = gpt(&[]).trains(3, 6).allocated();
    let full = gpt(&["--dtype", "float32"]).trains(3, 6).allocated();
    assert!(full > half * 11 / 10, "{full} and {half}");
    // Scores of six heads in six layers are kept, in fp16 and fp32.
    let manual = gpt(&["--attention", "manual"]).trains(3, 6).allocated();
    let scores = 6 * 2 * 8 * 6 * 256 * 256;
    assert!(manual > half + scores, "{manual} and {half}");
    let single = gpt(&["--accum", "1"]).trains(3, 3).allocated();
    let again = gpt(&["--accum", "4"]).trains(3, 12).allocated();
    // Gradients are kept into the next micro-batch, and no more by the next but one; blocks that
    // the allocator does not split may be other ones.
    assert!(again.abs_diff(half) < MIB, "{again} and {half}");
    assert!(single < half, "{single} and {half}");
}

#[test]
fn a_batch_that_is_too_large_ends_with_the_line_that_asked_for_the_memory() {
    let lines = gpt(&["--batch-size", "256"]).runs_out_of_memory();
    assert!(lines[0].starts_with("loss = F.cross_entropy(logits.view("), "{lines:?}");
    assert_eq!(lines[1], "logits, loss = model(X, Y)");
}

#[test]
fn each_pytorch_runs_it_and_the_report_says_where_small_tensors_are_not_computed() {
    let mut allocated = Vec::new();
    for environment in environments::all() {
        let name = environment.name.clone();
        // `torch.library.get_kernel` is there since 2.11.
        let is_old = ["torch-2.6", "torch-2.8"].contains(&name.as_str());
        let steps = if is_old { 0 } else { 3 };
        let run = gpt(&[]).environment(environment).trains(steps, 6);
        assert_eq!(run.answers[0]["scale"], 65536.0, "{name}: a step was skipped");
        let python = run.python();
        let expected =
            is_old.then(|| format!("PyTorch {} has no torch.library.get_kernel", python.torch));
        assert_eq!(python.shadow.absent, expected, "{name}");
        if let Some(reason) = expected {
            let line = format!("vramfit: small tensors were not computed: {reason}\n");
            assert!(run.said.contains(&line), "{name}: {}", run.said);
        }
        allocated.push(run.allocated());
        let ratio = run.allocated() as f64 / allocated[0] as f64;
        assert!((ratio - 1.0).abs() < 0.05, "{name}: {allocated:?}");
    }
}
