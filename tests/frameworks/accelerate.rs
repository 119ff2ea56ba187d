use crate::is_thorough;
use crate::program::Program;

#[test]
fn accelerates_loop_steps_once_for_two_micro_batches_in_each_precision() {
    let run = |precision: &'static str| {
        let run = Program::new("accelerate_loop", &["--accum", "2", "--precision", precision])
            .trains(3, 6);
        assert_eq!(run.number("skipped"), 0, "{precision}: no step was skipped by the scaler");
        run
    };
    let (full, half) = (run("no"), run("fp16"));
    // Activations of four small layers weigh little beside a vocabulary of 30522 words.
    assert!(half.allocated() < full.allocated(), "{:?} and {:?}", half.peaks(), full.peaks());
    if is_thorough() {
        let brain = run("bf16");
        // The scaler's own tensors.
        assert!(half.allocated() - brain.allocated() <= 4096, "{:?}", brain.peaks());
        assert_eq!(run("fp16").peaks(), half.peaks());
    }
}

#[test]
fn lightning_trains_and_validates_in_each_precision() {
    // Its modules log accuracies, and the weights go back to the host at the end.
    let run = |precision: &'static str| {
        let arguments = ["--accum", "2", "--precision", precision];
        Program::new("lightning_trainer", &arguments).reads(&["bfloat16", "int64"]).trains(3, 6)
    };
    let (full, mixed) = (run("32-true"), run("16-mixed"));
    assert!(mixed.allocated() < full.allocated(), "{:?} and {:?}", mixed.peaks(), full.peaks());
    if is_thorough() {
        let brain = run("bf16-mixed");
        assert!(mixed.allocated() - brain.allocated() <= 4096, "{:?}", brain.peaks());
        let low = run("bf16-true");
        assert!(low.allocated() < brain.allocated(), "{:?}", low.peaks());
        assert_eq!(run("16-mixed").peaks(), mixed.peaks());
    }
}
