//! Copies, fills and collectives.

use crate::price::roofline;
use crate::{Bound, Collective, Copy, Price, Route, Speed};

/// Seconds of one step of a collective that moves nothing.
const STEP_SECONDS: f64 = 5e-6;

pub(crate) fn copy(copy: &Copy, speed: &Speed) -> Price {
    let efficiency = &speed.efficiency;
    let bytes = copy.bytes as f64;
    let memory = speed.memory_bandwidth * efficiency.elementwise;
    match copy.route {
        Route::Device => roofline(0.0, 2.0 * bytes / memory, speed),
        Route::Fill => roofline(0.0, bytes / memory, speed),
        Route::Pinned => over(bytes, speed.host_bandwidth * efficiency.pinned, speed),
        Route::Pageable => over(bytes, speed.host_bandwidth * efficiency.pageable, speed),
        Route::Peer => over(bytes, speed.peer_bandwidth * efficiency.peer, speed),
    }
}

pub(crate) fn collective(collective: &Collective, speed: &Speed) -> Price {
    let rate = speed.peer_bandwidth * speed.efficiency.peer;
    let steps = collective.steps as f64 * STEP_SECONDS;
    let moved = over(collective.sent_bytes as f64, rate, speed);
    Price { seconds: moved.seconds + steps, ..moved }
}

fn over(bytes: f64, rate: f64, speed: &Speed) -> Price {
    let launch = speed.efficiency.launch_seconds;
    let seconds = if rate > 0.0 { bytes / rate } else { 0.0 };
    let bound = if seconds < launch { Bound::Launch } else { Bound::Transfer };
    Price { seconds: launch + seconds, bound }
}
