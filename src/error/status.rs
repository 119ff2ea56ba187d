use std::io;
use std::process::ExitCode;

use super::ErrorKind;

/// How the program ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum ExitStatus {
    /// It fits, or the work is done.
    Done = 0,
    /// It does not fit, or a problem was found: an answer, not a failure.
    DoesNotFit = 1,
    /// Flags, a profile or a file are wrong.
    BadInput = 2,
    /// The probe or the machine failed.
    Failed = 3,
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> Self {
        Self::from(status as u8)
    }
}

impl ErrorKind {
    /// How the program ends on this failure.
    pub(super) fn status(&self) -> ExitStatus {
        match *self {
            Self::UnknownName { .. }
            | Self::BadValue { .. }
            | Self::BadProfile { .. }
            | Self::BadPlaceholder { .. }
            | Self::NothingToVary { .. }
            | Self::NoCommand
            | Self::SeveralRealGpus { .. }
            | Self::NotUtf8 { .. }
            | Self::SequenceUnsaid { .. }
            | Self::UnevenTarget { .. }
            | Self::TargetTooLarge { .. }
            | Self::SequenceTooLong { .. }
            | Self::SequenceMissing { .. }
            | Self::NoSequences { .. }
            | Self::NoHardware { .. }
            | Self::BrokenScript { .. }
            | Self::BrokenNotebook { .. }
            | Self::NoScripts { .. }
            | Self::BrokenPlan { .. }
            | Self::PlanVersion { .. }
            | Self::BrokenSnapshot { .. }
            | Self::BrokenRecording { .. }
            | Self::FlagOfVirtualGpu { .. }
            | Self::InTheWay { .. }
            | Self::PlanWithoutChoice { .. }
            | Self::PlanOfCommand { .. }
            | Self::TemporaryFolder { .. }
            | Self::NoWorkingDirectory => ExitStatus::BadInput,
            Self::Unusable { bad_input: true, .. } => ExitStatus::BadInput,
            // The flags leave something; what others hold now is an answer about the GPU.
            Self::NoBudget { usable, reserve, margin, .. } if reserve + margin < usable => {
                ExitStatus::DoesNotFit
            }
            Self::NoBudget { .. } => ExitStatus::BadInput,
            Self::WorkerMissing { .. }
            | Self::WorkerKilled { .. }
            | Self::WorkerEnded { .. }
            | Self::WorkerHung { .. }
            | Self::WorkerRubbish { .. }
            | Self::WorkerRefused { .. }
            | Self::WorkerProtocol { .. }
            | Self::WorkerStart { .. }
            | Self::WorkerVersion { .. }
            | Self::NoThread { .. }
            | Self::Unusable { bad_input: false, .. }
            | Self::UsersCode { .. }
            | Self::PythonMissing { .. }
            | Self::NothingMeasured { .. }
            | Self::ReplayFailed { .. }
            | Self::EquivalenceFailed { .. }
            | Self::Interrupted
            | Self::NoRealGpu
            | Self::NothingToWatch
            | Self::Nvml { .. }
            | Self::VirtualGpuMissing { .. }
            | Self::NotTheVirtualGpu { .. }
            | Self::VirtualGpuFolder { .. } => ExitStatus::Failed,
            Self::Unreadable { ref source, .. }
            | Self::Unwritable { ref source, .. }
            | Self::ProgramStart { ref source, .. } => match is_users(source) {
                true => ExitStatus::BadInput,
                false => ExitStatus::Failed,
            },
        }
    }
}

/// Whether another path would have done, rather than another machine.
fn is_users(error: &io::Error) -> bool {
    use io::ErrorKind as Kind;
    matches!(
        error.kind(),
        Kind::NotFound
            | Kind::PermissionDenied
            | Kind::AlreadyExists
            | Kind::InvalidInput
            | Kind::InvalidData
            | Kind::InvalidFilename
            | Kind::NotADirectory
            | Kind::IsADirectory
            | Kind::ReadOnlyFilesystem
    )
}
