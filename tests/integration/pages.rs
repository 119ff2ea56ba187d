//! Pages for a browser (`--report`): what they say, and how they look in a real one.

use std::fs;
use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vramfit::plan::{self, Plan};
use vramfit::report::{self, plan_page, watch_page};
use vramfit::units::Bytes;
use vramfit::watch::{
    Entry, Event, Gpu, KeptAt, RECORDING_SCHEMA, Reading, Recording, Step, Watched,
};

use crate::browser::{Browser, View};
use crate::harness::Test;
use crate::recordings;

/// As on a desk and as on a phone, by day and by night.
const VIEWS: [View; 4] = [
    View { width: 1280, scheme: "light" },
    View { width: 1280, scheme: "dark" },
    View { width: 390, scheme: "light" },
    View { width: 390, scheme: "dark" },
];
const LOOKS: &str = include_str!("browser/looks.js");
const EVIL: &str = "<script>alert(1)</script>\"'&<img src=x onerror=alert(1)>";

fn stored(name: &str) -> Plan {
    plan::read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)).unwrap()
}

/// Plans of every shape that there is.
fn plans() -> Vec<(&'static str, Plan)> {
    let contexts = stored("pages/gpt2-contexts.json");
    let resnet = stored("pages/resnet50.json");
    // Nothing fits: no recommendation, and all that was run was too large.
    let mut nothing = resnet.clone();
    (nothing.recommendation, nothing.alternatives, nothing.pareto) = (None, Vec::new(), Vec::new());
    nothing.budget.budget = Bytes::mib(400);
    nothing.measurements.truncate(3);
    let mut unknown = nothing.clone();
    (unknown.measurements, unknown.ladder, unknown.incomplete) = (Vec::new(), Vec::new(), true);
    vec![
        ("resnet50", resnet),
        ("contexts", contexts),
        ("without speeds", stored("export/plan.json")),
        ("nothing fits", nothing),
        ("nothing known", unknown),
    ]
}

/// A run of a laptop that leaks, with every kind of reading.
fn recording() -> Recording {
    let gpu = Gpu {
        index: 0,
        name: "NVIDIA GeForce RTX 3050 Laptop GPU".to_owned(),
        laptop: true,
        total: Bytes::gib(4),
        held: Bytes::mib(300),
        highest_clock: Some(1740),
        power_limit: Some(80_000),
        ..Gpu::default()
    };
    let command = vec!["python".to_owned(), "train.py".to_owned(), EVIL.to_owned()];
    let watched = Watched {
        schema: RECORDING_SCHEMA,
        vramfit: "0.1.0".to_owned(),
        command,
        gpus: vec![gpu],
        ..Watched::default()
    };
    let mut entries = Vec::new();
    let mut push = |at: f64, event| entries.push(Entry { at, event });
    for second in 0..900u32 {
        let at = f64::from(second);
        let used = Bytes::mib(900 + u64::from(second) * 2);
        push(
            at,
            Event::Reading(Reading {
                gpu: 0,
                used,
                process: Some(Bytes(used.get() - Bytes::mib(300).get())),
                utilisation: Some(90 - second % 7),
                clock: Some(1740 - second / 3),
                power: Some(60_000 + second * 10),
                temperature: Some(50 + second / 40),
                ..Reading::default()
            }),
        );
        let step = Step {
            pid: 7,
            step: u64::from(second) + 1,
            seconds: Some(0.9 + f64::from(second % 10) / 100.0),
            loader_seconds: Some(0.1),
            allocated: Bytes::mib(400 + u64::from(second) * 2),
            allocated_peak: Bytes::mib(500 + u64::from(second) * 2),
            reserved: Bytes::mib(600 + u64::from(second) * 2),
            ..Step::default()
        };
        push(at + 0.5, Event::Step(step));
    }
    let kept = KeptAt {
        place: "train.py:42 in main".to_owned(),
        operator: "add".to_owned(),
        module: Some("Linear".to_owned()),
        bytes: Bytes::gib(1),
        blocks: 900,
    };
    push(900.0, Event::Kept { pid: 7, step: 900, places: vec![kept] });
    push(901.0, Event::Ended { status: Some(0), signal: None });
    Recording { watched, entries }
}

/// Tags of a page: its markup without what stands in between.
fn tags(page: &str) -> impl Iterator<Item = &str> {
    page.split('<').skip(1).map(|rest| rest.split('>').next().unwrap_or_default())
}

#[track_caller]
fn holds_nothing_foreign(page: &str) {
    assert!(page.starts_with("<!DOCTYPE html><html lang=\"en\">"), "{}", &page[..60]);
    for tag in tags(page) {
        assert!(!tag.starts_with("script") && !tag.starts_with("img"), "<{tag}>");
        for loads in ["src=", "href=\"http", "url(", "@import"] {
            assert!(!tag.contains(loads), "<{tag}>");
        }
    }
    assert!(!page.contains("url(") && !page.contains("@import"));
}

#[track_caller]
fn is_well_formed(page: &str) {
    const VOID: [&str; 2] = ["meta", "!DOCTYPE"];
    let mut open = Vec::new();
    for tag in tags(page) {
        let name = tag.split([' ', '/']).find(|name| !name.is_empty()).unwrap();
        if tag.starts_with('/') {
            assert_eq!(open.pop(), Some(name), "</{name}>");
        } else if !VOID.contains(&name) {
            open.push(name);
        }
    }
    assert_eq!(open, [""; 0]);
}

#[test]
fn a_page_holds_every_number_of_the_table() {
    for (name, plan) in plans() {
        let page = plan_page(&plan, "vramfit plan --target-batch 64");
        holds_nothing_foreign(&page);
        is_well_formed(&page);
        let plain = page.replace('−', "-").replace('×', "x");
        let table = report::named("table").unwrap().render(&plan);
        let numbers = table.split(|it: char| it.is_whitespace() || "();,:".contains(it));
        let numbers = numbers.map(|word| word.trim_end_matches(['.', '%']).trim_start_matches('+'));
        for number in numbers.filter(|word| word.starts_with(|it: char| it.is_ascii_digit())) {
            assert!(plain.contains(number), "{name}: no {number} of\n{table}");
        }
    }
}

#[test]
fn words_of_the_user_are_words_on_the_page() {
    let (_, mut plan) = plans().remove(0);
    plan.device.name = EVIL.to_owned();
    plan.command = Some(EVIL.to_owned());
    let pages = [plan_page(&plan, EVIL), watch_page(&recording(), &[])];
    for page in pages {
        holds_nothing_foreign(&page);
        is_well_formed(&page);
        assert!(page.contains("&lt;script&gt;alert(1)&lt;/script&gt;"));
    }
}

#[test]
fn a_page_that_cannot_be_written_is_told_before_anything_is_run() {
    Test::new(&[
        "plan",
        "--target-batch",
        "64",
        "--gpu",
        "t4",
        "--report",
        "/nonexistent/page.html",
    ])
    .stderr(
        "error: cannot write `/nonexistent/page.html`: No such file or directory (os error 2)\n",
    )
    .status(2);
    Test::new(&["plan", "--target-batch", "64", "--gpu", "t4", "--report", "x", "--output", "x"])
        .stderr("error: `--report x`: the same file as `--output`\nhint: name two files\n")
        .status(2);
}

/// A page of each kind, by name.
fn write_all(folder: &Path) -> Vec<PathBuf> {
    let write = |(name, page): (String, String)| {
        let path = folder.join(format!("{}.html", name.replace(' ', "-")));
        fs::write(&path, page).unwrap();
        path
    };
    let made_by = format!("vramfit plan --target-batch 64 -- {EVIL}");
    let plans = plans().into_iter();
    let mut pages: Vec<_> =
        plans.map(|(name, plan)| (name.to_owned(), plan_page(&plan, &made_by))).collect();
    pages.push(("watch".to_owned(), watch_page(&recording(), &vramfit::watch::find(&recording()))));
    for (name, recording) in [("spill", recordings::spill()), ("throttle", recordings::throttle())]
    {
        let found = vramfit::watch::find(&recording);
        assert!(!found.is_empty(), "{name}");
        pages.push((name.to_owned(), watch_page(&recording, &found)));
    }
    pages.push(("watch of nothing".to_owned(), watch_page(&Recording::default(), &[])));
    let mut paths: Vec<_> = pages.into_iter().map(write).collect();
    paths.extend(runs(folder));
    paths
}

/// A run that ends well, one that runs out of memory and one that never touches the GPU, where there is a
/// Python with PyTorch.
fn runs(folder: &Path) -> Vec<PathBuf> {
    let python = std::env::var("VRAMFIT_PYTHON").ok();
    assert!(python.is_some() || cfg!(debug_assertions), "`make test` says which Python to use");
    let Some(python) = python else { return Vec::new() };
    let run = |(name, size, status): (&str, &str, i32)| {
        let page = folder.join(name);
        let path = page.to_str().unwrap();
        let gpu = ["run", "--gpu", "rtx-3050-laptop-4gb", "--report", path, "--"];
        let arguments = [gpu.as_slice(), &[python.as_str(), "train.py", size]].concat();
        let run = Test::new(&arguments).file("train.py", TRAIN).run();
        assert_eq!(run.status, Some(status), "{}", run.stderr);
        page
    };
    [("run.html", "64", 0), ("out-of-memory.html", "200000", 1), ("unused.html", "0", 0)]
        .map(run)
        .into()
}

const TRAIN: &str = r#"import sys

size = int(sys.argv[1])
if size == 0:
    sys.exit()

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(1024, 4096)
        self.second = nn.Linear(4096, 1024)

    def forward(self, x):
        return self.second(torch.relu(self.first(x)))


model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(4):
    loss = model(torch.randn(size, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"#;

#[test]
fn a_watched_run_tells_what_was_found_and_what_to_do() {
    let recording = recordings::spill();
    let found = vramfit::watch::find(&recording);
    let page = watch_page(&recording, &found);
    let escape = |text: &str| text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    for finding in &found {
        let told = [finding.evidence(), finding.remedies(), vec![finding.headline()]].concat();
        for line in told {
            assert!(page.contains(&escape(&line).replace('"', "&quot;")), "no {line}");
        }
    }
    holds_nothing_foreign(&page);
    is_well_formed(&page);
}

#[test]
fn a_run_tells_what_was_in_use_at_its_peak_and_by_whom() {
    let folder = tempfile::tempdir().unwrap();
    let pages = runs(folder.path());
    let [whole, out_of_memory, unused] = pages.as_slice() else { return };
    let read = |path: &PathBuf| fs::read_to_string(path).unwrap();
    let whole = read(whole);
    for told in
        ["Ran to its end", "in Linear", "train.py:18 in forward", "linear", "backward", "optimizer"]
    {
        assert!(whole.contains(told), "no {told}");
    }
    let out_of_memory = read(out_of_memory);
    for told in ["Ran out of memory", "no room for", "train.py:18 in forward"] {
        assert!(out_of_memory.contains(told), "no {told}");
    }
    assert!(read(unused).contains("the command did not use the GPU"));
    for page in [whole, out_of_memory, read(unused)] {
        holds_nothing_foreign(&page);
        is_well_formed(&page);
    }
}

#[test]
fn pages_look_right_in_a_browser() {
    let Some(mut browser) = Browser::start() else { return };
    let folder = TempDir::new().unwrap();
    let mut faults = Vec::new();
    for page in write_all(folder.path()) {
        let name = page.file_stem().unwrap().to_string_lossy().into_owned();
        let mut grounds = Vec::new();
        for view in VIEWS {
            let complaints = browser.open(&page, view);
            let found = browser.evaluate(LOOKS);
            let at = format!("{name} at {} px, {}", view.width, view.scheme);
            faults.extend(complaints.iter().map(|it| format!("{at}: {it}")));
            let list = found["faults"].as_array().unwrap();
            faults.extend(list.iter().map(|it| format!("{at}: {it}")));
            grounds.push(found["ground"].clone());
            let least = match name.as_str() {
                "resnet50" | "contexts" => 5,
                "run" | "out-of-memory" => 4,
                "watch" => 7,
                _ => 0,
            };
            assert!(found["charts"].as_u64() >= Some(least), "{at}: {}", found["charts"]);
        }
        assert_ne!(grounds[0], grounds[1], "{name}: light and dark are alike");
    }
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}
