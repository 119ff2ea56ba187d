//! A file that a command is to write at its end: found writable before, replaced in one step.

use std::fs::{self, File, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};

/// A file that can be written, as far as can be known beforehand.
#[derive(Debug)]
pub struct Destination {
    /// As it was given, for messages.
    path: PathBuf,
}

impl Destination {
    /// Tries whether the file can be written; what is in it stays, and none is left where none was.
    ///
    /// # Errors
    /// When it, or a file in its folder, cannot be opened for writing.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let destination = Self { path: path.to_path_buf() };
        // Others than regular files (a pipe, `/dev/stdout`) may not bear being opened twice.
        let tried = match fs::metadata(path) {
            Ok(known) if known.is_dir() => Err(io::ErrorKind::IsADirectory.into()),
            Ok(known) if known.is_file() => File::options().append(true).open(path).map(drop),
            Ok(_) => Ok(()),
            Err(_) => tempfile::tempfile_in(folder(path)).map(drop),
        };
        tried.map_err(|source| destination.unwritable(source))?;
        Ok(destination)
    }

    /// Puts `text` and a line end in place of what is there: whoever is killed in the midst of it
    /// leaves the old file or the new one.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn write(&self, text: &str) -> Result<(), Error> {
        self.replace(text).map_err(|source| self.unwritable(source))
    }

    fn replace(&self, text: &str) -> io::Result<()> {
        // A link keeps pointing to the file that it points to.
        let path = self.path.canonicalize().unwrap_or_else(|_| self.path.clone());
        let permissions = match fs::metadata(&path) {
            Ok(known) if !known.is_file() => return fs::write(path, format!("{text}\n")),
            Ok(known) => known.permissions(),
            Err(_) => Permissions::from_mode(0o666),
        };
        let existed = path.exists();
        let temporary =
            tempfile::Builder::new().permissions(permissions.clone()).tempfile_in(folder(&path));
        let mut file = match temporary {
            Ok(file) => file,
            // A file that is there may be writable in a folder that is not.
            Err(_) if existed => return fs::write(path, format!("{text}\n")),
            Err(source) => return Err(source),
        };
        file.write_all(format!("{text}\n").as_bytes())?;
        if existed {
            // The mask for new files took from them what the file had.
            file.as_file().set_permissions(permissions)?;
        }
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    }

    fn unwritable(&self, source: io::Error) -> Error {
        ErrorKind::Unwritable { path: self.path.clone(), source }.into()
    }
}

/// Whether two paths name one file, which need not be there yet.
pub fn is_same_file(one: &Path, other: &Path) -> bool {
    let whole = |path: &Path| {
        path.canonicalize()
            .ok()
            .or_else(|| Some(folder(path).canonicalize().ok()?.join(path.file_name()?)))
    };
    matches!((whole(one), whole(other)), (Some(one), Some(other)) if one == other)
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use super::*;

    #[test]
    fn a_file_is_replaced_with_its_permissions_through_a_link() {
        let folder = tempfile::tempdir().unwrap();
        let (file, link) = (folder.path().join("file"), folder.path().join("link"));
        fs::write(&file, "old").unwrap();
        fs::set_permissions(&file, Permissions::from_mode(0o640)).unwrap();
        symlink(&file, &link).unwrap();
        let destination = Destination::open(&link).unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "old");
        destination.write("new").unwrap();
        assert_eq!(fs::read_to_string(&file).unwrap(), "new\n");
        assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o640);
        assert!(link.is_symlink());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 2);
    }

    #[test]
    fn one_file_by_two_names_is_seen_before_it_is_there() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x");
        let roundabout =
            folder.path().join("..").join(folder.path().file_name().unwrap()).join("x");
        assert!(is_same_file(&file, &roundabout));
        assert!(!is_same_file(&file, &folder.path().join("y")));
    }
}
