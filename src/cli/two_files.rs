//! One file for two things would lose one of them.

use std::path::PathBuf;

use crate::destination::is_same_file;
use crate::error::Error;

/// Refuses what names a file that an earlier flag names too.
///
/// # Errors
/// Of the later flag.
pub(super) fn told_apart(files: &[(&str, &Option<PathBuf>)]) -> Result<(), Error> {
    let mut taken: Vec<(&str, &PathBuf)> = Vec::new();
    for (flag, path) in files {
        // A terminal or a pipe loses nothing.
        let is_file = |path: &PathBuf| path.metadata().map_or(true, |known| known.is_file());
        let Some(path) = path.as_ref().filter(|path| is_file(path)) else { continue };
        if let Some((other, _)) = taken.iter().find(|(_, known)| is_same_file(path, known)) {
            let reason = format!("the same file as `{other}`");
            let error = Error::bad_value(*flag, path.display().to_string(), reason);
            return Err(error.hint("name two files"));
        }
        taken.push((flag, path));
    }
    Ok(())
}
