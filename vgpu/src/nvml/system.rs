//! NVML as a whole: its start and end, versions, error texts, processes' names.

use std::ffi::{CStr, c_char};
use std::sync::atomic::Ordering;

use super::{USERS, initialized, status, write_text};
use crate::device::machine;
use crate::entry::{Out, entry_points};

fn start() -> i32 {
    if machine().is_none() {
        return status::DRIVER_NOT_LOADED;
    }
    USERS.fetch_add(1, Ordering::Relaxed);
    status::SUCCESS
}

fn error_text(code: i32) -> &'static CStr {
    match code {
        0 => c"Success",
        1 => c"Uninitialized",
        2 => c"Invalid Argument",
        3 => c"Not Supported",
        4 => c"Insufficient Permissions",
        5 => c"Already Initialized",
        6 => c"Not Found",
        7 => c"Insufficient Size",
        8 => c"Insufficient External Power",
        9 => c"Driver Not Loaded",
        10 => c"Timeout",
        12 => c"NVML Shared Library Not Found",
        13 => c"Function Not Found",
        15 => c"GPU is lost",
        20 => c"Insufficient Memory",
        21 => c"No data",
        25 => c"Argument Version Mismatch",
        _ => c"Unknown Error",
    }
}

/// The file name of process `pid`'s executable.
fn process_name(pid: u32) -> Option<String> {
    let command = std::fs::read(format!("/proc/{pid}/cmdline")).ok()?;
    let program = command.split(|byte| *byte == 0).next()?;
    (!program.is_empty()).then(|| String::from_utf8_lossy(program).into_owned())
}

entry_points! { on_panic = status::UNKNOWN;
    fn nvmlInit() -> i32 {
        start()
    }

    fn nvmlInit_v2() -> i32 {
        start()
    }

    fn nvmlInitWithFlags(_flags: u32) -> i32 {
        start()
    }

    fn nvmlShutdown() -> i32 {
        let one_less = |users: u32| users.checked_sub(1);
        match USERS.fetch_update(Ordering::Relaxed, Ordering::Relaxed, one_less) {
            Ok(_) => status::SUCCESS,
            Err(_) => status::UNINITIALIZED,
        }
    }

    fn nvmlSystemGetDriverVersion(buffer: Out<u8>, capacity: u32) -> i32 {
        initialized(|description| write_text(buffer, capacity, &description.driver_version))
    }

    /// The CUDA major version and the driver's, as NVIDIA composes it.
    fn nvmlSystemGetNVMLVersion(buffer: Out<u8>, capacity: u32) -> i32 {
        initialized(|it| {
            write_text(buffer, capacity, &format!("{}.{}", it.cuda_version / 1000, it.driver_version))
        })
    }

    fn nvmlSystemGetCudaDriverVersion(version: Out<i32>) -> i32 {
        initialized(|description| {
            version.set(description.cuda_version);
            status::SUCCESS
        })
    }

    fn nvmlSystemGetCudaDriverVersion_v2(version: Out<i32>) -> i32 {
        initialized(|description| {
            version.set(description.cuda_version);
            status::SUCCESS
        })
    }

    fn nvmlSystemGetProcessName(pid: u32, buffer: Out<u8>, capacity: u32) -> i32 {
        initialized(|_| match process_name(pid) {
            Some(name) => write_text(buffer, capacity, &name),
            None => status::NOT_FOUND,
        })
    }
}

entry_points! { on_panic = c"Unknown Error".as_ptr();
    fn nvmlErrorString(code: i32) -> *const c_char {
        error_text(code).as_ptr()
    }
}
