//! What the program's Python processes tell; see `python/vramfit_watch`.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use rustix::time::{ClockId, clock_gettime};
use tempfile::TempDir;

use super::recording::Entry;
use crate::device::{PythonSetup, lay_out_python, python_environment};
use crate::error::{Error, ErrorKind};

/// Names the folder that Python children write their lines to.
const FOLDER: &str = "VRAMFIT_WATCH_FOLDER";
/// When the program was started, in seconds of the clock that all processes share.
const SINCE: &str = "VRAMFIT_WATCH_SINCE";
/// Says `on` where lines of the program are to be noted for each block of memory.
const STACKS: &str = "VRAMFIT_WATCH_STACKS";

/// The folder that Python children write to, gone when this is dropped, and how far it is read.
#[derive(Debug)]
pub struct Hooks {
    folder: TempDir,
    since: f64,
    stacks: bool,
    /// By process and the number that it gave the file.
    files: BTreeMap<(u32, u32), Tail>,
}

impl Hooks {
    /// Lays out the folder. With `stacks`, allocations are noted with the lines that made them.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn lay_out(stacks: bool) -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("vramfit-watch-").tempdir();
        let unwritable = |source| ErrorKind::Unwritable { path: std::env::temp_dir(), source };
        let folder = folder.map_err(unwritable)?;
        Ok(Self { folder, since: seconds(), stacks, files: BTreeMap::new() })
    }

    /// Seconds since this was laid out.
    pub fn now(&self) -> f64 {
        // As fine as the lines of the children.
        ((seconds() - self.since) * 1e6).round() / 1e6
    }

    /// Variables that make Python children tell; the packages must be laid out for them.
    pub fn environment(&self) -> Vec<(OsString, OsString)> {
        let mut variables = vec![
            (FOLDER.into(), self.folder.path().as_os_str().to_owned()),
            (SINCE.into(), format!("{:.6}", self.since).into()),
        ];
        if self.stacks {
            variables.push((STACKS.into(), "on".into()));
        }
        variables
    }

    /// Lays out the packages where no virtual GPU does, and says which variables make a Python child
    /// find them.
    ///
    /// # Errors
    /// When they cannot be written.
    pub fn python(&self) -> Result<Vec<(OsString, OsString)>, Error> {
        let path = self.folder.path();
        let unwritable = |source| ErrorKind::Unwritable { path: path.to_owned(), source };
        lay_out_python(path).map_err(unwritable)?;
        Ok(python_environment(path, PythonSetup::default()))
    }

    /// What was told since the last time, each process's lines in order.
    pub fn read(&mut self) -> Vec<Entry> {
        for (key, path) in files(self.folder.path()) {
            self.files.entry(key).or_insert_with(|| Tail::new(path));
        }
        let keys: Vec<_> = self.files.keys().copied().collect();
        let mut entries = Vec::new();
        for (pid, number) in keys {
            // Before it is read: what is in it is then all there will be.
            let is_done = self.files.contains_key(&(pid, number + 1));
            let Some(tail) = self.files.get_mut(&(pid, number)) else { continue };
            entries.extend(tail.read());
            if is_done {
                // It may be gone already, or the folder may not be ours any more.
                let _ = fs::remove_file(&tail.path);
                self.files.remove(&(pid, number));
            }
        }
        entries
    }
}

/// Seconds of the clock that Python calls `CLOCK_MONOTONIC` too.
fn seconds() -> f64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

fn files(folder: &Path) -> impl Iterator<Item = ((u32, u32), PathBuf)> {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    entries.filter_map(|entry| {
        let name = entry.file_name();
        let (pid, number) = name.to_str()?.strip_suffix(".jsonl")?.split_once('.')?;
        Some(((pid.parse().ok()?, number.parse().ok()?), entry.path()))
    })
}

/// A file that grows.
#[derive(Debug)]
struct Tail {
    path: PathBuf,
    file: Option<File>,
    /// The beginning of a line that is not whole yet.
    rest: Vec<u8>,
}

impl Tail {
    fn new(path: PathBuf) -> Self {
        let file = File::open(&path).ok();
        Self { path, file, rest: Vec::new() }
    }

    fn read(&mut self) -> Vec<Entry> {
        // A disk that cannot be read has nothing to tell; it is asked again.
        let _: Option<io::Result<usize>> =
            self.file.as_mut().map(|file| file.read_to_end(&mut self.rest));
        let Some(end) = self.rest.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let rest = self.rest.split_off(end + 1);
        let lines = std::mem::replace(&mut self.rest, rest);
        // Who writes is of the same version; what cannot be read is passed over.
        lines
            .split(|byte| *byte == b'\n')
            .filter_map(|it| serde_json::from_slice(it).ok())
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::watch::{Event, Step};

    fn line(step: u64) -> String {
        let event = Event::Step(Step { step, ..Step::default() });
        serde_json::to_string(&Entry { at: step as f64, event }).unwrap() + "\n"
    }

    fn steps(hooks: &mut Hooks) -> Vec<u64> {
        let step = |entry: Entry| match entry.event {
            Event::Step(step) => step.step,
            other => panic!("{other:?}"),
        };
        hooks.read().into_iter().map(step).collect()
    }

    #[test]
    fn lines_are_read_once_each_and_when_they_are_whole() {
        let mut hooks = Hooks::lay_out(false).unwrap();
        let path = hooks.folder.path().join("7.1.jsonl");
        let text = [line(1), line(2), line(3)].concat();
        fs::write(&path, &text[..text.len() - 10]).unwrap();
        assert_eq!(steps(&mut hooks), [1, 2]);
        assert_eq!(steps(&mut hooks), [0; 0]);
        fs::write(&path, &text).unwrap();
        assert_eq!(steps(&mut hooks), [3]);
    }

    #[test]
    fn a_file_that_has_a_successor_is_read_to_its_end_and_removed() {
        let mut hooks = Hooks::lay_out(false).unwrap();
        let file = |number| hooks.folder.path().join(format!("7.{number}.jsonl"));
        let (first, second) = (file(1), file(2));
        fs::write(&first, line(1)).unwrap();
        assert_eq!(steps(&mut hooks), [1]);
        assert!(first.exists());
        fs::write(&first, line(1) + &line(2)).unwrap();
        fs::write(&second, line(3)).unwrap();
        assert_eq!(steps(&mut hooks), [2, 3]);
        assert_eq!((first.exists(), second.exists()), (false, true));
    }
}
