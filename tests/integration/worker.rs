use crate::fake::{assert_no_child_left, fake};

const PLAN: [&str; 7] =
    ["plan", "--target-batch", "8", "--precision", "fp32", "--checkpoint", "none"];

/// A worker that fails when it starts: exit 3, one line, and nobody is left.
#[track_caller]
fn fails_at_start(fault: &str, expected: &str) {
    let run = fake(&[&PLAN[..], &["--timeout", "60"]].concat(), &[("FAKE_FAULT", fault)]).run();
    assert_eq!(run.stderr, expected, "{fault}");
    assert_eq!((run.status, run.stdout.as_str()), (Some(3), ""), "{fault}");
    assert_no_child_left(&run);
}

#[test]
fn a_worker_of_another_protocol_is_refused() {
    fails_at_start(
        "protocol",
        "error: the worker speaks protocol 99; this vramfit speaks 3\n\
         hint: `make` builds both from the same sources; a `VRAMFIT_WORKER` may be stale\n",
    );
}

#[test]
fn a_worker_that_refuses_is_quoted() {
    fails_at_start("refuse", "error: the worker refused: the GPU is on fire\n");
}

#[test]
fn a_worker_of_another_release_is_refused() {
    let run = fake(&PLAN, &[("FAKE_FAULT", "version")]).run();
    assert!(run.stderr.contains("is of version 9.9.9, expected"), "{run:?}");
    assert_eq!(run.status, Some(3));
    assert_no_child_left(&run);
}

/// A worker that fails at each point: the failure is the answer.
#[track_caller]
fn fails_at_once(fault: &str, expected: &str) {
    fails_within("60", fault, expected);
}

#[track_caller]
fn fails_within(seconds: &str, fault: &str, expected: &str) {
    let arguments = [&PLAN[..], &["--timeout", seconds]].concat();
    let run = fake(&arguments, &[("FAKE_FAULT", fault)]).run();
    assert_eq!(run.stderr, expected, "{fault}");
    assert_eq!((run.status, run.stdout.as_str()), (Some(3), ""), "{fault}");
    assert_no_child_left(&run);
}

#[test]
fn a_worker_killed_when_starting_is_blamed_on_host_memory() {
    fails_at_once(
        "killed",
        "error: nothing could be measured: the worker was killed by signal 9 before it was ready, \
         most likely by the kernel for lack of host memory\n",
    );
}

#[test]
fn a_worker_that_crashes_when_starting_is_told_by_its_signal() {
    fails_at_once(
        "segfault",
        "error: nothing could be measured: the worker was killed by signal 11 before it was ready\n",
    );
}

#[test]
fn a_worker_that_ends_by_itself_is_told_by_its_last_line() {
    fails_at_once(
        "exit",
        "error: nothing could be measured: the worker ended with status 7 before it was ready: \
         CUDA error: misaligned address\n",
    );
}

#[test]
fn a_worker_that_ends_without_a_word_is_said_to() {
    fails_at_once(
        "silent-exit",
        "error: nothing could be measured: the worker ended with status 0 before it was ready: \
         it wrote nothing to its stderr\n",
    );
}

#[test]
fn a_worker_that_hangs_is_ended_with_its_children() {
    // Long enough to start on a busy machine: a worker that has not begun leaves no trace.
    fails_within(
        "5",
        "hang",
        "error: nothing could be measured: the worker gave no answer within 5 s before it was ready\n",
    );
}

#[test]
fn a_worker_that_talks_rubbish_is_quoted() {
    fails_at_once(
        "rubbish",
        "error: nothing could be measured: the worker answered `Hello, I am no worker`, which is \
         no reply\n",
    );
}

#[test]
fn a_worker_that_floods_is_ended() {
    let run = fake(&PLAN, &[("FAKE_FAULT", "flood")]).run();
    assert!(run.stderr.contains("the worker answered `xxxx"), "{run:?}");
    assert_eq!(run.status, Some(3));
    assert_no_child_left(&run);
}

#[test]
fn a_worker_that_is_not_there_is_said_to_be_built_by_make() {
    fake(&PLAN, &[("VRAMFIT_WORKER", "/nowhere/worker")])
        .stderr(
            "error: no worker at `/nowhere/worker`\n\
             hint: `make` builds it; `VRAMFIT_WORKER` may name another\n",
        )
        .status(3);
}

#[test]
fn a_worker_that_cannot_be_started_is_told_with_the_reason() {
    fake(&PLAN, &[("VRAMFIT_WORKER", "/etc")])
        .stderr("error: cannot start `/etc`: Permission denied (os error 13)\n")
        .status(3);
}

#[test]
fn a_virtual_gpu_that_is_not_there_is_said_to_be_built_by_make() {
    fake(&PLAN, &[("VRAMFIT_VGPU_LIBRARY", "/nowhere/vgpu.so")])
        .stderr(
            "error: the virtual GPU's library is not at `/nowhere/vgpu.so`\n\
             hint: `make` builds it; `VRAMFIT_VGPU_LIBRARY` may name another\n",
        )
        .status(3);
}

#[test]
fn what_a_worker_says_does_nothing_to_the_terminal() {
    let arguments = ["check", "--micro-batch", "4"];
    let run = fake(&arguments, &[("FAKE_FAULT", "terminal@4")]).run();
    assert_eq!(
        run.stderr,
        "error: nothing could be measured: the worker was killed by signal 11 at micro-batch 4, \
         fp32, checkpointing none: \u{fffd}[2J\u{fffd}wiped\n"
    );
    assert_eq!(run.status, Some(3));
}
