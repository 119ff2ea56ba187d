//! vramfit plans the memory of a training run before it starts.
//!
//! ```text
//! profiles, flags ─► workload ─► campaign ─► measurements ─► solve ─► plan ─► report
//!                                   │  ▲
//!                   one JSON line each way (requests, replies)
//!                                   ▼  │
//!                            a worker: a child process that trains for real,
//!                            on a real GPU or on the virtual one
//! ```
//!
//! Modules stand in floor order: each uses the ones above it here and never one below. A test reads
//! the `use` lines and holds it.
#![forbid(unsafe_code)]

pub mod destination;
pub mod error;
pub mod units;

pub mod lint;
pub mod profile;
pub mod snapshot;

pub mod workload;

pub mod device;
pub mod measurement;
pub mod survey;

pub mod probe;

pub mod doctor;
pub mod equivalence;
pub mod replay;
pub mod watch;

pub mod comparison;
pub mod plan;
pub mod solve;

pub mod export;
pub mod report;

pub mod cli;
