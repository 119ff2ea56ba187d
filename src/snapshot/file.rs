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

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::snapshot::Begin;

    const PICKLE_FILE: &[u8] = include_bytes!("../../tests/snapshots/small.pickle");
    const GZIP_FILE: &[u8] =
        include_bytes!("../../tests/snapshots/silmont2000__mem_snapshot.json.gz");

    fn json_file() -> Vec<u8> {
        let mut plain = Vec::new();
        MultiGzDecoder::new(GZIP_FILE).read_to_end(&mut plain).unwrap();
        plain
    }

    /// Reads it and, if it is a snapshot, makes of it what a replay needs.
    fn use_up(bytes: &[u8]) {
        for trace in Snapshot::from_bytes(bytes).map_or_else(|_| Vec::new(), |it| it.devices) {
            let history = trace.history();
            for begin in [Begin::AsRecorded, Begin::Afresh] {
                let script = history.script(begin);
                // Each event is an operation or two, each byte before it some more.
                assert!(script.operations.len() < 1 << 24);
            }
        }
    }

    proptest! {
        #[test]
        fn a_damaged_file_is_refused_or_read_and_nothing_worse(
            is_pickle: bool,
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let mut bytes = if is_pickle { PICKLE_FILE.to_vec() } else { json_file() };
            for (at, byte) in changes {
                let at = at.index(bytes.len());
                bytes[at] = byte;
            }
            use_up(&bytes);
            bytes.remove(cut.index(bytes.len()));
            use_up(&bytes);
        }

        #[test]
        fn any_bytes_are_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            use_up(&[&[PICKLE], bytes.as_slice()].concat());
        }
    }

    #[test]
    fn a_small_file_that_names_a_trace_a_million_times_is_refused() {
        // {'segments': [], 'device_traces': [t, t, …]}, where t holds 100 times the same event.
        let mut bytes = b"\x80\x04}(\x8c\x08segments]\x8c\x0ddevice_traces](".to_vec();
        bytes.extend(b"](}(\x8c\x06action\x8c\x05alloc\x8c\x04addrK\x01\x8c\x04sizeK\x01u\x94");
        bytes.extend(b"h\x00".repeat(100_000));
        bytes.extend(b"e\x94");
        bytes.extend(b"h\x01".repeat(1000));
        bytes.extend(b"eu.");
        let reason = Snapshot::from_bytes(&bytes).unwrap_err();
        assert!(reason.ends_with("events and blocks in all"), "{reason}");
    }

    #[test]
    fn other_files_are_told_from_snapshots() {
        for (bytes, reason) in [
            (&b""[..], "it is empty"),
            (b"PK\x03\x04", "it is a zip archive, as `torch.save` writes"),
            (b"<!DOCTYPE html>", "it is neither a pickle (protocol 2 or later) nor JSON"),
            (b"{\"a\": 1}", "it has no `device_traces`"),
            (b"[]", "it is a list, as `torch.cuda.memory_snapshot` gives, without a trace"),
            (b"{\"segments\": [], \"device_traces\": [[]]}", "no event is recorded in it"),
            (
                b"{\"segments\": [], \"device_traces\": [[{\"action\": \"alloc\", \"addr\": 1}]]}",
                "device_traces[0][0] has no `size`",
            ),
        ] {
            assert_eq!(Snapshot::from_bytes(bytes).unwrap_err(), reason);
        }
    }
}
