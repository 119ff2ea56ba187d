use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Stdio};

use serde::Deserialize;
use serde_json::Value;
use vramfit_vgpu_schema::{Python, Report};

use super::environments::{self, Environment};

pub(crate) const MIB: u64 = 1 << 20;

/// A program of `programs/`, to be run on the virtual GPU.
#[must_use]
pub(crate) struct Program<'a> {
    environment: Environment,
    name: &'a str,
    flags: Vec<&'a str>,
    arguments: Vec<&'a str>,
    ranks: u32,
    reads: BTreeSet<&'a str>,
}

/// What a run that went well left.
#[derive(Debug)]
pub(crate) struct Trained {
    /// What the program printed of itself; of several ranks, in their order.
    pub(crate) answers: Vec<Value>,
    /// What vramfit wrote of it.
    pub(crate) document: Document,
    /// Standard error.
    pub(crate) said: String,
}

/// The parts of the document of `--report` that tests look at.
#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    pub(crate) gpus: usize,
    pub(crate) exit_status: Option<i32>,
    pub(crate) processes: Vec<Report>,
}

impl<'a> Program<'a> {
    pub(crate) fn new(name: &'a str, arguments: &[&'a str]) -> Self {
        Self {
            environment: environments::main(),
            name,
            flags: Vec::new(),
            arguments: arguments.to_vec(),
            ranks: 1,
            // The loss, or a norm of gradients, which programs print.
            reads: BTreeSet::from(["float32"]),
        }
    }

    /// With a flag of `vramfit run`.
    pub(crate) fn flags(mut self, flags: &[&'a str]) -> Self {
        self.flags.extend(flags);
        self
    }

    /// With another PyTorch.
    pub(crate) fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Started by `torchrun`, so many times.
    pub(crate) fn ranks(mut self, ranks: u32) -> Self {
        self.ranks = ranks;
        self
    }

    /// Types of values, besides `float32`, that the program is known to read though they depend on
    /// what nothing computes.
    pub(crate) fn reads(mut self, elements: &[&'a str]) -> Self {
        self.reads.extend(elements);
        self
    }

    /// Runs it; its output, what vramfit wrote, and standard error.
    #[track_caller]
    fn run(&self) -> (String, Document, String) {
        let folder = tempfile::tempdir().unwrap();
        let file = format!("{}.py", self.name);
        let programs = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/frameworks/programs");
        std::fs::copy(programs.join(&file), folder.path().join(&file)).unwrap();
        let bin = self.environment.python.parent().unwrap();
        let path = std::env::join_paths(
            [bin.to_owned()]
                .into_iter()
                .chain(std::env::split_paths(&std::env::var_os("PATH").unwrap())),
        );
        let mut command = Command::new(env!("CARGO_BIN_EXE_vramfit"));
        command.args(["run", "--gpu", "rtx-4060-laptop", "--report", "report.json"]);
        command.args(&self.flags).arg("--");
        let ranks = self.ranks.to_string();
        match self.ranks {
            1 => command.arg("python"),
            _ => command.args(["torchrun", "--nproc_per_node", &ranks]),
        };
        command
            .arg(&file)
            .args(&self.arguments)
            .current_dir(folder.path())
            .env_clear()
            .env("PATH", path.unwrap())
            // What frameworks cache, and what they would load, is not there.
            .env("HOME", folder.path())
            .env("HF_HUB_OFFLINE", "1")
            .env("PYTHONDONTWRITEBYTECODE", "1")
            // Two cores are shared by all: more threads only disturb each other.
            .env("OMP_NUM_THREADS", "1")
            .stdin(Stdio::null());
        if let Some(library) = std::env::var_os("VRAMFIT_VGPU_LIBRARY") {
            command.env("VRAMFIT_VGPU_LIBRARY", library);
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let report = std::fs::read(folder.path().join("report.json"))
            .unwrap_or_else(|error| panic!("{}: no report ({error})\n{said}", self.title()));
        let document = serde_json::from_slice(&report).unwrap();
        (String::from_utf8_lossy(&output.stdout).into_owned(), document, said)
    }

    fn title(&self) -> String {
        let words = [&self.flags[..], &[self.name], &self.arguments[..]].concat();
        format!("{} under {}", words.join(" "), self.environment.name)
    }

    /// Runs it to its end and asks what is asked of every program: that it ended well after so many
    /// steps of its optimizer and micro-batches; that the virtual GPU knew all that was called; that
    /// PyTorch's own peaks are those of the report; and that what it read is understood.
    #[track_caller]
    pub(crate) fn trains(self, steps: u64, micro_batches: u64) -> Trained {
        let title = self.title();
        let (output, document, said) = self.run();
        assert_eq!(document.exit_status, Some(0), "{title}:\n{output}{said}");
        let mut answers: Vec<Value> = output
            .lines()
            .filter(|line| line.starts_with("{\""))
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        answers.sort_by_key(|answer| answer["rank"].as_u64());
        assert_eq!(answers.len(), self.ranks as usize, "{title}:\n{output}");
        let with_gpu = document.processes.iter().filter(|it| it.launches > 0);
        assert_eq!(with_gpu.count(), answers.len(), "{title}");
        for (answer, report) in answers.iter().zip(&document.processes) {
            assert_eq!(answer["steps"], steps, "{title}");
            assert_eq!(answer["micro_batches"], micro_batches, "{title}");
            assert_eq!(report.not_implemented, Vec::<String>::new(), "{title}");
            assert_eq!(report.internal_errors, Vec::<String>::new(), "{title}");
            let python = report.python.as_ref().unwrap();
            let [allocator] = &python.allocators[..] else { panic!("{title}: {python:?}") };
            assert_eq!(answer["allocated"], allocator.allocated_peak_bytes, "{title}");
            assert_eq!(answer["reserved"], allocator.reserved_peak_bytes, "{title}");
            assert_eq!((allocator.retries, &python.ended_by), (0, &None), "{title}");
            let peak = &report.process_peak[allocator.device as usize];
            let taken = peak.context_bytes + allocator.reserved_peak_bytes;
            assert!(peak.total_bytes >= taken, "{title}: {peak:?}");
            self.assert_understood(report, python);
        }
        Trained { answers, document, said }
    }

    /// What the program read, by the account of shadow execution where it was at work.
    #[track_caller]
    fn assert_understood(&self, report: &Report, python: &Python) {
        let (title, shadow) = (self.title(), &python.shadow);
        if shadow.absent.is_some() {
            return;
        }
        assert!(shadow.computed > 0, "{title}: {shadow:?}");
        assert_eq!(shadow.failures, Vec::<String>::new(), "{title}");
        assert_eq!(report.read_backs, Vec::new(), "{title}");
        let reads = &shadow.unknown_reads;
        let not_understood: Vec<_> =
            reads.iter().filter(|read| !self.reads.contains(read.element.as_str())).collect();
        assert!(not_understood.is_empty(), "{title}: {not_understood:?}");
    }

    /// Runs it to the out-of-memory error that ends it; the lines of the program that asked for the
    /// memory, innermost first.
    #[track_caller]
    pub(crate) fn runs_out_of_memory(self) -> Vec<String> {
        let (output, document, said) = self.run();
        let title = self.title();
        assert_eq!(document.exit_status, Some(1), "{title}:\n{output}{said}");
        assert!(said.contains("torch.OutOfMemoryError: CUDA out of memory."), "{title}: {said}");
        let [report] = &document.processes[..] else { panic!("{title}: {document:?}") };
        let python = report.python.as_ref().unwrap();
        let ended = python.ended_by.as_ref().unwrap();
        assert!(ended.out_of_memory, "{title}: {ended:?}");
        let last = python.out_of_memory.last().unwrap();
        assert_eq!(last.places.first(), ended.place.as_ref(), "{title}");
        let line = ended.place.as_ref().unwrap().line;
        let line = format!(" at {}.py:{line}", self.name);
        assert!(said.contains(&line), "{title}: no `{line}` in\n{said}");
        last.places.iter().map(|place| place.code.clone()).collect()
    }
}

impl Trained {
    /// A number that the program printed; of the first rank where there are several.
    pub(crate) fn number(&self, name: &str) -> u64 {
        self.answers[0][name].as_u64().unwrap_or_else(|| panic!("no {name}: {:?}", self.answers[0]))
    }

    /// Highest total of live blocks, in bytes.
    pub(crate) fn allocated(&self) -> u64 {
        self.number("allocated")
    }

    /// All peaks of the first process, for comparing runs to the byte: PyTorch's two, the device's.
    pub(crate) fn peaks(&self) -> [u64; 3] {
        let report = &self.document.processes[0];
        let total = report.process_peak.iter().map(|peak| peak.total_bytes).sum();
        [self.allocated(), self.number("reserved"), total]
    }

    /// What the Python side told of the first process.
    pub(crate) fn python(&self) -> &Python {
        self.document.processes[0].python.as_ref().unwrap()
    }
}
