use std::fs::File;
use std::io::{self, BufRead as _, BufReader, Write as _};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::history::History;
use super::recording::{Entry, Event, RECORDING_SCHEMA, Recording};
use crate::error::{Error, ErrorKind};

/// A recording that is written as the program runs: whole lines, of which none waits in a buffer.
#[derive(Debug)]
pub struct RecordFile {
    path: PathBuf,
    file: File,
}

impl RecordFile {
    /// Begins a recording in place of what is there.
    ///
    /// # Errors
    /// When the file cannot be written, or another run is being written to it.
    pub fn create(path: &Path) -> Result<Self, Error> {
        let unwritable = |source| ErrorKind::Unwritable { path: path.to_owned(), source };
        let file = File::options().write(true).create(true).truncate(false).open(path);
        let file = file.map_err(unwritable)?;
        // A pipe, or `/dev/stderr`, is neither emptied nor ours alone.
        if file.metadata().map_err(unwritable)?.is_file() {
            match flock(&file, FlockOperation::NonBlockingLockExclusive) {
                Err(Errno::WOULDBLOCK) => {
                    let reason = "another program that is watched is recorded there";
                    let reason = io::Error::new(io::ErrorKind::ResourceBusy, reason);
                    return Err(Error::new(unwritable(reason)).hint("name a file for each"));
                }
                // Not every file system has locks.
                Ok(()) | Err(_) => file.set_len(0).map_err(unwritable)?,
            }
        }
        Ok(Self { path: path.to_owned(), file })
    }

    /// Adds lines.
    ///
    /// # Errors
    /// When the disk is full, and the like.
    pub fn append(&mut self, entries: &[Entry]) -> Result<(), Error> {
        let mut text = Vec::new();
        let written = entries.iter().try_for_each(|entry| {
            serde_json::to_writer(&mut text, entry)?;
            text.push(b'\n');
            Ok(())
        });
        written
            .and_then(|()| self.file.write_all(&text))
            .map_err(|source| ErrorKind::Unwritable { path: self.path.clone(), source }.into())
    }
}

/// What was read of a recording.
#[derive(Clone, Debug, PartialEq)]
pub struct Replayed {
    /// As the detectors want it.
    pub recording: Recording,
    /// Its last line is not whole.
    pub cut_off: bool,
}

/// Reads a recording. A last line that is not whole, as a full disk or a kill leave it, is passed
/// over.
///
/// # Errors
/// When the file cannot be read, or is no recording of a version that can be.
pub fn read_recording(path: &Path) -> Result<Replayed, Error> {
    let unreadable = |source| ErrorKind::Unreadable { path: path.to_owned(), source };
    let broken = |line: usize, reason: String| {
        Error::new(ErrorKind::BrokenRecording { path: path.to_owned(), line, reason })
    };
    let mut reader = BufReader::new(File::open(path).map_err(unreadable)?);
    let mut history: Option<History> = None;
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        if reader.read_until(b'\n', &mut line).map_err(unreadable)? == 0 {
            break;
        }
        let whole = line.ends_with(b"\n");
        match (serde_json::from_slice::<Entry>(&line), &mut history) {
            (Ok(Entry { event: Event::Watched(_), .. }), Some(_)) => {
                return Err(broken(number, "another recording begins there".to_owned()));
            }
            (Ok(entry), Some(history)) => history.add(entry),
            (Ok(Entry { event: Event::Watched(watched), .. }), None) => {
                if watched.schema != RECORDING_SCHEMA {
                    let reason = format!(
                        "it is of version {}; this vramfit reads version {RECORDING_SCHEMA}",
                        watched.schema
                    );
                    return Err(broken(number, reason));
                }
                history = Some(History::new(watched));
            }
            (Ok(_), None) => {
                return Err(broken(number, "it does not begin with what was watched".to_owned()));
            }
            (Err(_), Some(history)) if !whole => {
                return Ok(Replayed { recording: history.take(), cut_off: true });
            }
            (Err(error), _) => return Err(broken(number, reason(&error))),
        }
    }
    match history {
        Some(mut history) => Ok(Replayed { recording: history.take(), cut_off: false }),
        None => Err(broken(1, "it is empty".to_owned())),
    }
}

/// serde's words without the place within the line, which it calls line 1.
fn reason(error: &serde_json::Error) -> String {
    let text = error.to_string();
    text.rsplit_once(" at line ").map_or(text.clone(), |(what, _)| what.to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::watch::{Reading, Watched};

    fn watched(schema: u32) -> Entry {
        let watched = Watched { schema, ..Watched::default() };
        Entry { at: 0.0, event: Event::Watched(watched) }
    }

    fn reading(at: f64) -> Entry {
        Entry { at, event: Event::Reading(Reading::default()) }
    }

    fn read(text: &[u8]) -> Result<Replayed, Error> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        fs::write(&path, text).unwrap();
        read_recording(&path)
    }

    fn written(entries: &[Entry]) -> Vec<u8> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        fs::write(&path, "what was there before\n".repeat(99)).unwrap();
        RecordFile::create(&path).unwrap().append(entries).unwrap();
        fs::read(path).unwrap()
    }

    #[test]
    fn what_is_written_is_read_again_in_the_order_of_time() {
        let text = written(&[watched(RECORDING_SCHEMA), reading(2.5), reading(1.25)]);
        let Replayed { recording, cut_off } = read(&text).unwrap();
        assert_eq!(recording.entries, [reading(1.25), reading(2.5)]);
        assert!(!cut_off);
    }

    #[test]
    fn a_last_line_that_is_not_whole_is_passed_over_and_told() {
        let text = written(&[watched(RECORDING_SCHEMA), reading(1.0), reading(2.0)]);
        let seen = read(&text[..text.len() - 9]).unwrap();
        assert_eq!((seen.recording.entries, seen.cut_off), (vec![reading(1.0)], true));
        let seen = read(&text[..text.len() - 1]).unwrap();
        assert_eq!((seen.recording.entries.len(), seen.cut_off), (2, false), "no line end alone");
    }

    #[test]
    fn what_is_no_recording_is_refused_with_its_line() {
        let begin = written(&[watched(RECORDING_SCHEMA)]);
        let said = |text: &[u8]| read(text).unwrap_err().to_string();
        assert!(said(b"").ends_with(" line 1: it is empty"));
        let second = [&begin, b"{\"at\": 1.0}\n".as_slice()].concat();
        assert!(said(&second).contains(" line 2: missing field"), "{}", said(&second));
        let cut_in_the_midst = [&begin, b"{\"at\": 1\n".as_slice(), &written(&[reading(1.0)])];
        assert!(said(&cut_in_the_midst.concat()).contains(" line 2: "));
        assert!(said(&written(&[reading(1.0)])).ends_with("begin with what was watched"));
        let twice = [begin.clone(), written(&[reading(1.0)]), begin.clone()].concat();
        assert!(said(&twice).ends_with(" line 3: another recording begins there"));
        assert!(said(&written(&[watched(99)])).contains("version 99; this vramfit reads version"));
    }

    #[test]
    fn one_file_takes_one_recording_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("run.jsonl");
        let mut first = RecordFile::create(&path).unwrap();
        first.append(&[watched(RECORDING_SCHEMA)]).unwrap();
        let second = RecordFile::create(&path).unwrap_err().to_string();
        assert!(second.contains("another program that is watched is recorded there"), "{second}");
        assert!(!read_recording(&path).unwrap().cut_off, "what the first wrote is there");
        drop(first);
        RecordFile::create(&path).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"");
    }
}
