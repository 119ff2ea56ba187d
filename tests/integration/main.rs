//! Tests of the whole program and of its data; what concerns one function is tested beside it.
#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

/// The comparisons with published measurements, and their page.
mod accuracy;
/// A browser that looks at pages.
mod browser;
/// What a campaign does with workers that fail in its midst.
mod campaign;
/// `vramfit check`.
mod check;
/// How commands answer: words, streams, exit status.
mod cli;
/// `-- COMMAND`: any program, run and watched.
mod command;
/// `vramfit plan --seq` with several lengths.
mod contexts;
/// `vramfit doctor`.
mod doctor;
/// `vramfit equivalence`.
mod equivalence;
/// `vramfit export`: what it writes, and that frameworks train by it as planned.
mod export;
/// The fake worker.
mod fake;
/// Which module may know of which.
mod floors;
/// `--workload`: the user's own function.
mod function;
/// `vramfit gpu-check`.
mod gpu_check;
/// The strict builder that the others run the program with.
mod harness;
/// `vramfit lint`.
mod lint;
/// `--report`: pages for a browser.
mod pages;
/// `vramfit plan`: the document, its schema, and what it may be asked.
mod plan;
/// The files in `profiles/`, and a user's own.
mod profiles;
/// Scripted recordings of runs, healthy and not.
mod recordings;
/// `vramfit replay`.
mod replay;
/// `vramfit run`.
mod run;
mod selective;
/// How fast a plan says that training is.
mod speed;
/// The whole flow with the real worker, PyTorch and the virtual GPU.
mod training;
/// Programs with faults and without, watched.
mod watch_faults;
/// What detectors find in recordings.
mod watch_findings;
/// How the end of a worker is read and worded.
mod worker;
