use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::error::{Error, ErrorKind};
use crate::snapshot::{Operation, Script};

/// A script as a child reads it, gone when this is dropped.
pub(super) struct Files(TempDir);

impl Files {
    pub(super) fn of(script: &Script) -> Result<Self, Error> {
        let write = || -> io::Result<Self> {
            let files = Self(tempfile::Builder::new().prefix("vramfit-replay-").tempdir()?);
            fs::write(files.script(), encoded(script))?;
            fs::write(files.lanes(), lanes(script).to_string())?;
            Ok(files)
        };
        write().map_err(|source| ErrorKind::Unwritable { path: env::temp_dir(), source }.into())
    }

    pub(super) fn script(&self) -> PathBuf {
        self.0.path().join("script")
    }

    pub(super) fn lanes(&self) -> PathBuf {
        self.0.path().join("lanes")
    }
}

/// Four numbers an operation (`python/vramfit_replay/script.py`).
fn encoded(script: &Script) -> Vec<u8> {
    let numbers = script.operations.iter().flat_map(|operation| match *operation {
        Operation::Alloc { block, bytes, lane } => [0, u64::from(block), bytes, u64::from(lane)],
        Operation::Free { block } => [1, u64::from(block), 0, 0],
        Operation::EmptyCache => [2, 0, 0, 0],
        Operation::Begin => [3, 0, 0, 0],
    });
    numbers.flat_map(u64::to_le_bytes).collect()
}

fn lanes(script: &Script) -> Value {
    let lanes = script.lanes.iter().map(
        |lane| json!({"stream": lane.stream, "pool": lane.pool.map(|(one, other)| [one, other])}),
    );
    Value::from(lanes.collect::<Vec<_>>())
}
