use std::fs::{self, Permissions};
use std::io::{self, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use serde::Deserialize;

use super::{COMPARISON_VERSION, Comparison};
use crate::error::{Error, ErrorKind};

/// Writes a document in place of what was there, in one step: whoever is killed in the midst of it
/// leaves the old document or the new one.
///
/// # Errors
/// When the file or its folder cannot be written.
pub fn write(document: &Comparison, path: &Path) -> Result<(), Error> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    let written = || -> io::Result<()> {
        let mut file = tempfile::Builder::new()
            .permissions(Permissions::from_mode(0o666))
            .tempfile_in(folder.unwrap_or(Path::new(".")))?;
        serde_json::to_writer_pretty(&mut file, document)?;
        file.write_all(b"\n")?;
        file.as_file().sync_all()?;
        file.persist(path)?;
        Ok(())
    };
    written().map_err(|source| ErrorKind::Unwritable { path: path.to_path_buf(), source }.into())
}

/// Reads the document at `path`; `None` where there is no file.
///
/// # Errors
/// When what is there cannot be read, is no such document, or one of another version.
pub fn read(path: &Path) -> Result<Option<Comparison>, Error> {
    #[derive(Deserialize)]
    struct Version {
        comparison_version: u32,
    }

    let in_the_way =
        |reason: String| Error::from(ErrorKind::InTheWay { path: path.to_path_buf(), reason });
    let text = match fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(source) => {
            return Err(ErrorKind::Unreadable { path: path.to_path_buf(), source }.into());
        }
    };
    let no_document =
        |error: serde_json::Error| in_the_way(format!("it is something else: {error}"));
    // The version first: a document of another one need not have the fields of this.
    let Version { comparison_version: found } = serde_json::from_str(&text).map_err(no_document)?;
    if found != COMPARISON_VERSION {
        return Err(in_the_way(format!("it is of version {found}, not {COMPARISON_VERSION}")));
    }
    serde_json::from_str(&text).map(Some).map_err(no_document)
}
