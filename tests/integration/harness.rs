use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use tempfile::TempDir;

/// One run of `vramfit` in a folder of its own, without the user's profiles. Everything is compared
/// exactly: what is not stated must be empty.
#[must_use]
pub(crate) struct Test {
    folder: TempDir,
    command: Command,
    stdout: Expected,
    stderr: String,
}

/// What a run left.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) status: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
    pub(crate) folder: TempDir,
}

enum Expected {
    Text(String),
    Snapshot(&'static str),
}

impl Test {
    pub(crate) fn new(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_vramfit"));
        command
            .args(arguments)
            .current_dir(folder.path())
            .env_clear()
            .env("VRAMFIT_PROFILES", "own")
            .stdin(Stdio::null());
        Self { folder, command, stdout: Expected::Text(String::new()), stderr: String::new() }
    }

    /// Writes a file into the folder first.
    pub(crate) fn file(self, path: &str, text: &str) -> Self {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap_or(Path::new("."))).unwrap();
        fs::write(path, text).unwrap();
        self
    }

    /// Copies a file into the folder first.
    pub(crate) fn copy(self, from: &Path, path: &str) -> Self {
        fs::copy(from, self.folder.path().join(path)).unwrap();
        self
    }

    /// Lets a file of the folder be run.
    pub(crate) fn executable(self, path: &str) -> Self {
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
        fs::set_permissions(self.folder.path().join(path), mode).unwrap();
        self
    }

    /// The folder.
    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Sets an environment variable; a value is relative to nothing but itself.
    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn without_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    pub(crate) fn stdout(mut self, text: &str) -> Self {
        self.stdout = Expected::Text(text.to_owned());
        self
    }

    /// Compares standard output with `snapshots/`.
    pub(crate) fn stdout_snapshot(mut self, name: &'static str) -> Self {
        self.stdout = Expected::Snapshot(name);
        self
    }

    pub(crate) fn stderr(mut self, text: &str) -> Self {
        self.stderr = text.to_owned();
        self
    }

    /// Runs it and compares.
    #[track_caller]
    pub(crate) fn status(mut self, status: i32) {
        let output = self.command.output().unwrap();
        let stdout = String::from_utf8(output.stdout).unwrap();
        let stderr = String::from_utf8(output.stderr).unwrap();
        assert_eq!(stderr, self.stderr, "standard error of {:?}", self.command);
        match self.stdout {
            Expected::Text(text) => assert_eq!(stdout, text, "output of {:?}", self.command),
            Expected::Snapshot(name) => insta::assert_snapshot!(name, stdout),
        }
        assert_eq!(output.status.code(), Some(status), "status of {:?}", self.command);
    }

    /// Runs it and hands out everything, for a test that looks for parts of it.
    pub(crate) fn run(mut self) -> Run {
        let output = self.command.output().unwrap();
        Run {
            status: output.status.code(),
            stdout: String::from_utf8(output.stdout).unwrap(),
            stderr: String::from_utf8(output.stderr).unwrap(),
            folder: self.folder,
        }
    }

    /// Runs it and hands out what it printed, for output that is compared by its meaning.
    #[track_caller]
    pub(crate) fn output(mut self) -> String {
        let output = self.command.output().unwrap();
        assert_eq!(String::from_utf8(output.stderr).unwrap(), "");
        assert!(output.status.success(), "status of {:?}", self.command);
        String::from_utf8(output.stdout).unwrap()
    }
}
