//! The worker in Python: its sources, which this program carries with it, and who runs them.

use std::env;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};

use rustix::process::{Pid, Signal, kill_process_group};
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

/// What it means that `python` cannot be started.
pub fn not_started(python: &Path, source: io::Error) -> Error {
    let path = python.to_owned();
    match source.kind() {
        io::ErrorKind::NotFound => ErrorKind::PythonMissing { path },
        _ => ErrorKind::WorkerStart { path, source },
    }
    .into()
}

/// Ends a child in a process group of its own that is not waited for yet, so that its id is still its
/// own, with all that it has started.
pub fn end_group(child: &Child) {
    if let Some(group) = i32::try_from(child.id()).ok().and_then(Pid::from_raw) {
        let _ = kill_process_group(group, Signal::KILL);
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
