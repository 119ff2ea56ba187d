//! The conversation itself, without a GPU.

use std::process::{Command, Stdio};

use vramfit::measurement::Outcome;
use vramfit::probe::protocol::{PROTOCOL, Reply};
use vramfit::workload::{Checkpointing, Precision, Subject};

use crate::worker::{Worker, point, program, workload};

#[test]
fn a_worker_says_who_it_is_and_ends_well_when_its_input_does() {
    let worker = Worker::on_cpu();
    assert_eq!(worker.hello.protocol, PROTOCOL);
    assert_eq!(worker.hello.torch, "2.11.0");
    assert!(worker.end().success());
}

#[test]
fn quit_ends_a_worker_well() {
    let mut worker = Worker::on_cpu();
    assert_eq!(worker.say(r#"{"request":"quit"}"#), None);
    assert!(worker.end().success());
}

#[test]
fn a_line_that_is_no_request_is_refused_and_ends_the_worker() {
    let mut worker = Worker::on_cpu();
    let Some(Reply::Refused { message }) = worker.say("rubbish") else {
        panic!("a refusal");
    };
    assert!(message.starts_with("not a request"), "{message}");
    assert_eq!(worker.end().code(), Some(3));
}

#[test]
fn without_a_gpu_a_worker_refuses_in_one_line() {
    let output = Command::new(program())
        .env("CUDA_VISIBLE_DEVICES", "")
        .stdin(Stdio::null())
        .output()
        .unwrap();
    let line = String::from_utf8(output.stdout).unwrap();
    let Reply::Refused { message } = serde_json::from_str(line.trim_end()).unwrap() else {
        panic!("a refusal, not {line}");
    };
    assert_eq!(message, "CUDA is not available: no driver, or no GPU that it can use");
    assert_eq!(output.status.code(), Some(3));
}

#[test]
fn what_a_model_cannot_do_is_said_and_the_worker_goes_on() {
    let mut worker = Worker::on_cpu();
    let plain = |micro_batch| point(Precision::Fp32, Checkpointing::None, micro_batch, 1);
    let mut mlp = workload("mlp", 0);
    let cases = [
        (mlp.clone(), plain(0), "a micro-batch of 0 samples"),
        (
            {
                let Subject::BuiltIn(model) = &mut mlp.subject else { panic!("a profile") };
                model.parameters = 5;
                mlp
            },
            plain(1),
            "`mlp` has 36818954 parameters, its profile states 5",
        ),
        (
            {
                let mut long = workload("smollm-135m", 0);
                long.sequence = Some(5000);
                long
            },
            plain(1),
            "a sequence of 5000 tokens, where `smollm-135m` has at most 2048",
        ),
    ];
    for (workload, point, expected) in cases {
        let Outcome::Failed { message, .. } = worker.measure(&workload, point) else {
            panic!("a failure: {expected}");
        };
        assert_eq!(message, expected);
    }
    worker.ran(&workload("pinn", 0), plain(1));
}
