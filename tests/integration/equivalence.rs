use std::fs;
use std::path::Path;

use serde_json::Value;
use vramfit::equivalence::Equivalence;

use crate::fake::{json, with_virtual_gpu};
use crate::harness::{Run, Test};

const NO_PYTHON: &str = "VRAMFIT_PYTHON names no Python with PyTorch; run `make setup`";

/// Models of a user, one for each way in which accumulation goes wrong, and one in which it does not.
const OWN: &str = r#"
import torch
from torch import nn
from torch.nn import functional

print("the user's file says hello")


def images(n):
    return torch.randn(n, 3, 12, 12), torch.randint(10, (n,))


def classify(model, batch):
    return functional.cross_entropy(model(batch[0]), batch[1])


def conv_net(*norm):
    layers = [nn.Conv2d(3, 8, 3), *norm, nn.ReLU(), nn.Dropout(0.2)]
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(8, 10))


def normed():
    return dict(model=conv_net(nn.BatchNorm2d(8)), batch=images, loss=classify)


def plain():
    return dict(model=conv_net(), batch=images, loss=classify)


def padded():
    def batch(n):
        tokens = torch.randint(30, (n, 12))
        lengths = torch.randint(1, 13, (n, 1))
        return {"tokens": tokens, "labels": tokens.masked_fill(torch.arange(12) >= lengths, -100)}

    def loss(model, batch):
        return functional.cross_entropy(model(batch["tokens"]).flatten(0, 1), batch["labels"].flatten())

    return dict(model=nn.Sequential(nn.Embedding(30, 16), nn.Linear(16, 30)), batch=batch, loss=loss)


def contrastive():
    def loss(model, batch):
        one, other = (functional.normalize(model(view), dim=1) for view in batch)
        return functional.cross_entropy(10 * one @ other.T, torch.arange(len(one)))

    return dict(model=nn.Linear(6, 6), batch=lambda n: (torch.randn(n, 6), torch.randn(n, 6)), loss=loss)


def summed():
    def loss(model, batch):
        return functional.cross_entropy(model(batch[0]), batch[1], reduction="sum")

    return dict(model=conv_net(), batch=images, loss=loss)


class Functional(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 4)

    def forward(self, inputs):
        return functional.dropout(self.linear(inputs), 0.5, self.training).square().mean()


def functional_dropout():
    return dict(model=Functional(), batch=lambda n: torch.randn(n, 4))


def always_random():
    def loss(model, batch):
        return (model(batch) * torch.rand(len(batch), 4)).sum()

    return dict(model=nn.Linear(4, 4), batch=lambda n: torch.randn(n, 4), loss=loss)


def endless():
    return dict(model=nn.Linear(4, 4), batch=lambda n: torch.full((n, 4), float("inf")),
                loss=lambda model, batch: model(batch).sum())


def unsplittable():
    return dict(model=nn.Linear(4, 4), batch=lambda n: torch.zeros(3, 4),
                loss=lambda model, batch: model(batch).sum())


def broken():
    return dict(model=nn.Linear(4, 4), batch=lambda n: torch.zeros(n, 3),
                loss=lambda model, batch: model(batch).sum())
"#;

fn schema_file() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema/equivalence.schema.json")
}

/// `VRAMFIT_WRITE_SCHEMA=1 cargo test` writes it anew.
#[test]
fn the_published_schema_is_that_of_the_code() {
    let schema = serde_json::to_string_pretty(&schemars::schema_for!(Equivalence)).unwrap() + "\n";
    if std::env::var_os("VRAMFIT_WRITE_SCHEMA").is_some() {
        fs::write(schema_file(), &schema).unwrap();
    }
    assert_eq!(fs::read_to_string(schema_file()).unwrap_or_default(), schema);
}

#[test]
fn each_case_comes_out_as_it_must_with_the_cause_that_was_planted() {
    let run = test(&["equivalence", "--only", "gradients", "--device", "cpu", "--json"]).run();
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let document = json(&run);
    assert_satisfies_the_schema(&document);
    assert_eq!((&document["well"], &document["training"]), (&true.into(), &Value::Null));
    let cases = document["gradients"].as_array().unwrap();
    let came_out: Vec<_> = cases
        .iter()
        .map(|case| {
            let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
            assert_eq!(case["verdict"], case["expected"], "{case}");
            (text(&case["name"]), text(&case["verdict"]), text(&case["cause"]["kind"]))
        })
        .collect();
    let expected = [
        ("layer-norm", "equal", "-"),
        ("undivided-loss", "unequal", "scale"),
        ("batch-norm", "unequal", "batch-norm"),
        ("group-norm", "equal", "-"),
        ("unequal-tokens-mean", "unequal", "counts"),
        ("unequal-tokens-sum", "equal", "-"),
        ("ragged-mean", "unequal", "counts"),
        ("ragged-weighted", "equal", "-"),
        ("contrastive", "unequal", "coupled"),
        ("dropout", "random", "-"),
    ];
    let expected: Vec<_> =
        expected.map(|(name, is, by)| (name.to_owned(), is.to_owned(), by.to_owned())).into();
    assert_eq!(came_out, expected);
    for case in cases {
        let measured = case["measured"].as_array().unwrap();
        let precisions: Vec<_> =
            measured.iter().map(|it| it["precision"].as_str().unwrap()).collect();
        assert_eq!(precisions, ["fp64", "fp32", "bf16", "fp16"]);
        // What is really different is as different in each precision.
        let difference = |index: usize| measured[index]["difference"].as_f64().unwrap();
        match case["verdict"] == "equal" {
            true => assert!(difference(0) < 1e-14 && difference(1) < 1e-5, "{case}"),
            false => assert!((difference(1) / difference(0) - 1.0).abs() < 0.01, "{case}"),
        }
    }
    // Four micro-batches, none divided: by three too much.
    let undivided = &cases[1]["measured"][0]["difference"];
    assert!((undivided.as_f64().unwrap() - 3.0).abs() < 1e-9, "{undivided}");
}

#[test]
fn a_training_is_the_same_twice_apart_from_times_and_less_memory_with_less_at_once() {
    let train = || {
        let only =
            ["equivalence", "--only", "training", "--steps", "10", "--device", "cpu", "--json"];
        let run = test(&only).run();
        assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{run:?}");
        json(&run)
    };
    let (one, other) = (train(), train());
    assert_satisfies_the_schema(&one);
    let runs = |document: &Value| document["training"]["runs"].as_array().unwrap().clone();
    let computed = |run: &Value| {
        [&run["setting"], &run["losses"], &run["validation"], &run["peak"]].map(Value::clone)
    };
    let all = |document: &Value| runs(document).iter().map(computed).collect::<Vec<_>>();
    assert_eq!(all(&one), all(&other));
    let of = |precision: &str, micro_batch: u64, checkpointed: bool| {
        let is = |run: &&Value| {
            let setting = &run["setting"];
            setting["precision"] == precision
                && setting["micro_batch"] == micro_batch
                && setting["checkpointed"] == checkpointed
        };
        runs(&one).iter().find(is).unwrap_or_else(|| panic!("{precision}, {micro_batch}")).clone()
    };
    let peak = |run: &Value| run["peak"]["tensors"].as_u64().unwrap();
    let last = |run: &Value| run["losses"][9].as_f64().unwrap();
    let whole = of("fp32", 16, false);
    for precision in ["fp32", "bf16", "fp16"] {
        let (at_once, accumulated) = (of(precision, 16, false), of(precision, 4, false));
        assert!(peak(&accumulated) < peak(&at_once), "{precision}");
        assert!((last(&accumulated) - last(&at_once)).abs() < 0.01, "{precision}");
        assert!(last(&at_once) < at_once["losses"][0].as_f64().unwrap() - 0.3, "it learns");
        assert!(precision == "fp32" || peak(&at_once) < peak(&whole), "{precision}");
    }
    // The same function, computed twice in part: less memory, the same losses, more operations.
    let checkpointed = of("fp32", 16, true);
    assert_eq!(checkpointed["losses"], whole["losses"]);
    assert!(peak(&checkpointed) < peak(&whole));
    assert!(checkpointed["step_flops"].as_u64() > whole["step_flops"].as_u64());
    assert!(checkpointed["steps_at_compute"].as_u64() < whole["steps_at_compute"].as_u64());
    assert_eq!(one["training"]["peaks_on"], "rtx-3050-laptop-4gb");
    assert_eq!(one["training"]["peaks_are_virtual"], true);
}

#[test]
fn a_user_learns_whether_and_why_not() {
    for (function, status, cause, words) in [
        ("plain", 0, Value::Null, "accumulate to the gradient of the full batch of 8"),
        ("normed", 1, "batch-norm".into(), "Batch norm sees the micro-batch alone: `1`."),
        ("padded", 1, "counts".into(), "The loss is a mean over counts that differ"),
        ("contrastive", 1, "coupled".into(), "A sample's loss depends on the others in its batch"),
        ("summed", 1, "scale".into(), "The loss is no mean over samples"),
        ("functional_dropout", 0, Value::Null, "All but batch norm was in evaluation mode"),
        ("always_random", 1, Value::Null, "two passes over the same batch differ already"),
    ] {
        let run = own(function, &[]);
        assert_eq!((run.status, run.stderr.as_str()), (Some(status), ""), "{run:?}");
        assert!(joined(&run.stdout).contains(words), "{function}: {}", run.stdout);
        assert!(!run.stdout.contains("hello"), "{}", run.stdout);
        let document = json(&own(function, &["--json"]));
        assert_satisfies_the_schema(&document);
        assert_eq!(document["well"], status == 0, "{function}");
        assert_eq!(document["own"]["cause"]["kind"], cause, "{function}");
    }
}

#[test]
fn a_user_chooses_the_batches_also_uneven_ones() {
    let document = json(&own("plain", &["--target-batch", "10", "--micro-batch", "4", "--json"]));
    assert_eq!(
        (&document["own"]["target_batch"], &document["own"]["micro_batch"]),
        (&10.into(), &4.into())
    );
    assert_eq!(document["own"]["verdict"], "equal", "{document}");
    assert_eq!(document["own"]["measured"][0]["fit"]["factors"].as_array().unwrap().len(), 3);
}

#[test]
fn what_cannot_be_compared_is_refused_in_a_line() {
    for (function, complaint) in [
        ("endless", "error: the gradient of the full batch is zero, or not finite\n"),
        (
            "unsplittable",
            "error: `batch(8)` returned a Tensor in which nothing has 8 samples in its first dimension, \
             so that it cannot be split\n",
        ),
        ("broken", "error: `loss` failed: RuntimeError: "),
    ] {
        let run = own(function, &[]);
        assert_eq!((run.status, run.stdout.as_str()), (Some(3), ""), "{run:?}");
        assert!(run.stderr.starts_with(complaint), "{}", run.stderr);
    }
    let run = own("nowhere", &[]);
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(
        run.stderr.starts_with("error: `own.py` has no function `nowhere`\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn without_pytorch_it_says_whose_python_that_was() {
    let python = "#!/bin/sh\nexec python3 -c 'import runpy, sys\nsys.modules[\"torch\"] = None\n\
                  runpy.run_path(sys.argv[1], run_name=\"__main__\")' \"$@\"\n";
    let bare = Test::new(&["equivalence"])
        .env("PATH", &std::env::var("PATH").unwrap())
        .file("python", python)
        .executable("python")
        .env("VRAMFIT_PYTHON", "./python");
    let run = bare.run();
    assert_eq!((run.status, run.stdout.as_str()), (Some(3), ""), "{run:?}");
    assert!(run.stderr.contains("` has no PyTorch: "), "{}", run.stderr);
    assert!(
        run.stderr.ends_with("\nhint: `VRAMFIT_PYTHON` names another Python\n"),
        "{}",
        run.stderr
    );
    Test::new(&["equivalence"])
        .env("VRAMFIT_PYTHON", "/nonexistent/python")
        .stderr(
            "error: no Python at `/nonexistent/python`\n\
             hint: name one that has PyTorch by `VRAMFIT_PYTHON`\n",
        )
        .status(3);
}

#[test]
fn a_child_that_says_nothing_or_rubbish_is_told_by_its_last_words() {
    let dying = |script: &str| {
        let test = Test::new(&["equivalence"]).file("python", script).executable("python");
        test.env("PATH", &std::env::var("PATH").unwrap()).env("VRAMFIT_PYTHON", "./python").run()
    };
    let run = dying("#!/bin/sh\necho 'it broke' >&2\nexit 9\n");
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(
        run.stderr.starts_with("error: the training ended without an answer: it broke\n"),
        "{run:?}"
    );
    let run = dying("#!/bin/sh\necho hello\nsleep 60\n");
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(
        run.stderr.starts_with("error: the worker answered `hello`, which is no reply\n"),
        "{run:?}"
    );
}

#[test]
fn a_virtual_gpu_is_not_trained_on() {
    let vramfit = env!("CARGO_BIN_EXE_vramfit");
    let inside =
        ["run", "--gpu", "rtx-4060-laptop", "--", vramfit, "equivalence", "--device", "gpu"];
    let run = test(&inside).run();
    assert_eq!((run.status, run.stdout.as_str()), (Some(3), ""), "{run:?}");
    assert!(
        run.stderr.contains("error: PyTorch computes nothing on a virtual GPU\n"),
        "{}",
        run.stderr
    );
}

#[test]
fn what_it_cannot_do_is_bad_input() {
    let refused = |arguments: &[&str], complaint: &str| {
        let run = Test::new(arguments).file("own.py", OWN).run();
        assert_eq!((run.status, run.stdout.as_str()), (Some(2), ""), "{run:?}");
        assert!(run.stderr.starts_with(complaint), "{}", run.stderr);
    };
    refused(
        &["equivalence", "--steps", "3"],
        "error: `--steps 3`: not a whole number from 10 to 100000\nhint: ",
    );
    refused(&["equivalence", "--gpu", "rtx-9999"], "error: no GPU named `rtx-9999`\nhint: ");
    refused(
        &["equivalence", "--device", "tpu"],
        "error: invalid value `tpu` for `--device <NAME>`",
    );
    refused(&["equivalence", "--target-batch", "4"], "error: ");
    let own = ["equivalence", "--workload", "own.py:plain"];
    refused(
        &[&own[..], &["--micro-batch", "8"]].concat(),
        "error: `--micro-batch 8`: not less than the target batch of 8\nhint: ",
    );
    refused(&[&own[..], &["--steps", "20"]].concat(), "error: ");
    refused(&["equivalence", "--workload", "none.py:f"], "error: cannot read `none.py`");
}

fn test(arguments: &[&str]) -> Test {
    let test = Test::new(arguments)
        .env("PATH", &std::env::var("PATH").unwrap())
        .env("VRAMFIT_PYTHON", &std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON));
    with_virtual_gpu(test)
}

fn own(function: &str, flags: &[&str]) -> Run {
    let named = format!("own.py:{function}");
    let command = ["equivalence", "--device", "cpu", "--workload", &named];
    test(&[&command[..], flags].concat()).file("own.py", OWN).run()
}

/// Text as it was before it was broken into lines.
fn joined(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn assert_satisfies_the_schema(document: &Value) {
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema_file()).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<_> = validator
        .iter_errors(document)
        .map(|error| format!("{error}: {}", error.instance_path))
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    assert!(!validator.is_valid(&serde_json::json!({ "equivalence_version": 1 })));
}
