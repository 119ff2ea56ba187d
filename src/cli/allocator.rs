//! What the user's environment says to PyTorch's allocator: passed on, since it changes memory, and
//! said, since a plan holds only with it.

use std::env;

use crate::error::{Error, ErrorKind, one_line};
use crate::plan::{ALLOCATOR_VARIABLES, Note};

/// Notes of those that are set.
pub(super) fn notes() -> Vec<Note> {
    set().map(|(variable, value)| Note::AllocatorVariable { variable, value }).collect()
}

/// Adds to a worker's failure that one of them may have caused it.
pub(super) fn hinted(error: Error) -> Error {
    match error.kind() {
        ErrorKind::WorkerRefused { .. }
        | ErrorKind::WorkerKilled { .. }
        | ErrorKind::WorkerEnded { .. }
        | ErrorKind::NothingMeasured { .. } => set().fold(error, |error, (variable, value)| {
            error.hint(format!("`{variable}={value}` was passed on to it; try without it"))
        }),
        _ => error,
    }
}

fn set() -> impl Iterator<Item = (String, String)> {
    ALLOCATOR_VARIABLES.into_iter().filter_map(|name| {
        let value = env::var_os(name).filter(|value| !value.is_empty())?;
        Some((name.to_owned(), one_line(&value.to_string_lossy())))
    })
}
