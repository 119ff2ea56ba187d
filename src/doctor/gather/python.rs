//! The Python that vramfit runs, asked in a child process.

use std::ffi::OsString;
use std::fs::File;
use std::io::{self, Read as _, Seek as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde::Deserialize;

use crate::device::{Setup, VirtualGpu, lay_out_python, python_packages};
use crate::doctor::machine::{Python, PythonFailure, Torch};
use crate::error::{last_line, shorten};
use crate::probe::Interrupt;
use crate::profile::Catalog;

/// Name of the package in Python.
const PACKAGE: &str = "vramfit_doctor";
/// How long it may take: the first `import torch` from a slow disk takes half a minute.
const LIMIT: Duration = Duration::from_secs(120);
/// How often it is looked whether it has ended.
const TICK: Duration = Duration::from_millis(10);

/// What the package answers.
#[derive(Deserialize)]
struct Answer {
    python: String,
    torch: Option<Torch>,
    broken: Option<String>,
}

/// How long a child is waited for.
#[derive(Clone, Copy)]
struct Patience<'a> {
    limit: Duration,
    interrupt: &'a Interrupt,
}

/// What came of a child.
struct Said {
    output: String,
    complaint: String,
}

/// Asks the Python at `path`. CUDA is opened on the real GPUs if `opens`; else on a virtual one, from
/// where no real one is reached.
pub(super) fn python(path: &Path, catalog: &Catalog, opens: bool, interrupt: &Interrupt) -> Python {
    let stand_in = match opens {
        true => None,
        false => virtual_gpu(catalog),
    };
    let mut found =
        Python { path: path.display().to_string(), version: None, torch: None, failure: None };
    let environment = stand_in.as_ref().map_or_else(Vec::new, VirtualGpu::environment);
    let opens = opens || stand_in.is_some();
    let said = match ask(path, environment, opens, Patience { limit: LIMIT, interrupt }) {
        Ok(said) => said,
        Err(failure) => return Python { failure: Some(failure), ..found },
    };
    let answer = said.output.lines().rev().find_map(|line| serde_json::from_str(line).ok());
    let Some(Answer { python, torch, broken }) = answer else {
        let reason = shorten(&said.complaint, 200);
        return Python { failure: Some(PythonFailure::Broken { reason }), ..found };
    };
    found.version = Some(python);
    found.torch = torch.map(|mut torch| {
        if let Some(opened) = &mut torch.opened {
            opened.on_virtual_gpu = stand_in.is_some();
        }
        torch
    });
    found.failure = match (&found.torch, broken) {
        (None, Some(reason)) => Some(PythonFailure::Broken { reason: shorten(&reason, 200) }),
        (None, None) => Some(PythonFailure::NoTorch),
        (Some(_), _) => None,
    };
    found
}

/// A virtual GPU on which PyTorch can show that it opens CUDA.
pub(super) fn virtual_gpu(catalog: &Catalog) -> Option<VirtualGpu> {
    VirtualGpu::new(&catalog.gpu(STAND_IN).ok()?, Setup::default()).ok()
}

/// The virtual GPU that things are tried on: which one does not matter.
pub(super) const STAND_IN: &str = "rtx-3050-laptop-4gb";

fn ask(
    path: &Path,
    environment: Vec<(OsString, OsString)>,
    opens: bool,
    patience: Patience<'_>,
) -> Result<Said, PythonFailure> {
    let broken = |error: io::Error| PythonFailure::Broken { reason: error.to_string() };
    let folder = tempfile::Builder::new().prefix("vramfit-python-").tempdir().map_err(broken)?;
    lay_out_python(folder.path()).map_err(broken)?;
    // Files, so that nobody waits for a pipe.
    let (mut output, mut complaints) =
        (tempfile::tempfile().map_err(broken)?, tempfile::tempfile().map_err(broken)?);
    let mut command = Command::new(path);
    command
        .arg(python_packages(folder.path()).join(PACKAGE))
        .args(opens.then_some("open"))
        .envs(environment)
        .stdin(Stdio::null())
        .stdout(output.try_clone().map_err(broken)?)
        .stderr(complaints.try_clone().map_err(broken)?);
    let child = command.spawn().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => PythonFailure::Missing,
        _ => broken(error),
    })?;
    let hung = PythonFailure::Hung { seconds: patience.limit.as_secs() };
    wait(child, patience).map_err(broken)?.ok_or(hung)?;
    let complained = text(&mut complaints).map_err(broken)?;
    let complaint = last_line(&complained).unwrap_or_default().to_owned();
    Ok(Said { output: text(&mut output).map_err(broken)?, complaint })
}

/// Waits for its end, whatever that is; none if it had to be ended.
fn wait(mut child: Child, patience: Patience<'_>) -> io::Result<Option<()>> {
    let begun = Instant::now();
    while child.try_wait()?.is_none() {
        if begun.elapsed() >= patience.limit || patience.interrupt.is_asked() {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        thread::sleep(TICK);
    }
    Ok(Some(()))
}

fn text(file: &mut File) -> io::Result<String> {
    let mut bytes = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut bytes)?;
    Ok(String::from_utf8_lossy(&bytes).into_owned())
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    /// A Python that is a shell script.
    fn fake(script: &str) -> (tempfile::TempDir, std::path::PathBuf) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("python");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        (folder, path)
    }

    fn failure_of(script: &str) -> Option<PythonFailure> {
        let (_folder, path) = fake(script);
        python(&path, &Catalog::built_in(), true, &Interrupt::default()).failure
    }

    #[test]
    fn each_way_to_know_nothing_is_told_apart() {
        let missing = python(
            Path::new("/nonexistent/python"),
            &Catalog::built_in(),
            true,
            &Interrupt::default(),
        );
        assert_eq!(missing.failure, Some(PythonFailure::Missing));
        let without = r#"echo '{"python": "3.12.1"}'"#;
        assert_eq!(failure_of(without), Some(PythonFailure::NoTorch));
        let broken = |reason: &str| Some(PythonFailure::Broken { reason: reason.to_owned() });
        let import = r#"echo '{"python": "3.12.1", "broken": "OSError: libcudart.so.12"}'"#;
        assert_eq!(failure_of(import), broken("OSError: libcudart.so.12"));
        assert_eq!(failure_of("echo oh >&2; exit 1"), broken("oh"));
    }

    #[test]
    fn one_that_hangs_is_ended() {
        let (_folder, path) = fake("exec sleep 60");
        let (begun, interrupt) = (Instant::now(), Interrupt::default());
        let patience = Patience { limit: Duration::from_millis(200), interrupt: &interrupt };
        let said = ask(&path, Vec::new(), true, patience).err();
        assert_eq!(said, Some(PythonFailure::Hung { seconds: 0 }));
        assert!(begun.elapsed() < Duration::from_secs(30));
    }

    #[test]
    fn what_it_prints_besides_is_passed_over() {
        let torch = r#""torch": {"version": "2.6.0+cpu", "cuda": null, "rocm": null, "cudnn": null,
            "architectures": [], "flash_attention": false, "flash_attn": null, "opened": null}"#;
        let script = format!(
            "echo welcome; echo '{{\"python\": \"3.12.1\", {}}}'; echo bye",
            torch.replace('\n', " ")
        );
        let (_folder, path) = fake(&script);
        let found = python(&path, &Catalog::built_in(), true, &Interrupt::default());
        assert_eq!(found.failure, None);
        assert_eq!(found.torch.map(|torch| torch.version).as_deref(), Some("2.6.0+cpu"));
    }
}
