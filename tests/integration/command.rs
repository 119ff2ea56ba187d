//! `-- COMMAND`, with real programs, PyTorch and the virtual GPU.

use std::fs;

use serde_json::Value;

use crate::fake::{assert_no_child_left, json, with_virtual_gpu};
use crate::harness::{Run, Test};

/// A script that has never heard of vramfit: 4 blocks of a perceptron, AdamW, autocast on request.
const TRAIN: &str = "
import argparse, contextlib
import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument('--batch-size', type=int)
parser.add_argument('--accum', type=int, default=1)
parser.add_argument('--bf16', action='store_true')
parser.add_argument('--checkpoint', action='store_true')
parser.add_argument('--steps', type=int, default=1000000)
args = parser.parse_args()

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024))
    def forward(self, x):
        if args.checkpoint:
            return x + checkpoint(self.layers, x, use_reentrant=False)
        return x + self.layers(x)

model = nn.Sequential(*(Block() for _ in range(4))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
amp = torch.autocast('cuda', torch.bfloat16) if args.bf16 else contextlib.nullcontext()
for step in range(args.steps):
    optimizer.zero_grad()
    for _ in range(args.accum):
        batch = torch.randn(args.batch_size, 1024, device='cuda')
        with amp:
            loss = model(batch).square().mean() / args.accum
        loss.backward()
    optimizer.step()
print('trained to the end')
";

/// The same as a workload's function.
const FUNCTION: &str = "
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(1024, 4096), nn.ReLU(), nn.Linear(4096, 1024))
    def forward(self, x):
        return x + self.layers(x)

def workload():
    return dict(
        model=nn.Sequential(*(Block() for _ in range(4))),
        batch=lambda n: torch.randn(n, 1024, device='cuda'),
        loss=lambda model, batch: model(batch).square().mean(),
    )
";

const TARGET: &str = "65536";

/// The Python that has PyTorch; none where there is none, which only a debug build may do without.
fn python() -> Option<String> {
    let python = std::env::var("VRAMFIT_PYTHON").ok();
    assert!(python.is_some() || cfg!(debug_assertions), "`make test` says which Python to use");
    python
}

fn vramfit(arguments: &[&str]) -> Test {
    let gpu = ["--gpu", "rtx-3050-laptop-4gb"];
    let test = Test::new(&[&arguments[..1], &gpu, &arguments[1..]].concat())
        .env("PATH", &std::env::var("PATH").unwrap())
        .env("PYTHONDONTWRITEBYTECODE", "1");
    with_virtual_gpu(test)
}

fn plan(flags: &[&str], command: &[&str]) -> Test {
    vramfit(&[&["plan", "--target-batch", TARGET], flags, &["--"], command].concat())
}

fn check(micro_batch: &str, command: &[&str]) -> Test {
    vramfit(&[&["check", "--micro-batch", micro_batch, "--"], command].concat())
}

/// A check of a shell's script, which is told its micro-batch.
fn shell(script: &str) -> Test {
    check("4", &["sh", "-c", script, "sh", "{micro_batch}"])
}

/// What an optimizer step is in the scripts below.
const STEP: &str = "
import os, shutil, sys, threading
import torch
from torch import nn

def model(width=512):
    return nn.Linear(width, width, bias=False).cuda()

def step(model, optimizer):
    optimizer.zero_grad()
    model(torch.randn(4, model.in_features, device='cuda')).square().mean().backward()
    optimizer.step()
";

/// The answer for a script that goes on from [`STEP`]; none without a Python that has PyTorch.
fn of_script(script: &str, arguments: &[&str]) -> Option<Run> {
    let python = python()?;
    let words = [&[python.as_str(), "train.py", "{micro_batch}"], arguments].concat();
    let command = [&["check", "--json", "--micro-batch", "4", "--"], &words[..]].concat();
    Some(vramfit(&command).file("train.py", &format!("{STEP}{script}")).run())
}

fn optimizer_state(run: &Run) -> u64 {
    assert_eq!(run.status, Some(0), "{run:?}");
    json(run)["measurement"]["outcome"]["ran"]["memory"]["optimizer_state"].as_u64().unwrap()
}

fn notes(plan: &Value) -> Vec<&str> {
    plan["notes"].as_array().unwrap().iter().map(|note| note["note"].as_str().unwrap()).collect()
}

#[test]
fn a_script_and_a_function_get_the_same_plan_which_then_holds() {
    let Some(python) = python() else { return };
    let words = [&python, "train.py", "--batch-size", "{micro_batch}", "--accum", "{accumulation}"];
    // The largest that fits, which is exact: which is the fastest rests on times.
    let ask = ["--json", "--objective", "micro-batch"];
    let run = plan(&ask, &words).file("train.py", TRAIN).run();
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let of_command = json(&run);
    let plain = ["--precision", "fp32", "--checkpoint", "none", "--workload", "f.py:workload"];
    let of_function = ["plan", "--target-batch", TARGET];
    let of_function = vramfit(&[&of_function[..], &ask, &plain].concat())
        .file("f.py", FUNCTION)
        .env("VRAMFIT_PYTHON", &python)
        .run();
    let of_function = json(&of_function);
    let chosen = |plan: &Value| plan["recommendation"]["micro_batch"].as_u64().unwrap();
    assert_eq!(chosen(&of_command), chosen(&of_function));
    let peak = |plan: &Value| plan["recommendation"]["memory"]["allocated_peak"].as_u64().unwrap();
    let (one, other) = (peak(&of_command) as f64, peak(&of_function) as f64);
    assert!((one / other - 1.0).abs() < 0.01, "{one} and {other}");
    let weights = of_command["recommendation"]["memory"]["weights"].as_u64().unwrap();
    assert_eq!(weights, 4 * 4 * (2 * 1024 * 4096 + 4096 + 1024));

    // The script itself fits at the planned setting, and does not at the next.
    let choice = &of_command["recommendation"];
    let accumulation = choice["accumulation"].to_string();
    let line = of_command["command"].as_str().unwrap();
    let size = choice["micro_batch"].to_string();
    assert!(line.ends_with(&format!("--batch-size {size} --accum {accumulation}")), "{line}");
    let next = choice["next"]["micro_batch"].to_string();
    for (size, status) in [(size, 0), (next, 1)] {
        let script = [&python, "train.py", "--steps", "3", "--accum", "2", "--batch-size", &size];
        let run = vramfit(&[&["run", "--"], &script[..]].concat()).file("train.py", TRAIN).run();
        assert_eq!(run.status, Some(status), "{size}: {run:?}");
    }
}

#[test]
fn what_has_a_placeholder_is_searched_and_what_has_none_is_named() {
    let Some(python) = python() else { return };
    let optional = ["{bf16:--bf16}", "{checkpoint:--checkpoint}"];
    let words = [&python, "train.py", "--batch-size={micro_batch}", "--accum={accumulation}"];
    let flags = ["plan", "--json", "--target-batch", "2", "--"];
    let run = vramfit(&[&flags[..], &words, &optional].concat()).file("train.py", TRAIN).run();
    let searched = json(&run);
    let mut settings: Vec<_> = searched["measurements"]
        .as_array()
        .unwrap()
        .iter()
        .map(|it| {
            let setting = &it["point"]["setting"];
            format!("{} {}", setting["precision"], setting["checkpointing"]).replace('"', "")
        })
        .collect();
    settings.sort();
    settings.dedup();
    assert_eq!(settings, ["bf16 full", "bf16 none", "fp32 full", "fp32 none"]);
    assert!(!notes(&searched).contains(&"as-the-command-does"));
    // Without accumulation of its own, one micro-batch is all there is.
    let words = [&python, "train.py", "--batch-size", "{micro_batch}"];
    let run = plan(&["--json"], &words).file("train.py", TRAIN).run();
    let plain = json(&run);
    let named = notes(&plain);
    for note in ["as-the-command-does", "own-accumulation", "ended-early"] {
        assert!(named.contains(&note), "{note}: {named:?}");
    }
    assert_eq!(plain["recommendation"]["precision"], "as-is");
}

#[test]
fn a_command_that_takes_its_number_of_steps_runs_to_its_end() {
    let Some(python) = python() else { return };
    let words = [&python, "train.py", "--batch-size", "{micro_batch}", "--steps", "{steps}"];
    let run = check("64", &words).file("train.py", TRAIN).env("VRAMFIT_VERBOSE", "").run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let flags = ["check", "--verbose", "--micro-batch", "64", "--"];
    let run = vramfit(&[&flags[..], &words].concat()).file("train.py", TRAIN).run();
    assert!(run.stderr.contains("trained to the end"), "{run:?}");
    let early = ["check", "--verbose", "--micro-batch", "64", "--"];
    let run = vramfit(&[&early[..], &words[..4]].concat()).file("train.py", TRAIN).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(!run.stderr.contains("trained to the end"), "{run:?}");
}

#[test]
fn a_command_may_read_variables_instead() {
    let Some(python) = python() else { return };
    let script = TRAIN.replace(
        "args = parser.parse_args()",
        "import os\nargs = parser.parse_args(['--batch-size', os.environ['VRAMFIT_MICRO_BATCH']])",
    );
    let flags =
        ["check", "--micro-batch", "64", "--vary", "micro_batch", "--", &python, "train.py"];
    let run = vramfit(&flags).file("train.py", &script).run();
    assert!(run.stdout.starts_with("fits: "), "{run:?}");
}

#[test]
fn out_of_memory_is_an_answer_and_names_the_line() {
    let Some(python) = python() else { return };
    let flags = ["check", "--json", "--micro-batch", "1048576", "--"];
    let words = [&python, "train.py", "--batch-size", "{micro_batch}"];
    let run = vramfit(&[&flags[..], &words].concat()).file("train.py", TRAIN).run();
    assert_eq!((run.status, run.stderr.as_str()), (Some(1), ""), "{run:?}");
    let answer = json(&run);
    let message = answer["measurement"]["outcome"]["out-of-memory"]["message"].as_str().unwrap();
    assert!(message.contains("CUDA out of memory"), "{message}");
    assert!(message.contains("(at train.py:30: `batch = torch.randn("), "{message}");
    assert!(answer["would_fit"][0]["micro-batch"].is_u64(), "{answer}");
}

#[test]
fn an_out_of_memory_that_the_program_catches_is_one_nevertheless() {
    let Some(python) = python() else { return };
    let script = "import sys, torch\n\
        try:\n    torch.empty(int(sys.argv[1]) << 30, dtype=torch.uint8, device='cuda')\n\
        except torch.OutOfMemoryError:\n    pass\n\
        w = torch.ones(4, device='cuda', requires_grad=True)\n\
        o = torch.optim.SGD([w])\n\
        for _ in range(3):\n    w.sum().backward()\n    o.step()\n";
    let check = |size| check(size, &[&python, "t.py", "{micro_batch}"]).file("t.py", script).run();
    let (fits, caught) = (check("1"), check("8"));
    assert_eq!(fits.status, Some(0), "{fits:?}");
    assert_eq!(caught.status, Some(1), "{caught:?}");
}

#[test]
fn an_error_of_the_script_is_none_of_memory_and_is_shown() {
    let Some(python) = python() else { return };
    let script = "import torch\n\ndef load():\n    return {}['data']\n\nload()\n";
    let folder = check("4", &[&python, "train.py", "{micro_batch}"]).file("train.py", script);
    let place = folder.path().canonicalize().unwrap().join("train.py");
    let place = place.display();
    let run = folder.run();
    assert_eq!((run.status, run.stdout.as_str()), (Some(3), ""), "{run:?}");
    let text = run.stderr.replace(&format!("{place}"), "train.py");
    assert!(text.starts_with("error: nothing could be measured: KeyError: 'data'\n"), "{text}");
    assert!(text.contains("  File \"train.py\", line 4, in load\n"), "{text}");
    assert_eq!(text.matches("KeyError").count(), 2, "{text}");
}

#[test]
fn a_program_that_says_out_of_memory_and_fails_is_believed() {
    for words in [
        "RuntimeError: CUDA error: out of memory",
        "RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        "DefaultCPUAllocator: can't allocate memory: you tried to allocate 8 bytes",
    ] {
        let run = shell(&format!("echo \"{words}\" >&2; exit 1")).run();
        assert_eq!(run.status, Some(1), "{words}: {run:?}");
    }
    // Who goes on after that and ends well has no want of memory.
    let run = shell("echo 'CUDA out of memory' >&2").run();
    assert_eq!(run.status, Some(3), "{run:?}");
}

#[test]
fn a_command_that_fails_otherwise_is_quoted() {
    shell("echo starting; echo no data >&2; exit 9")
        .stderr("error: nothing could be measured: the command ended with status 9: no data\n")
        .status(3);
    shell("true")
        .stderr("error: nothing could be measured: the command did not use the GPU\n")
        .status(3);
    check("4", &["no-such-program", "{micro_batch}"])
        .stderr(
            "error: cannot start `no-such-program`: No such file or directory (os error 2)\n\
             hint: it is looked for in PATH; one of this folder is called `./NAME`\n",
        )
        .status(2);
}

#[test]
fn a_command_that_takes_too_long_is_ended_with_all_it_started() {
    let script = "echo $$ >> pids; setsid sh -c 'echo $$ >> pids; sleep 600' & sleep 600";
    let flags = ["check", "--timeout", "1", "--micro-batch", "4", "--"];
    let words = ["sh", "-c", script, "sh", "{micro_batch}"];
    let run = vramfit(&[&flags[..], &words].concat()).run();
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.contains("0 of 2 optimizer steps"), "{run:?}");
    assert_no_child_left(&run);
}

#[test]
fn what_the_command_prints_does_not_mix_with_the_answer() {
    let Some(python) = python() else { return };
    let script = format!("print('{{\"not\": \"ours\"}}', flush=True)\n{TRAIN}");
    let flags = ["check", "--json", "--micro-batch", "64", "--"];
    let words = [&python, "train.py", "--batch-size", "{micro_batch}"];
    let run = vramfit(&[&flags[..], &words].concat()).file("train.py", &script).run();
    assert_eq!(run.stderr, "");
    assert_eq!(json(&run)["fits"], true);
}

#[test]
fn sizes_that_depend_on_values_give_an_interval() {
    let Some(python) = python() else { return };
    let script = TRAIN.replace(
        "loss = model(batch).square().mean() / args.accum",
        "out = model(batch)\n            loss = (out[out > 0] * 2).square().sum() / args.accum",
    );
    let words = [&python, "train.py", "--batch-size", "{micro_batch}", "--accum", "{accumulation}"];
    let run = plan(&["--json"], &words).file("train.py", &script).run();
    let plan = json(&run);
    let notes = plan["notes"].as_array().unwrap();
    let note = notes.iter().find(|note| note["note"] == "data-dependent-sizes").unwrap();
    let (low, high) =
        (note["lowest_peak"].as_u64().unwrap(), note["highest_peak"].as_u64().unwrap());
    assert!(low < high, "{note}");
    assert_eq!(plan["recommendation"]["memory"]["device_peak"], high);
    assert!(note["places"][0].as_str().unwrap().contains("train.py:"), "{note}");
}

#[test]
fn each_rank_of_torchrun_has_a_gpu_and_the_target_is_shared() {
    let Some(python) = python() else { return };
    let script = TRAIN
        .replace("import torch\n", "import os, torch\nimport torch.distributed as dist\n")
        .replace(
            "model = nn.Sequential(*(Block() for _ in range(4))).cuda()",
            "dist.init_process_group('nccl')\n\
             torch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n\
             model = nn.Sequential(*(Block() for _ in range(4))).cuda()\n\
             model = nn.parallel.DistributedDataParallel(model)",
        );
    let torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node", "2"];
    let words = ["ddp.py", "--batch-size", "{micro_batch}", "--accum", "{accumulation}"];
    let command = [&[python.as_str()], &torchrun[..], &words].concat();
    let goal = ["plan", "--json", "--target-batch", "128", "--objective", "micro-batch"];
    let run = vramfit(&[&goal[..], &["--vram", "2GiB", "--"], &command].concat())
        .file("ddp.py", &script)
        .run();
    assert_eq!((run.status, run.stderr.as_str()), (Some(0), ""), "{run:?}");
    let plan = json(&run);
    assert_eq!(plan["goal"]["world_size"], 2);
    assert_eq!(plan["recommendation"]["micro_batch"], 64);
    assert!(!notes(&plan).contains(&"world-size"), "measured with both ranks");
    let memory = &plan["recommendation"]["memory"];
    let part = |name: &str| memory[name].as_u64().unwrap();
    let beyond = part("device_peak") - part("context") - part("reserved_peak");
    assert!(beyond >= 40 << 20, "NCCL's buffers are seen beside PyTorch's memory: {memory}");
}

#[test]
fn a_plan_for_a_command_is_checked_by_running_it_again() {
    let Some(python) = python() else { return };
    let words = [&python, "train.py", "--batch-size", "{micro_batch}", "--accum", "{accumulation}"];
    let planned = plan(&["--output", "plan.json"], &words).file("train.py", TRAIN).run();
    assert_eq!(planned.status, Some(0), "{planned:?}");
    let line = planned.stdout.lines().find(|line| line.starts_with(&format!("  {python} ")));
    assert!(line.is_some_and(|line| line.contains("--batch-size 16384 --accum 4")), "{planned:?}");
    let text = fs::read_to_string(planned.folder.path().join("plan.json")).unwrap();
    let run = vramfit(&["check", "--plan", "plan.json"]).file("plan.json", &text).run();
    assert!(run.stdout.starts_with("fits: `"), "{run:?}");
    let refused = |edit: &dyn Fn(&mut Value), error: &str| {
        let mut edited: Value = serde_json::from_str(&text).unwrap();
        edit(&mut edited["workload"]["subject"]["command"]);
        let test = vramfit(&["check", "--plan", "plan.json"]);
        let run = test.file("plan.json", &edited.to_string()).run();
        assert_eq!(run.status, Some(2), "{run:?}");
        assert!(run.stderr.contains(error), "{run:?}");
    };
    refused(
        &|it| it["words"] = Value::Array(Vec::new()),
        "does not say where the micro-batch goes",
    );
    refused(&|it| it["words"][2] = "{acumulation}".into(), "`{acumulation}` is no placeholder");
    refused(&|it| it["folder"] = "/nowhere".into(), "cannot read `/nowhere`");
}

#[test]
fn a_real_card_is_watched_from_outside() {
    let Some(python) = python() else { return };
    // A virtual card stands in for the real one.
    let plan = ["plan", "--json", "--target-batch", TARGET, "--", &python, "train.py"];
    let words = ["--batch-size", "{micro_batch}", "--accum", "{accumulation}"];
    let exe = env!("CARGO_BIN_EXE_vramfit");
    let run =
        vramfit(&[&["run", "--", exe], &plan[..], &words].concat()).file("train.py", TRAIN).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let plan = json(&run);
    let uuid = plan["device"]["name"].as_str().unwrap();
    assert!(uuid.starts_with("GPU-"), "{uuid}");
    let on_card = plan["measurements"].as_array().unwrap().last().unwrap();
    assert!(on_card["outcome"]["ran"]["memory"]["device_peak"].as_u64().unwrap() > 1 << 30);
    assert_eq!(
        plan["notes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|it| {
                matches!(it["note"].as_str(), Some("twin-differs" | "process-unnamed"))
            })
            .count(),
        0,
        "{}",
        plan["notes"]
    );
}

#[test]
fn mistakes_in_the_command_are_bad_input() {
    let refused = |flags: &[&str], words: &[&str], expected: &str| {
        plan(flags, words).stderr(expected).status(2);
    };
    refused(
        &[],
        &["python", "train.py"],
        "error: `python train.py` does not say where the micro-batch goes\n\
         hint: write `{micro_batch}` where its number stands, as in `--batch-size {micro_batch}`; \
         for a command that reads VRAMFIT_MICRO_BATCH, `--vary micro_batch`\n",
    );
    refused(
        &["--world-size", "3"],
        &["torchrun", "--nproc_per_node", "2", "t", "{micro_batch}"],
        "error: `--world-size 3`: the command starts 2 processes on each machine\n\
         hint: a multiple of 2, for that many machines\n",
    );
    refused(
        &[],
        &["t", "{micro_batch}", "{acumulation}"],
        "error: `{acumulation}` is no placeholder\nhint: did you mean `{accumulation}`? \
         `{{acumulation}}` is the text `{acumulation}`\n",
    );
    refused(
        &["--precision", "bf16"],
        &["t", "{micro_batch}"],
        "error: `--precision bf16`: the command has no placeholder that sets it\n\
         hint: write `{precision}`, `{bf16}` or `{fp16}` where the command takes it\n",
    );
    refused(
        &["--checkpoint", "every-2"],
        &["t", "{micro_batch}", "{checkpoint}"],
        "error: `--checkpoint every-2`: the command has no placeholder that sets it\n\
         hint: write `{checkpoint}` where the command takes it; it is none or full\n",
    );
    refused(
        &[],
        &["t", "{micro_batch}", "{seq}"],
        "error: `t {micro_batch} {seq}` takes `{seq}`, and no sequence is given\n\
         hint: say it with `--seq 1024`\n",
    );
    refused(
        &["--seq", "512"],
        &["t", "{micro_batch}"],
        "error: `--seq 512`: the command has no placeholder that sets it\n\
         hint: write `{seq}` where the command takes it\n",
    );
}

#[test]
fn a_run_leaves_nothing_behind() {
    let run = shell("exit 1").env("TMPDIR", "tmp").file("tmp/.keep", "").run();
    let left = |run: &Run| fs::read_dir(run.folder.path().join("tmp")).unwrap().count();
    assert_eq!(left(&run), 1, "{run:?}");
}

#[test]
fn daemons_do_not_outlive_the_run() {
    let script = "(setsid sh -c 'echo $$ >> pids; exec sleep 600' &); sleep 0.3; exit 1";
    let run = shell(script).run();
    assert_eq!(run.status, Some(3), "{run:?}");
    assert_no_child_left(&run);
}

#[test]
fn an_optimizer_that_steps_more_rarely_is_waited_for() {
    let script = "
rare, often = model(1024), model()
of_rare, of_often = (torch.optim.AdamW(it.parameters()) for it in (rare, often))
for count in range(1000):
    step(often, of_often)
    if count % 5 == 4:
        step(rare, of_rare)
";
    let Some(run) = of_script(script, &[]) else { return };
    // Two moments of both.
    assert!(optimizer_state(&run) >= 2 * 4 * (1024 * 1024 + 512 * 512), "{run:?}");
}

#[test]
fn an_optimizer_that_never_steps_is_not_waited_for_for_ever() {
    let script = "
used, unused = model(), model()
optimizer, _ = torch.optim.AdamW(used.parameters()), torch.optim.AdamW(unused.parameters())
while True:
    step(used, optimizer)
";
    let Some(run) = of_script(script, &[]) else { return };
    assert!(optimizer_state(&run) > 0);
}

#[test]
fn state_that_grows_is_seen_whole() {
    let script = "
trained = model()
optimizer = torch.optim.SGD(trained.parameters(), lr=0.1)
for count in range(1000):
    step(trained, optimizer)
    for parameter in trained.parameters():
        history = optimizer.state[parameter].setdefault('history', [])
        if len(history) < 8:
            history.append(torch.empty_like(parameter))
";
    let Some(run) = of_script(script, &[]) else { return };
    assert_eq!(optimizer_state(&run), 8 * 4 * 512 * 512);
}

#[test]
fn a_forked_child_that_trains_is_seen() {
    let script = "
import multiprocessing
def train():
    trained = model()
    optimizer = torch.optim.AdamW(trained.parameters())
    while True:
        step(trained, optimizer)
child = multiprocessing.get_context('fork').Process(target=train)
child.start()
child.join()
";
    let Some(run) = of_script(script, &[]) else { return };
    assert!(optimizer_state(&run) > 0);
}

#[test]
fn threads_that_train_do_not_disturb_each_other() {
    let script = "
def train():
    trained = model()
    optimizer = torch.optim.AdamW(trained.parameters())
    for _ in range(200):
        step(trained, optimizer)
threads = [threading.Thread(target=train) for _ in range(4)]
[it.start() for it in threads]
[it.join() for it in threads]
";
    let Some(run) = of_script(script, &[]) else { return };
    assert!(optimizer_state(&run) > 0);
    assert_eq!(run.stderr, "");
}

#[test]
fn a_program_that_leaves_without_the_interpreters_end_is_measured() {
    let script = "
trained = model()
optimizer = torch.optim.AdamW(trained.parameters())
for _ in range(int(sys.argv[2])):
    step(trained, optimizer)
os._exit(0)
";
    let Some(run) = of_script(script, &["{steps}"]) else { return };
    assert!(optimizer_state(&run) > 0);
}

#[test]
fn a_program_that_clears_the_temporary_folder_goes_on() {
    let script = "
trained = model()
optimizer = torch.optim.AdamW(trained.parameters())
step(trained, optimizer)
shutil.rmtree(os.environ['VRAMFIT_STEPS_FOLDER'])
step(trained, optimizer)
";
    let Some(run) = of_script(script, &[]) else { return };
    assert_eq!(run.status, Some(0), "{run:?}");
}

#[test]
fn advice_on_memory_is_not_the_reason_of_an_error() {
    let script = "
print('tip: against CUDA out of memory lower the batch', file=sys.stderr)
{}['missing']
";
    let Some(run) = of_script(script, &[]) else { return };
    assert_eq!(run.status, Some(3), "{run:?}");
    assert!(run.stderr.contains("KeyError: 'missing'"), "{run:?}");
}

#[test]
fn a_command_that_was_left_out_is_no_built_in_model() {
    vramfit(&["plan", "--target-batch", "64", "--"])
        .stderr(
            "error: no command follows `--`\nhint: as in `-- python train.py --batch-size \
             {micro_batch}`; leave `--` out for a model\n",
        )
        .status(2);
}

#[test]
fn a_command_is_run_at_each_length_of_several() {
    let Some(python) = python() else { return };
    let script = "
width, tokens = 512, int(sys.argv[2])
net = model(width)
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
while True:
    optimizer.zero_grad()
    net(torch.randn(int(sys.argv[1]), tokens, width, device='cuda')).square().mean().backward()
    optimizer.step()
";
    let command = [python.as_str(), "train.py", "{micro_batch}", "{seq}"];
    let flags = [
        "plan",
        "--json",
        "--target-batch",
        "2",
        "--vram",
        "1GiB",
        "--margin",
        "0",
        "--objective",
        "micro-batch",
    ];
    let arguments = [&flags[..], &["--seq", "16384..32768", "--"], &command].concat();
    let run = vramfit(&arguments).file("train.py", &format!("{STEP}{script}")).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let plan = json(&run);
    let contexts = &plan["contexts"];
    let rows = contexts["lengths"].as_array().unwrap();
    let sizes: Vec<_> = rows.iter().map(|row| row["choice"]["micro_batch"].as_u64()).collect();
    // A token takes 2 KiB in each of about five tensors, of less than 600 MiB.
    assert_eq!(sizes, [Some(2), Some(1)], "{contexts}");
    assert_eq!(contexts["limit"], serde_json::json!({ "tokens": 32768, "of": "asked" }));
    assert_eq!(contexts["longest"][0]["tokens"], 32768, "{contexts}");
    assert!(plan["command"].as_str().unwrap().ends_with(" 1 32768"), "{}", plan["command"]);
}
