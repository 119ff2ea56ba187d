use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use crate::destination::Destination;
use crate::error::{Error, ErrorKind};
use crate::snapshot::Snapshot;

/// Variable that names the folder that Python children write their snapshots to (see
/// `python/vramfit_snapshot`).
const VARIABLE: &str = "VRAMFIT_SNAPSHOTS";

/// Memory snapshots that a program's processes are asked for, on whichever GPU.
#[derive(Debug)]
pub struct Snapshots {
    /// Where they are to be kept, if they are.
    path: Option<PathBuf>,
    /// Beside the file, so that a snapshot gets there whole, and is not lost if we are.
    folder: TempDir,
}

/// What one process wrote.
#[derive(Debug)]
pub struct ProcessSnapshot {
    /// Of a distributed run.
    pub rank: Option<u32>,
    /// Its id.
    pub pid: u32,
    /// The snapshot, or why it cannot be read.
    pub snapshot: Result<Snapshot, Error>,
}

/// A snapshot in its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SnapshotFile {
    /// The file.
    pub path: PathBuf,
    /// Another file was there before.
    pub replaced: bool,
}

impl Snapshots {
    /// Gets ready to write snapshots to `path`.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn prepare(path: &Path) -> Result<Self, Error> {
        let unwritable = |source| ErrorKind::Unwritable { path: path.to_owned(), source };
        Destination::open(path)?;
        if path.exists() && !path.is_file() {
            let reason = io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file");
            return Err(unwritable(reason).into());
        }
        let parent = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        // Children may go to other folders.
        let parent = parent.unwrap_or(Path::new(".")).canonicalize().map_err(unwritable)?;
        let folder = tempfile::Builder::new().prefix(".vramfit-snapshots-").tempdir_in(parent);
        Ok(Self { path: Some(path.to_owned()), folder: folder.map_err(unwritable)? })
    }

    /// Gets ready to have snapshots written that are read and not kept.
    ///
    /// # Errors
    /// When no temporary folder can be made.
    pub fn passing() -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("vramfit-snapshots-").tempdir();
        let unwritable = |source| ErrorKind::Unwritable { path: env::temp_dir(), source };
        Ok(Self { path: None, folder: folder.map_err(unwritable)? })
    }

    /// Reads what the processes wrote; ranks first, in order.
    pub fn read(&self) -> Vec<ProcessSnapshot> {
        let files = self.files().unwrap_or_default().into_iter();
        let read = |(Origin { rank, pid }, path): (Origin, PathBuf)| ProcessSnapshot {
            rank,
            pid,
            snapshot: Snapshot::read(&path),
        };
        files.map(read).collect()
    }

    /// The variable that asks Python children for snapshots; their packages must be laid out for them.
    pub fn environment(&self) -> (OsString, OsString) {
        (VARIABLE.into(), self.folder.path().as_os_str().to_owned())
    }

    /// Puts what the processes wrote in its place: one snapshot at the path itself; of several, each
    /// with its rank, or else its process id, in its name (`out.rank1.pickle`).
    ///
    /// # Errors
    /// When one cannot be put there; it is then left in the hidden folder beside it.
    pub fn collect(self) -> Result<Vec<SnapshotFile>, Error> {
        let Some(place) = &self.path else { return Ok(Vec::new()) };
        let found = self.files()?;
        let origins: Vec<_> = found.iter().map(|(origin, _)| *origin).collect();
        let mut placed = Vec::new();
        for (origin, written) in found {
            let path = named(place, origin, &origins);
            let replaced = path.exists();
            if let Err(source) = fs::rename(&written, &path) {
                let _kept = self.folder.keep();
                return Err(ErrorKind::Unwritable { path, source }.into());
            }
            placed.push(SnapshotFile { path, replaced });
        }
        Ok(placed)
    }

    /// The files that are whole, by who wrote them.
    fn files(&self) -> Result<Vec<(Origin, PathBuf)>, Error> {
        let unreadable =
            |source| ErrorKind::Unreadable { path: self.folder.path().to_owned(), source };
        let mut found = Vec::new();
        for entry in fs::read_dir(self.folder.path()).map_err(unreadable)? {
            let path = entry.map_err(unreadable)?.path();
            found.extend(Origin::of(&path).map(|origin| (origin, path)));
        }
        found.sort();
        Ok(found)
    }
}

/// The process that wrote a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Origin {
    rank: Option<u32>,
    pid: u32,
}

impl Origin {
    /// From a file's name, `RANK.PID.pickle` or `.PID.pickle`; none of one that is not whole.
    fn of(path: &Path) -> Option<Self> {
        let name = path.file_name()?.to_str()?.strip_suffix(".pickle")?;
        let (rank, pid) = name.split_once('.')?;
        Some(Self { rank: rank.parse().ok(), pid: pid.parse().ok()? })
    }
}

/// Where the snapshot of `origin`, one of `all`, goes.
fn named(path: &Path, origin: Origin, all: &[Origin]) -> PathBuf {
    if all.len() == 1 {
        return path.to_owned();
    }
    let alike = all.iter().filter(|other| other.rank == origin.rank).count();
    let mark = match origin.rank {
        Some(rank) if alike == 1 => format!("rank{rank}"),
        Some(rank) => format!("rank{rank}.pid{}", origin.pid),
        None => format!("pid{}", origin.pid),
    };
    let mut name = path.file_stem().unwrap_or_default().to_owned();
    name.push(format!(".{mark}"));
    if let Some(extension) = path.extension() {
        name.push(".");
        name.push(extension);
    }
    path.with_file_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(written: &[&str]) -> Vec<String> {
        let folder = tempfile::tempdir().unwrap();
        let snapshots = Snapshots::prepare(&folder.path().join("out.pickle")).unwrap();
        for name in written {
            fs::write(snapshots.folder.path().join(name), name).unwrap();
        }
        let placed = snapshots.collect().unwrap();
        let left = fs::read_dir(folder.path()).unwrap().count();
        assert_eq!(left, placed.len(), "the hidden folder is gone");
        let name = |it: SnapshotFile| it.path.file_name().unwrap().to_str().unwrap().to_owned();
        placed.into_iter().map(name).collect()
    }

    #[test]
    fn one_snapshot_goes_where_it_was_asked_for_and_several_bear_their_rank() {
        assert_eq!(placed(&[".77.pickle"]), ["out.pickle"]);
        assert_eq!(placed(&["0.77.pickle"]), ["out.pickle"]);
        let ranks = ["out.rank0.pickle", "out.rank1.pickle"];
        assert_eq!(placed(&["1.78.pickle", "0.77.pickle"]), ranks);
        let mixed = ["out.pid76.pickle", "out.rank0.pid77.pickle", "out.rank0.pid78.pickle"];
        assert_eq!(placed(&["0.78.pickle", "0.77.pickle", ".76.pickle"]), mixed);
        assert_eq!(placed(&["0.77.part"]), [""; 0], "one that is not whole");
    }

    #[test]
    fn what_was_there_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("out.pickle");
        fs::write(&path, "old").unwrap();
        let snapshots = Snapshots::prepare(&path).unwrap();
        fs::write(snapshots.folder.path().join(".7.pickle"), "new").unwrap();
        assert_eq!(
            snapshots.collect().unwrap(),
            [SnapshotFile { path: path.clone(), replaced: true }]
        );
        assert_eq!(fs::read_to_string(path).unwrap(), "new");
    }

    #[test]
    fn a_place_that_cannot_be_written_is_told_before() {
        for path in ["/nonexistent/out.pickle", "/", "/dev/null"] {
            let error = Snapshots::prepare(Path::new(path)).err().unwrap();
            assert_eq!(error.status(), crate::error::ExitStatus::BadInput, "{error}");
        }
    }
}
