//! The worker in Python: its sources, which this program carries with it, and who runs them.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::device::{PythonSetup, lay_out_python, python_environment, python_packages};
use crate::error::{Error, ErrorKind};
use crate::workload::Function;

/// Name of the package.
const PACKAGE: &str = "vramfit_worker";

/// The sources in a private folder, gone when this is dropped.
#[derive(Debug)]
pub(super) struct Sources(TempDir);

impl Sources {
    /// Lays them out.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(super) fn lay_out() -> Result<Self, Error> {
        let folder = tempfile::Builder::new().prefix("vramfit-python-").tempdir();
        let written = folder.and_then(|folder| {
            lay_out_python(folder.path())?;
            Ok(Self(folder))
        });
        written.map_err(|source| ErrorKind::Unwritable { path: env::temp_dir(), source }.into())
    }

    /// The folder they are in.
    pub(super) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// What starts a worker for `function`.
    pub(super) fn command(&self, function: &Function, setup: PythonSetup) -> Command {
        let mut command = Command::new(&function.python);
        command.envs(python_environment(self.folder(), setup));
        command
            .arg(python_packages(self.folder()).join(PACKAGE))
            .arg(&function.file)
            .arg(&function.name);
        command
    }
}

/// The Python that has the user's PyTorch: `VRAMFIT_PYTHON`, else the active virtual environment's,
/// else `python3`.
pub fn python() -> PathBuf {
    let variable = |name| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let python = variable("VRAMFIT_PYTHON")
        .or_else(|| variable("VIRTUAL_ENV").map(|folder| folder.join("bin/python")))
        .unwrap_or_else(|| PathBuf::from("python3"));
    // A bare name is looked for in `PATH`, a path also holds for who reads the plan elsewhere.
    match python.parent().is_some_and(|folder| folder != Path::new("")) {
        true => std::path::absolute(&python).unwrap_or(python),
        false => python,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe::protocol::PROTOCOL;

    #[test]
    fn it_is_of_this_version_and_speaks_this_protocol() {
        let about = include_str!("../../python/vramfit_worker/__init__.py");
        assert!(about.contains(&format!("\nVERSION = \"{}\"\n", env!("CARGO_PKG_VERSION"))));
        assert!(about.contains(&format!("\nPROTOCOL = {PROTOCOL}\n")));
    }
}
