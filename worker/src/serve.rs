//! The conversation with the CLI.

use std::env;
use std::io::{BufRead, Write};
use std::panic::catch_unwind;
use std::process::ExitCode;

use tch::{Device, Kind, Tensor};
use vramfit::probe::protocol::{Hello, PROTOCOL, Reply, Request};
use vramfit::units::Bytes;

use crate::failure;
use crate::measure::{Measured, measure, survey, works};
use crate::shim::{checkpoint, device, process};

/// Exit code of a worker that cannot go on.
pub(crate) const FAILED: u8 = 3;

/// Set to `cpu`, lets the worker train on the CPU, where there is no memory to measure: for tests
/// of the worker itself.
const DEVICE_VARIABLE: &str = "VRAMFIT_WORKER_DEVICE";

/// Answers requests until told to quit or the input ends.
pub(crate) fn serve(requests: impl BufRead, mut replies: impl Write) -> ExitCode {
    let (device, hello) = match open() {
        Ok(opened) => opened,
        Err(message) => return refuse(&mut replies, message),
    };
    if say(&mut replies, &Reply::Ready(hello)).is_err() {
        return FAILED.into();
    }
    let mut held: Option<Measured> = None;
    for line in requests.lines() {
        let Ok(line) = line else { break };
        if line.trim().is_empty() {
            continue;
        }
        let request = match serde_json::from_str(&line) {
            Ok(request) => request,
            Err(error) => return refuse(&mut replies, format!("not a request: {error}")),
        };
        match request {
            Request::Quit => break,
            Request::Build { .. } => {
                return refuse(&mut replies, "this worker has no function to call".to_owned());
            }
            Request::Release | Request::Measure { .. } | Request::Survey { .. } => {}
        }
        drop(held.take());
        if let Err(message) = release(device) {
            return refuse(&mut replies, message);
        }
        let (id, workload, point, steps) = match request {
            Request::Measure { id, workload, point, steps } => (id, workload, point, steps),
            Request::Survey { id, workload, point } => {
                let (blocks, reason) = match survey(&workload, &point, device) {
                    Ok(blocks) => (blocks, None),
                    Err(reason) => (Vec::new(), Some(reason)),
                };
                if say(&mut replies, &Reply::Surveyed { id, blocks, reason }).is_err() {
                    return FAILED.into();
                }
                if !works(device) {
                    std::process::exit(i32::from(FAILED));
                }
                continue;
            }
            Request::Release | Request::Build { .. } | Request::Quit => {
                if say(&mut replies, &Reply::Released).is_err() {
                    return FAILED.into();
                }
                continue;
            }
        };
        let measured = measure(&workload, &point, steps, device);
        let reserved = if device.is_cuda() && measured.usable {
            device::allocator()
                .map_or(Bytes::ZERO, |now| Bytes(u64::try_from(now.reserved).unwrap_or(0)))
        } else {
            Bytes::ZERO
        };
        let reply = Reply::Measured { id, outcome: measured.outcome.clone(), reserved };
        if say(&mut replies, &reply).is_err() {
            return FAILED.into();
        }
        if !measured.usable {
            // The CUDA context is lost, and freeing memory in it would only fail again.
            std::process::exit(i32::from(FAILED));
        }
        held = Some(measured);
    }
    ExitCode::SUCCESS
}

/// Opens the device and makes its context.
fn open() -> Result<(Device, Hello), String> {
    let loaded = process::load_libtorch_cuda();
    process::skip_destructors();
    checkpoint::install().map_err(|error| error.to_string())?;
    let hello = |cuda: String, cudnn: String, device: String, memory| Hello {
        protocol: PROTOCOL,
        version: env!("CARGO_PKG_VERSION").to_owned(),
        pid: std::process::id(),
        torch: device::torch_version(),
        cuda,
        cudnn,
        device,
        memory,
    };
    if env::var_os(DEVICE_VARIABLE).is_some_and(|value| value == "cpu") {
        let none = || "none".to_owned();
        return Ok((Device::Cpu, hello(none(), none(), "CPU".to_owned(), None)));
    }
    loaded.map_err(|reason| format!("PyTorch's CUDA half cannot be loaded: {reason}"))?;
    if !tch::Cuda::is_available() {
        return Err("CUDA is not available: no driver, or no GPU that it can use".to_owned());
    }
    let device = Device::Cuda(0);
    let opened = catch_unwind(|| {
        drop(Tensor::zeros([1], (Kind::Float, device)));
        tch::Cuda::synchronize(0);
        device::empty_cache()
    });
    match opened {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(format!("the GPU cannot be opened: {error}")),
        Err(panic) => {
            let reason = failure::text_of_panic(panic.as_ref());
            return Err(format!("the GPU cannot be opened: {reason}"));
        }
    }
    let text = |error: tch::TchError| failure::without_appendix(&error.to_string());
    let hello = hello(
        device::cuda_version().map_err(text)?,
        device::cudnn_version().map_err(text)?,
        device::device_name().map_err(text)?,
        Some(device::memory().map_err(text)?),
    );
    Ok((device, hello))
}

/// Gives back all device memory, so that the next point starts as in a fresh process.
fn release(device: Device) -> Result<(), String> {
    if !device.is_cuda() {
        return Ok(());
    }
    let left = device::clear_cublas_workspaces()
        .and_then(|()| device::empty_cache())
        .and_then(|()| device::allocator())
        .map_err(|error| failure::without_appendix(&error.to_string()))?;
    if left.reserved == 0 {
        Ok(())
    } else {
        Err(format!(
            "{} of the point before cannot be released ({} live); a fresh worker is needed",
            Bytes(u64::try_from(left.reserved).unwrap_or(0)),
            Bytes(u64::try_from(left.allocated).unwrap_or(0)),
        ))
    }
}

fn say(replies: &mut impl Write, reply: &Reply) -> std::io::Result<()> {
    // In one piece: a write a token would wake the reader as often.
    let mut line = serde_json::to_vec(reply)?;
    line.push(b'\n');
    replies.write_all(&line)?;
    replies.flush()
}

fn refuse(replies: &mut impl Write, message: String) -> ExitCode {
    // One line, and whether it could be written no longer matters.
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = say(replies, &Reply::Refused { message });
    FAILED.into()
}
