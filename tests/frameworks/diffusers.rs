use crate::program::Program;

#[test]
fn a_unets_step_is_the_same_again_and_checkpointing_lowers_it() {
    let run = |arguments: &[&'static str]| Program::new("diffusers_unet", arguments).trains(3, 3);
    let plain = run(&[]);
    assert_eq!(run(&[]).peaks(), plain.peaks());
    let checkpointed = run(&["--checkpointing"]);
    assert!(checkpointed.allocated() < plain.allocated() * 3 / 4, "{:?}", checkpointed.peaks());
}
