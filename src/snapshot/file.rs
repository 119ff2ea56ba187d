//! From a file to its [`Tree`]: a pickle or JSON, compressed or not.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

use super::tree::Tree;
use super::{Snapshot, content, json, pickle};
use crate::error::{Error, ErrorKind};

/// Most bytes of a snapshot, uncompressed; 100 000 events with their stacks take some 50 MB.
const MOST: u64 = 2 << 30;
const GZIP: [u8; 2] = [0x1f, 0x8b];
/// How a pickle of protocol 2 or later begins.
const PICKLE: u8 = 0x80;
/// How what `torch.save` writes begins.
const ZIP: [u8; 2] = *b"PK";

impl Snapshot {
    /// Reads a snapshot. Nothing of it is run, whatever it is.
    ///
    /// # Errors
    /// When it cannot be read, or is no snapshot with a trace in it.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let bytes = bytes(path).map_err(|source| match source.kind() {
            io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof => {
                broken(path, format!("its compression is broken: {source}"))
            }
            _ => Error::new(ErrorKind::Unreadable { path: path.to_path_buf(), source }),
        })?;
        Self::from_bytes(&bytes).map_err(|reason| broken(path, reason))
    }

    /// As [`Self::read`] of what is in the file, uncompressed.
    ///
    /// # Errors
    /// In words, why it is no snapshot.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        content::snapshot(&tree(bytes)?)
    }
}

fn broken(path: &Path, reason: String) -> Error {
    ErrorKind::BrokenSnapshot { path: path.to_path_buf(), reason }.into()
}

fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let mut file = File::open(path)?;
    let mut bytes = Vec::new();
    (&mut file).take(GZIP.len() as u64).read_to_end(&mut bytes)?;
    if bytes == GZIP {
        let compressed = bytes.as_slice().chain(file);
        let mut plain = Vec::new();
        MultiGzDecoder::new(compressed).take(MOST + 1).read_to_end(&mut plain)?;
        bytes = plain;
    } else {
        file.take(MOST).read_to_end(&mut bytes)?;
    }
    Ok(bytes)
}

fn tree(bytes: &[u8]) -> Result<Tree, String> {
    if bytes.len() as u64 > MOST {
        return Err("it is larger than 2 GiB".to_owned());
    }
    if bytes.starts_with(&ZIP) {
        return Err("it is a zip archive, as `torch.save` writes".to_owned());
    }
    match bytes.iter().find(|byte| !byte.is_ascii_whitespace()) {
        None => Err("it is empty".to_owned()),
        Some(&PICKLE) => pickle::read(bytes),
        Some(b'{' | b'[') => json::read(bytes),
        Some(_) => Err("it is neither a pickle (protocol 2 or later) nor JSON".to_owned()),
    }
}
