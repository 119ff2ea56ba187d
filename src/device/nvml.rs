use std::ffi::OsStr;

use nvml_wrapper::Nvml;
use nvml_wrapper::error::NvmlError;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::error::{Error, ErrorKind};

/// What NVML failed with, as far as one can act on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum NvmlFault {
    /// The driver's library is not there.
    NoLibrary,
    /// The driver is not loaded.
    NotLoaded,
    /// The driver was updated while its old module is loaded.
    VersionMismatch,
    /// Rights are missing.
    NoPermission,
    /// The operating system, or a container, keeps the GPU away.
    Blocked,
    /// NVML does not know either; typical of a container that lost its access.
    Unknown,
    /// The GPU has fallen off the bus.
    Lost,
    /// The GPU must be reset.
    ResetRequired,
    /// Its power cables do not deliver.
    NoPower,
    /// The driver is older than the question.
    TooOld,
    /// The GPU does not tell.
    NotSupported,
    /// Anything else.
    Other,
}

impl NvmlFault {
    /// Which one `error` is.
    pub fn of(error: &NvmlError) -> Self {
        match error {
            NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => Self::NoLibrary,
            NvmlError::DriverNotLoaded => Self::NotLoaded,
            NvmlError::LibRmVersionMismatch => Self::VersionMismatch,
            NvmlError::NoPermission => Self::NoPermission,
            NvmlError::OperatingSystem => Self::Blocked,
            NvmlError::Unknown => Self::Unknown,
            NvmlError::GpuLost => Self::Lost,
            NvmlError::ResetRequired => Self::ResetRequired,
            NvmlError::InsufficientPower => Self::NoPower,
            NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => Self::TooOld,
            NvmlError::NotSupported => Self::NotSupported,
            _ => Self::Other,
        }
    }
}

/// Opens the driver's NVML, which wakes GPUs that sleep.
///
/// # Errors
/// As NVML says; [`nvml_words`] words it.
pub fn open_nvml() -> Result<Nvml, NvmlError> {
    init(None)
}

/// What happened in a failure of NVML, and what to do where that is known.
pub fn nvml_words(error: &NvmlError) -> (String, Option<&'static str>) {
    explain(error)
}

/// Opens NVML: the one at `path`, or the driver's.
///
/// # Errors
/// Each way in which it can be missing is a failure of its own; see [`failure`].
pub(super) fn open(path: Option<&OsStr>) -> Result<Nvml, Error> {
    init(path).map_err(|error| failure("NVML", &error))
}

fn init(path: Option<&OsStr>) -> Result<Nvml, NvmlError> {
    let mut builder = Nvml::builder();
    // Not `libnvidia-ml.so`: installations of the driver alone lack that link.
    builder.lib_path(path.unwrap_or(OsStr::new("libnvidia-ml.so.1")));
    builder.init()
}

/// Whether the failure says no more than that there is no NVIDIA GPU here.
pub(super) fn is_absent(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Nvml { absent: true, .. })
}

/// Words a failure of NVML, asked about `what`.
pub(super) fn failure(what: &str, error: &NvmlError) -> Error {
    let (reason, hint) = explain(error);
    let absent = matches!(
        error,
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound | NvmlError::DriverNotLoaded
    );
    let error = Error::new(ErrorKind::Nvml { what: what.to_owned(), reason, absent });
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// What happened, and what to do: one row a code that a user can do something about.
fn explain(error: &NvmlError) -> (String, Option<&'static str>) {
    let (reason, hint) = match error {
        NvmlError::LibloadingError(_) | NvmlError::LibraryNotFound => (
            "the driver's libnvidia-ml.so.1 is not there",
            "install NVIDIA's driver, or plan for a virtual card with `--gpu NAME`",
        ),
        NvmlError::DriverNotLoaded => (
            "the driver is not loaded",
            "the GPU may be switched off (firmware, hybrid graphics); `sudo modprobe nvidia`",
        ),
        NvmlError::LibRmVersionMismatch => (
            "driver and library are of different versions",
            "the driver was updated while loaded: reboot",
        ),
        NvmlError::NoPermission => (
            "no permission",
            "MIG devices and accounting need rights; ask for a MIG instance by its own UUID",
        ),
        NvmlError::OperatingSystem => (
            "the operating system blocks access to the GPU",
            "in a container, start it with the GPU (`--gpus all`)",
        ),
        NvmlError::Unknown => (
            "an unknown error",
            "in a container, access is lost after `systemctl daemon-reload`: restart the container",
        ),
        NvmlError::GpuLost => {
            ("the GPU has fallen off the bus", "check cables or the dock, then reboot")
        }
        NvmlError::ResetRequired => {
            ("the GPU must be reset", "reboot, or `nvidia-smi --gpu-reset`")
        }
        NvmlError::InsufficientPower => ("the GPU lacks power", "check its power cables"),
        NvmlError::FailedToLoadSymbol(_) | NvmlError::FunctionNotFound => {
            ("the driver is too old", "driver 510 or later is needed")
        }
        NvmlError::NotSupported => (
            "the GPU does not tell",
            "boards that share memory with the CPU (Jetson, GB10) are not supported yet",
        ),
        other => return (other.to_string(), None),
    };
    (reason.to_owned(), Some(hint))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_failure_has_a_message_and_a_hint_of_its_own() {
        let failures = [
            NvmlError::LibraryNotFound,
            NvmlError::DriverNotLoaded,
            NvmlError::LibRmVersionMismatch,
            NvmlError::NoPermission,
            NvmlError::OperatingSystem,
            NvmlError::Unknown,
            NvmlError::GpuLost,
            NvmlError::ResetRequired,
            NvmlError::InsufficientPower,
            NvmlError::FunctionNotFound,
            NvmlError::NotSupported,
        ];
        let mut seen = std::collections::BTreeSet::new();
        for error in &failures {
            let (reason, hint) = explain(error);
            assert!(seen.insert((reason.clone(), hint)), "{reason}");
            assert!(hint.is_some(), "{reason}");
        }
    }

    #[test]
    fn a_machine_without_the_library_has_no_gpu_rather_than_a_broken_one() {
        let error = open(Some(OsStr::new("/nonexistent/libnvidia-ml.so.1"))).err().unwrap();
        assert!(is_absent(&error), "{error}");
        assert!(!is_absent(&failure("NVML", &NvmlError::LibRmVersionMismatch)));
    }
}
