//! What a Python child runs besides its program: `python/` of the repository, which the interpreter
//! finds on its path and starts by itself (see `python/sitecustomize.py`).

use std::env;
use std::ffi::OsString;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use include_dir::{Dir, include_dir};

static SOURCES: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/python");

/// Where they lie in such a folder.
const FOLDER: &str = "python";
/// Says `off` where small tensors are not to be computed.
const SHADOW: &str = "VRAMFIT_SHADOW";
/// Which end of an interval a size takes that depends on values nobody knows.
const UNKNOWN_SIZES: &str = "VRAMFIT_UNKNOWN_SIZES";

/// Where the packages lie in a folder that [`lay_out_python`] wrote to.
pub fn python_packages(folder: &Path) -> PathBuf {
    folder.join(FOLDER)
}

/// What is asked of a Python child besides running its program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PythonSetup {
    /// Whether small tensors are really computed.
    pub shadow: bool,
    /// Whether results whose size nobody knows are as small as they can be; else as large.
    pub lowest_sizes: bool,
}

impl Default for PythonSetup {
    fn default() -> Self {
        Self { shadow: true, lowest_sizes: false }
    }
}

/// Writes the sources into a folder, such as that of a virtual GPU.
///
/// # Errors
/// When they cannot be written.
pub fn lay_out_python(folder: &Path) -> io::Result<()> {
    write(&SOURCES, &folder.join(FOLDER))
}

fn write(sources: &Dir<'_>, folder: &Path) -> io::Result<()> {
    fs::create_dir_all(folder)?;
    // What an interpreter left beside them when the program was built is none of them.
    let files = sources.files().filter(|file| file.path().extension().is_some_and(|it| it == "py"));
    for file in files {
        if let Some(name) = file.path().file_name() {
            fs::write(folder.join(name), file.contents())?;
        }
    }
    let packages =
        sources.dirs().filter(|dir| dir.get_file(dir.path().join("__init__.py")).is_some());
    for package in packages {
        if let Some(name) = package.path().file_name() {
            write(package, &folder.join(name))?;
        }
    }
    Ok(())
}

/// Variables that make a Python child start what [`lay_out_python`] wrote.
pub fn python_environment(folder: &Path, setup: PythonSetup) -> Vec<(OsString, OsString)> {
    let mut path = folder.join(FOLDER).into_os_string();
    if let Some(rest) = env::var_os("PYTHONPATH").filter(|rest| !rest.is_empty()) {
        path.push(":");
        path.push(rest);
    }
    let mut variables = vec![("PYTHONPATH", path)];
    if !setup.shadow {
        variables.push((SHADOW, "off".into()));
    }
    if setup.lowest_sizes {
        variables.push((UNKNOWN_SIZES, "lowest".into()));
    }
    variables.into_iter().map(|(name, value)| (name.into(), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_are_laid_out_whole_and_nothing_else() {
        let folder = tempfile::tempdir().unwrap();
        lay_out_python(folder.path()).unwrap();
        let python = folder.path().join(FOLDER);
        assert!(python.join("sitecustomize.py").is_file());
        assert!(python.join("vramfit_shadow/overriding.py").is_file());
        let names: Vec<_> =
            fs::read_dir(&python).unwrap().map(|it| it.unwrap().file_name()).collect();
        assert!(!names.iter().any(|name| name == "__pycache__"), "{names:?}");
    }
}
