//! The worker in Python: its sources, which this program carries with it, and who runs them.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tempfile::TempDir;

use crate::error::{Error, ErrorKind};
use crate::workload::Function;

/// Name of the package.
const PACKAGE: &str = "vramfit_worker";

/// Its files.
const FILES: [(&str, &str); 14] = [
    ("__init__.py", include_str!("../../python/vramfit_worker/__init__.py")),
    ("__main__.py", include_str!("../../python/vramfit_worker/__main__.py")),
    ("bench.py", include_str!("../../python/vramfit_worker/bench.py")),
    ("checkpointing.py", include_str!("../../python/vramfit_worker/checkpointing.py")),
    ("definition.py", include_str!("../../python/vramfit_worker/definition.py")),
    ("device.py", include_str!("../../python/vramfit_worker/device.py")),
    ("faults.py", include_str!("../../python/vramfit_worker/faults.py")),
    ("fills.py", include_str!("../../python/vramfit_worker/fills.py")),
    ("measuring.py", include_str!("../../python/vramfit_worker/measuring.py")),
    ("placing.py", include_str!("../../python/vramfit_worker/placing.py")),
    ("serve.py", include_str!("../../python/vramfit_worker/serve.py")),
    ("streams.py", include_str!("../../python/vramfit_worker/streams.py")),
    ("training.py", include_str!("../../python/vramfit_worker/training.py")),
    ("user_code.py", include_str!("../../python/vramfit_worker/user_code.py")),
];

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
            let package = folder.path().join(PACKAGE);
            fs::create_dir(&package)?;
            for (name, text) in FILES {
                fs::write(package.join(name), text)?;
            }
            Ok(Self(folder))
        });
        written.map_err(|source| ErrorKind::Unwritable { path: env::temp_dir(), source }.into())
    }

    /// What starts a worker for `function`.
    pub(super) fn command(&self, function: &Function) -> Command {
        let mut command = Command::new(&function.python);
        command.arg(self.0.path().join(PACKAGE)).arg(&function.file).arg(&function.name);
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
    fn every_source_is_carried() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("python").join(PACKAGE);
        let mut there: Vec<_> = fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name.ends_with(".py"))
            .collect();
        there.sort();
        assert_eq!(there, FILES.map(|(name, _)| name));
    }

    #[test]
    fn it_is_of_this_version_and_speaks_this_protocol() {
        let about = FILES[0].1;
        assert!(about.contains(&format!("\nVERSION = \"{}\"\n", env!("CARGO_PKG_VERSION"))));
        assert!(about.contains(&format!("\nPROTOCOL = {PROTOCOL}\n")));
    }
}
