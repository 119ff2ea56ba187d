use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;
use vramfit::report::WatchDocument;

use crate::fake::{fake, json, with_virtual_gpu};
use crate::harness::{Run, Test};

fn schema_file() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema/watch.schema.json")
}

/// `VRAMFIT_WRITE_SCHEMA=1 cargo test` writes it anew.
#[test]
fn the_published_schema_is_that_of_the_code() {
    let schema =
        serde_json::to_string_pretty(&schemars::schema_for!(WatchDocument)).unwrap() + "\n";
    if std::env::var_os("VRAMFIT_WRITE_SCHEMA").is_some() {
        fs::write(schema_file(), &schema).unwrap();
    }
    assert_eq!(fs::read_to_string(schema_file()).unwrap_or_default(), schema);
}

#[test]
fn the_programs_own_status_and_output_are_kept() {
    for (script, status) in [("echo out; exit 7", 7), ("echo out; kill -SEGV $$", 128 + 11)] {
        let run = fake(&["watch", "--", "sh", "-c", script], &[]).run();
        assert_eq!((run.status, run.stdout.as_str()), (Some(status), "out\n"), "{run:?}");
        let last = "vramfit: nothing found; no optimizer step of PyTorch was seen\n";
        assert!(run.stderr.ends_with(last), "{run:?}");
    }
}

#[test]
fn without_a_gpu_it_says_how_to_watch_nevertheless() {
    Test::new(&["watch", "--", "true"])
        .stderr(
            "error: there is no NVIDIA GPU in this machine to watch a program on\n\
             hint: `--gpu NAME` runs it on a virtual one, which `vramfit gpus` lists; \
             `--replay FILE` looks at what was recorded elsewhere\n",
        )
        .status(3);
}

#[test]
fn what_describes_a_virtual_gpu_is_refused_for_a_real_one() {
    Test::new(&["watch", "--vram", "2GiB", "--", "true"])
        .stderr(
            "error: `--vram` is of virtual GPUs alone, and the program runs on a real one\n\
             hint: name a virtual one with `--gpu NAME`; `vramfit gpus` lists them\n",
        )
        .status(2);
}

#[test]
fn a_program_that_is_not_there_is_named() {
    fake(&["watch", "--", "no-such-program"], &[])
        .stderr(
            "error: cannot start `no-such-program`: No such file or directory (os error 2)\n\
             hint: it is looked for in PATH; one of this folder is called `./NAME`\n",
        )
        .status(2);
}

#[test]
fn a_signal_is_passed_on() {
    let run = fake(&["watch", "--", "sh", "-c", "kill -TERM $PPID; sleep 60"], &[]).run();
    assert_eq!(run.status, Some(128 + 15), "{run:?}");
    assert!(run.stderr.contains("ended by signal 15"), "{run:?}");
}

#[test]
fn a_full_disk_ends_the_record_alone_and_is_told_once() {
    let command = ["watch", "--record", "/dev/full", "--findings", "/dev/full", "--"];
    let run = fake(&[&command[..], &["sh", "-c", "sleep 0.5; exit 6"]].concat(), &[]).run();
    assert_eq!(run.status, Some(6), "{run:?}");
    let complaint = "error: cannot write `/dev/full`: No space left on device (os error 28)\n";
    // Of the record, and of the findings.
    assert_eq!(run.stderr.matches(complaint).count(), 2, "{run:?}");
    assert!(run.stderr.contains("vramfit: nothing found"), "{run:?}");
}

#[test]
fn a_record_that_cannot_be_begun_keeps_the_program_from_starting() {
    let command = ["watch", "--record", "no/run.jsonl", "--", "touch", "started"];
    let run = fake(&command, &[]).run();
    assert_eq!(run.status, Some(2), "{run:?}");
    assert!(!run.folder.path().join("started").exists());
}

#[test]
fn a_program_outlives_the_one_that_watches_it_and_the_record_stays_whole() {
    let script = "sleep 0.5; kill -KILL $PPID; sleep 0.5; touch survived";
    let command = ["watch", "--record", "run.jsonl", "--", "sh", "-c", script];
    // The folder of a virtual GPU would be left behind with it: one of the test's own.
    let test = fake(&command, &[]).file("tmp/.keep", "");
    let folder = test.path().join("tmp");
    let run = test.env("TMPDIR", folder.to_str().unwrap()).run();
    assert_eq!(run.status, None, "{run:?}");
    let survived = run.folder.path().join("survived");
    let deadline = Instant::now() + Duration::from_secs(20);
    while !survived.exists() {
        assert!(Instant::now() < deadline, "the program is gone: {run:?}");
        thread::sleep(Duration::from_millis(20));
    }
    let events = events(&run);
    assert!(events.iter().filter(|it| it["event"] == "reading").count() >= 2, "{events:?}");
    let again = replay(&run, &[]);
    assert_eq!((again.status, again.stderr.as_str()), (Some(0), ""), "{again:?}");
    assert!(again.stdout.contains("; its end was not seen\n"), "{again:?}");
}

#[test]
fn a_recorded_run_is_told_again_as_it_was() {
    let run = python(&["--findings", "found.json"], &trains("x = batch.cuda()", 12)).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let told: Vec<_> = run
        .stderr
        .lines()
        .filter_map(|line| line.strip_prefix("vramfit: "))
        .skip_while(|line| !line.starts_with("watched for "))
        .collect();
    let again = replay(&run, &[]);
    assert_eq!(again.stdout.lines().collect::<Vec<_>>(), told, "{run:?}");
    let document = json(&replay(&run, &["--json"]));
    let schema: Value = serde_json::from_str(&fs::read_to_string(schema_file()).unwrap()).unwrap();
    assert!(jsonschema::is_valid(&schema, &document), "{document}");
    let found = fs::read_to_string(run.folder.path().join("found.json")).unwrap();
    assert_eq!(serde_json::from_str::<Value>(&found).unwrap(), document);
    assert_eq!(document["summary"]["processes"][0]["steps"], 12);
    assert_eq!(document["summary"]["status"], 0);
}

#[test]
fn a_record_that_is_cut_off_is_told_as_far_as_it_goes() {
    let run = python(&[], &trains("x = batch.cuda()", 4)).run();
    let path = run.folder.path().join("run.jsonl");
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, &text[..text.len() - 12]).unwrap();
    let again = replay(&run, &[]);
    assert_eq!(again.status, Some(0), "{again:?}");
    assert_eq!(again.stderr, "vramfit: `run.jsonl` is cut off in its last line\n");
    assert!(again.stdout.contains("\n4 steps"), "{again:?}");
}

#[test]
fn what_is_no_recording_is_refused_with_its_line() {
    let watched = "{\"at\":0,\"event\":\"watched\",\"schema\":1,\"vramfit\":\"\",\"started\":0,\
                   \"command\":[],\"gpus\":[],\"may_spill\":false}\n";
    Test::new(&["watch", "--replay", "run.jsonl"])
        .file("run.jsonl", &format!("{watched}{{\"at\":1}}\n{watched}"))
        .stderr(
            "error: `run.jsonl` is no recording of `vramfit watch`, line 2: missing field `event`\n\
             hint: record one with `vramfit watch --record FILE -- python train.py`\n",
        )
        .status(2);
    Test::new(&["watch", "--replay", "missing.jsonl"])
        .stderr("error: cannot read `missing.jsonl`: No such file or directory (os error 2)\n")
        .status(2);
}

#[test]
fn a_program_that_is_killed_leaves_all_it_has_told() {
    let program = trains("x = batch.cuda()", 9) + "import os, signal\nos.kill(os.getpid(), 9)\n";
    let run = python(&[], &program).run();
    assert_eq!(run.status, Some(128 + 9), "{run:?}");
    let events = events(&run);
    assert_eq!(steps(&events), (1..=9).collect::<Vec<_>>());
    let last = events.last().unwrap();
    assert_eq!((&last["event"], &last["signal"]), (&"ended".into(), &9.into()), "{last}");
}

#[test]
fn a_program_is_told_of_its_own_peak_and_not_of_ours() {
    let program = trains(
        "x = batch.cuda(); big = torch.empty((8 - step) << 20, device='cuda'); del big",
        6,
    ) + "print(torch.cuda.max_memory_allocated(), torch.cuda.memory_stats()['segment.all.peak'])\n\
         torch.cuda.reset_peak_memory_stats()\n\
         print(torch.cuda.max_memory_allocated() == torch.cuda.memory_allocated())\n";
    let watched = python(&[], &program).run();
    let alone = of_command("run", &[], &program).run();
    assert_eq!(watched.status, Some(0), "{watched:?}");
    assert_eq!(watched.stdout, alone.stdout, "{watched:?}");
    assert!(watched.stdout.ends_with("True\n"), "{watched:?}");
    let events = events(&watched);
    let peaks: Vec<_> = of(&events, "step").map(|it| it["allocated_peak"].as_u64()).collect();
    // Before the first one there was neither the optimizer's state nor cuBLAS's workspace.
    assert!(peaks[1..].is_sorted_by(|a, b| a > b), "each step has a peak of its own: {peaks:?}");
}

#[test]
fn a_history_that_the_program_asked_for_is_its_own() {
    let program = "import torch\n\
         torch.cuda.memory._record_memory_history(max_entries=1000)\n"
        .to_owned()
        + &trains("x = batch.cuda()", 6)
        + "trace = torch.cuda.memory._snapshot()['device_traces'][0]\n\
           print(len(trace) > 20, any(it['frames'] for it in trace))\n";
    let watched = python(&[], &program).run();
    assert_eq!(watched.status, Some(0), "{watched:?}");
    assert_eq!(watched.stdout, "True True\n", "{watched:?}");
}

#[test]
fn one_file_is_not_taken_for_two_things() {
    fake(&["watch", "--record", "x", "--report", "./x", "--", "true"], &[])
        .stderr("error: `--report ./x`: the same file as `--record`\nhint: name two files\n")
        .status(2);
    Test::new(&["watch", "--replay", "run.jsonl", "--findings", "run.jsonl"])
        .file("run.jsonl", "{}")
        .stderr(
            "error: `--findings run.jsonl`: the same file as `--replay`\nhint: name two files\n",
        )
        .status(2);
}

#[test]
fn what_is_held_is_told_by_the_line_that_made_it() {
    let program = trains("x = batch.cuda(); kept.append(x * 2)", 21);
    let events = events(&python(&[], &program).run());
    let of_line = |event: &Value| {
        let places = event["places"].as_array().unwrap().iter();
        let kept = places.filter(|it| it["place"] == "program.py:11");
        kept.map(|it| it["blocks"].as_u64().unwrap()).max().unwrap_or(0)
    };
    let held: Vec<_> =
        of(&events, "kept").map(|it| (it["step"].as_u64().unwrap(), of_line(it))).collect();
    // And the batch itself.
    assert_eq!(held, [(5, 6), (10, 11), (20, 21), (21, 22)]);
    let last = of(&events, "kept").last().unwrap();
    let operators: Vec<_> =
        last["places"].as_array().unwrap().iter().map(|it| &it["operator"]).collect();
    assert!(operators.contains(&&"step".into()), "the optimizer's state: {last}");
    assert!(operators.contains(&&"backward".into()), "gradients: {last}");
}

#[test]
fn what_takes_seconds_to_import_is_left_alone() {
    // What is registered before `import torch` is run after our own end.
    let program = "import atexit, sys\n\
        atexit.register(lambda: print('torch._inductor' in sys.modules))\n\
        import torch\nx = torch.empty(4, device='cuda')\n";
    let run = python(&[], program).run();
    assert_eq!(run.stdout, "False\n", "{run:?}");
    assert_eq!(of(&events(&run), "kept").count(), 1, "{run:?}");
}

#[test]
fn evaluation_with_a_graph_is_told_from_a_frozen_part_of_a_model_that_trains() {
    let program = format!("{NET}{TRAINS_AND_EVALUATES}");
    let run = python(&[], &program).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let events = events(&run);
    let passes = |model: &str| {
        let own = of(&events, "pass").filter(|it| it["model"] == model);
        own.map(|it| (it["has_graph"] == true, it["trained"] == true)).collect::<Vec<_>>()
    };
    // Siamese: each step runs it twice before the backward pass.
    assert_eq!(passes("Body"), [(true, true); 6], "{run:?}");
    assert_eq!(passes("Net"), [(true, false), (false, false)], "{run:?}");
}

#[test]
fn a_model_that_is_watched_is_saved_and_compiled_as_it_would_be() {
    let program = format!("{NET}{SAVES_AND_COMPILES}");
    let run = python(&[], &program).run();
    assert_eq!((run.status, run.stdout.as_str()), (Some(0), "False 5 2\n"), "{run:?}");
}

#[test]
fn workers_of_a_loader_are_no_programs_that_train() {
    let program = trains("x = batch.cuda()", 8).replace("num_workers=0", "num_workers=2");
    let run = python(&[], &program).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let summary = &json(&replay(&run, &["--json"]))["summary"];
    assert_eq!(summary["processes"].as_array().unwrap().len(), 1, "{summary}");
    assert_eq!(summary["processes"][0]["steps"], 8);
    let waited: f64 =
        of(&events(&run), "step").filter_map(|it| it["loader_seconds"].as_f64()).sum();
    assert!(waited > 0.0);
}

#[test]
fn running_out_of_memory_is_told_though_the_program_goes_on() {
    let program = trains("x = batch.cuda()", 3)
        + "try:\n    torch.empty(8 << 30, device='cuda')\nexcept torch.OutOfMemoryError:\n    pass\n";
    let run = python(&[], &program).run();
    assert_eq!(run.status, Some(0), "{run:?}");
    let events = events(&run);
    let asked: Vec<_> = of(&events, "out-of-memory").map(|it| it["requested"].as_u64()).collect();
    assert_eq!(asked, [Some(32 << 30)]);
    assert!(run.stderr.contains("vramfit: PyTorch found no memory once\n"), "{run:?}");
}

#[test]
fn on_a_gpu_of_the_machine_the_driver_tells_whose_memory_is_whose() {
    let python = std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON);
    let watch = [env!("CARGO_BIN_EXE_vramfit"), "watch", "--record", "run.jsonl", "--", &python];
    let outer = ["run", "--gpu", "rtx-4060-laptop", "--"];
    let program = trains("x = batch.cuda()", 6) + "import time; time.sleep(0.5)\n";
    let run = with_virtual_gpu(Test::new(&[&outer[..], &watch, &["program.py"]].concat()))
        .file("program.py", &program)
        .env("PATH", &std::env::var("PATH").unwrap())
        .run();
    assert_eq!(run.status, Some(0), "{run:?}");
    assert!(!run.stderr.contains("watching has failed"), "{run:?}");
    let summary = &json(&replay(&run, &["--json"]))["summary"];
    let gpu = &summary["gpus"][0];
    assert_eq!(gpu["name"], "NVIDIA GeForce RTX 4060 Laptop GPU (virtual)");
    let [before, used, own] = ["held_before", "used_peak", "program_peak"]
        .map(|name| gpu[name].as_u64().unwrap_or_default());
    assert!(own > 0 && own == used - before, "{gpu}");
    assert_eq!(summary["processes"][0]["steps"], 6);
}

#[test]
fn two_are_watched_at_once_each_by_its_own() {
    let other = thread::spawn(|| {
        let run = python(&[], &trains("x = batch.cuda()", 5)).run();
        steps(&events(&run))
    });
    let run = python(&[], &trains("x = batch.cuda()", 7)).run();
    assert_eq!(steps(&events(&run)), (1..=7).collect::<Vec<_>>());
    assert_eq!(other.join().unwrap(), (1..=5).collect::<Vec<_>>());
}

#[test]
fn each_of_several_optimizers_has_stepped_when_a_step_is_told() {
    let program = "import torch\n\
        a, b, c = (torch.nn.Parameter(torch.zeros(4, device='cuda')) for _ in range(3))\n\
        one, two, never = (torch.optim.SGD([it], lr=0.1) for it in (a, b, c))\n\
        (a.sum() + b.sum() + c.sum()).backward()\n\
        never.step()\n\
        for step in range(40):\n    one.step(); one.step(); two.step()\n";
    let events = events(&python(&[], program).run());
    // Of the one that is used no longer nobody waits for ever.
    assert_eq!(steps(&events).last(), Some(&41));
}

const NO_PYTHON: &str = "VRAMFIT_PYTHON names no Python with PyTorch; run `make setup`";

/// A Python program on the virtual GPU, watched and recorded.
fn python(flags: &[&str], program: &str) -> Test {
    of_command("watch", &[&["--record", "run.jsonl"], flags].concat(), program)
}

fn of_command(command: &str, flags: &[&str], program: &str) -> Test {
    let python = std::env::var("VRAMFIT_PYTHON").expect(NO_PYTHON);
    let command = [&[command], flags, &["--", &python, "program.py"]].concat();
    fake(&command, &[]).file("program.py", program)
}

/// A program that trains so many steps, with this line 11 in each.
fn trains(line: &str, steps: usize) -> String {
    let rows = steps * 16;
    format!(
        "import torch\n\
         from torch import nn\n\
         model = nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 8)).cuda()\n\
         optimizer = torch.optim.AdamW(model.parameters())\n\
         data = torch.utils.data.TensorDataset(torch.zeros({rows}, 64))\n\
         kept = []\n\
         \n\
         \n\
         loader = torch.utils.data.DataLoader(data, batch_size=16, num_workers=0)\n\
         for step, (batch,) in enumerate(loader):\n    \
             {line}\n    \
             model(x).mean().backward()\n    \
             optimizer.step()\n    \
             optimizer.zero_grad()\n"
    )
}

const NET: &str = "
import torch
from torch import nn


class Body(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(16, 16), nn.ReLU(), nn.Linear(16, 16))

    def forward(self, x):
        return self.layers(x)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = Body()
        self.head = nn.Linear(16, 4)

    def train(self, mode=True):
        super().train(mode)
        self.body.eval()
        return self

    def forward(self, x):
        return {'logits': self.head(self.body(x))}
";

const TRAINS_AND_EVALUATES: &str = "
net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
x = torch.zeros(2, 16, device='cuda')
net.train()
for _ in range(3):
    (net(x)['logits'] - net(x)['logits']).pow(2).mean().backward()
    optimizer.step()
net.eval()
net(x)
with torch.no_grad():
    net(x)
net.train()
";

const SAVES_AND_COMPILES: &str = "
import io, copy
net = Net().eval()
file = io.BytesIO()
torch.save(net, file)
copy.deepcopy(net)
torch.jit.script(Body().eval())
traced = torch.fx.symbolic_trace(Body().eval())
compiled = torch.compile(net.cuda(), backend='eager', fullgraph=True)
x = torch.zeros(2, 16, device='cuda')
with torch.no_grad():
    compiled(x)
compiled.train()
compiled(x)['logits'].mean().backward()
from torch._dynamo.utils import counters
assert not counters['graph_break'], counters
graphs = counters['stats']['unique_graphs']
print(b'vramfit' in file.getvalue(), len(traced.graph.nodes), graphs)
";

fn replay(run: &Run, flags: &[&str]) -> Run {
    let record = fs::read_to_string(run.folder.path().join("run.jsonl")).unwrap();
    Test::new(&[&["watch", "--replay", "run.jsonl"], flags].concat())
        .file("run.jsonl", &record)
        .run()
}

/// The lines of a record, each of which is whole.
fn events(run: &Run) -> Vec<Value> {
    let text = fs::read_to_string(run.folder.path().join("run.jsonl")).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of<'a>(events: &'a [Value], event: &str) -> impl Iterator<Item = &'a Value> {
    events.iter().filter(move |it| it["event"] == event)
}

fn steps(events: &[Value]) -> Vec<u64> {
    of(events, "step").map(|it| it["step"].as_u64().unwrap()).collect()
}
