use std::fs;
use std::path::{Path, PathBuf};

use super::source::is_notebook;
use crate::error::{Error, ErrorKind};

/// Folders of others' code, and of none.
const NOT_ENTERED: &[&str] =
    &["__pycache__", "node_modules", "site-packages", "venv", "env", "build"];

/// Each file as it is given, and of each folder the scripts and notebooks in it, in order of name.
///
/// # Errors
/// When there is no such file, or a folder cannot be read.
pub fn scripts(paths: &[PathBuf]) -> Result<Vec<PathBuf>, Error> {
    let mut found = Vec::new();
    for path in paths {
        match path.is_dir() {
            true => enter(path, &mut found)?,
            false => found.push(path.clone()),
        }
    }
    Ok(found)
}

fn enter(folder: &Path, found: &mut Vec<PathBuf>) -> Result<(), Error> {
    let unreadable = |source| ErrorKind::Unreadable { path: folder.to_owned(), source };
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut entries = entries.collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (path, name) = (entry.path(), entry.file_name());
        let name = name.to_string_lossy();
        let kind = entry.file_type().map_err(unreadable)?;
        if kind.is_dir() && !name.starts_with('.') && !NOT_ENTERED.contains(&&*name) {
            enter(&path, found)?;
        } else if kind.is_file() && (is_notebook(&path) || name.ends_with(".py")) {
            found.push(path);
        }
    }
    Ok(())
}
