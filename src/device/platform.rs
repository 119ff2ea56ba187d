use std::fs;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::units::Bytes;

/// The operating system of the machine that is planned for. It decides how much of the board's
/// memory programs can have, and what happens when there is no more.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Platform {
    /// Linux on the machine itself: driver and firmware keep a reserve of their own.
    #[default]
    Linux,
    /// Windows: CUDA's total is the board's, and the desktop takes from it.
    Windows,
    /// Linux under Windows (WSL 2): as Windows.
    Wsl,
}

impl Platform {
    /// That of this machine.
    pub fn here() -> Self {
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        if kernel.to_ascii_lowercase().contains("microsoft") { Self::Wsl } else { Self::Linux }
    }

    /// Whether Windows manages the GPU's memory.
    pub fn is_windows(self) -> bool {
        self != Self::Linux
    }

    /// What a desktop of Windows takes where nobody says: the median of seven that `nvidia-smi`
    /// printed at light load, 519 to 1416 MiB (`docs/profiles.md`, "Windows and WSL").
    pub const WINDOWS_DESKTOP: Bytes = Bytes::mib(1024);
}
