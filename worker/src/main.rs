//! The child process in which vramfit runs real training steps through libtorch.
//!
//! It reads requests and writes replies, one JSON object a line, as `vramfit::probe::protocol`
//! describes. Standard output carries replies and nothing else.
//!
//! ```text
//! request ─► serve ─► measure ─► family: the network on the device
//!                        │   └─► step: zero_grad, forward, backward, clip, optimizer
//!                        ▼
//!                     outcome ─► reply
//! ```
#![deny(unsafe_code)]

mod blocks;
mod clip;
mod failure;
mod family;
mod measure;
mod model;
mod optimizer;
mod scaler;
mod serve;
#[expect(unsafe_code, reason = "calls libtorch and libc")]
mod shim;
mod step;
mod time;

use std::process::ExitCode;

fn main() -> ExitCode {
    // Failures of libtorch travel as panics and become replies; their words belong nowhere else.
    std::panic::set_hook(Box::new(|_| {}));
    let replies = shim::process::end_with_parent().and_then(|()| shim::process::claim_stdout());
    match replies {
        Ok(replies) => serve::serve(std::io::stdin().lock(), replies),
        Err(_) => serve::FAILED.into(),
    }
}
