use std::fs::File;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::{Error, ErrorKind};
use crate::measurement::Measurement;

/// A file of measurements, one JSON object a line, written as they come so that none is lost.
#[derive(Clone, Debug)]
pub struct Record {
    path: PathBuf,
    file: Arc<File>,
}

impl Record {
    /// Opens the file; what is in it already stays.
    ///
    /// # Errors
    /// When it cannot be opened for writing.
    pub fn open(path: &Path) -> Result<Self, Error> {
        match File::options().create(true).append(true).open(path) {
            Ok(file) => Ok(Self { path: path.to_path_buf(), file: Arc::new(file) }),
            Err(source) => Err(ErrorKind::Unwritable { path: path.to_path_buf(), source }.into()),
        }
    }

    /// Appends one measurement.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn append(&mut self, measurement: &Measurement) -> Result<(), Error> {
        serde_json::to_string(measurement)
            .map_err(io::Error::from)
            // In one piece: copies of this and other programs may append to the same file.
            .and_then(|line| (&*self.file).write_all((line + "\n").as_bytes()))
            .map_err(|source| ErrorKind::Unwritable { path: self.path.clone(), source }.into())
    }
}
