//! Virtual time: when what a program launches would begin and end on the device that is not there.
//!
//! ```text
//! host ──launch──► stream ──► device ──► spent
//!   ▲                 │        when it begins and ends      by what it waits for
//!   └──waits for──────┘
//! ```
//!
//! The host has a clock ([`host`]), and each stream a moment at which it has done all it was given. A launch
//! begins when the host has come to it and its stream is ready, and takes what the cost model says. Nobody
//! waits for real: where the host would, its clock moves on. Questions (`cudaEventQuery`,
//! `cudaStreamQuery`) are not answered by this clock but as ever, "done": what PyTorch's allocator frees
//! must not depend on how fast the machine is on which the virtual GPU runs.

mod device;
pub(crate) mod host;
mod queue;
mod resource;
mod spent;

use std::ffi::c_void;
use std::sync::{LazyLock, Mutex, MutexGuard, PoisonError};

use vramfit_vgpu_cost::Work;
use vramfit_vgpu_schema::{PricedWork, Time};

use self::device::{Device, Line, Order};
pub(crate) use self::spent::Spent;
use crate::by_address::ByAddress;

/// Nanoseconds of virtual time since the process began to use the virtual GPU.
pub(crate) type Moment = u64;

/// What an event remembers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// When its stream has done all before it.
    pub(crate) moment: Moment,
    stream: usize,
    /// Works and waits that the stream was given before it, and what the last of these works takes.
    works: u64,
    last: u64,
}

/// A stream that a program made.
struct Made {
    ordinal: usize,
    order: Order,
    line: Line,
}

/// All devices and streams.
struct Clock {
    devices: Vec<Device>,
    made: ByAddress<Made>,
}

static CLOCK: LazyLock<Mutex<Clock>> = LazyLock::new(|| {
    let machine = crate::device::machine();
    let devices = machine
        .iter()
        .flat_map(|machine| (0..machine.visible().len()).filter_map(|it| machine.device(it)))
        .map(|device| Device::new(&device.speed))
        .collect();
    Mutex::new(Clock { devices, made: ByAddress::default() })
});

fn lock() -> MutexGuard<'static, Clock> {
    CLOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Clock {
    /// The device of a stream, how that stands to the default one, and its line. Built-in streams are the
    /// current device's; one that is no more, or never was, is new.
    fn stream(&mut self, handle: usize) -> Option<(&mut Device, Order, Line)> {
        let current = crate::device::current();
        if handle > 2 {
            let line = Line::default();
            let made = Made { ordinal: current, order: Order::Free, line };
            let made = self.made.entry(handle).or_insert(made);
            return Some((self.devices.get_mut(made.ordinal)?, made.order, made.line));
        }
        let device = self.devices.get_mut(current)?;
        Some(if handle == 2 {
            let line = device.per_thread;
            (device, Order::Blocking, line)
        } else {
            let line = device.legacy;
            (device, Order::Legacy, line)
        })
    }

    fn set(&mut self, handle: usize, line: Line) {
        let current = crate::device::current();
        let (ordinal, order) = match self.made.get_mut(&handle) {
            Some(made) => {
                made.line = line;
                (made.ordinal, made.order)
            }
            None => (current, if handle == 2 { Order::Blocking } else { Order::Legacy }),
        };
        let Some(device) = self.devices.get_mut(ordinal) else { return };
        match handle {
            0 | 1 => device.legacy = line,
            2 => device.per_thread = line,
            _ => {}
        }
        device.until(order, line.end);
    }

    /// CUDA ordinal of a stream's device.
    fn ordinal(&self, handle: usize) -> usize {
        self.made.get(&handle).map_or_else(crate::device::current, |made| made.ordinal)
    }

    /// When a stream has done all it was given.
    fn end(&mut self, handle: usize) -> Moment {
        self.stream(handle).map_or(0, |(device, order, line)| device.ready(order, line.end))
    }
}

/// A stream was made; `blocking` if it waits for the default one.
pub(crate) fn stream_made(stream: *mut c_void, ordinal: usize, blocking: bool) {
    let order = if blocking { Order::Blocking } else { Order::Free };
    lock().made.insert(stream as usize, Made { ordinal, order, line: Line::default() });
}

/// A stream is no more; its device still does what it was given.
pub(crate) fn stream_ended(stream: *mut c_void) {
    lock().made.remove(&(stream as usize));
}

/// The host gives `stream` what is called `name`.
pub(crate) fn run(stream: *mut c_void, name: &'static str, work: &Work) {
    let mut clock = lock();
    let Some((device, order, line)) = clock.stream(stream as usize) else { return };
    host::launches(device.host_launch);
    let line = line.caught_up(device.ready(order, line.end));
    let now = host::now();
    let start = line.end.max(now);
    let end = device.run(name, work, now, start, false);
    clock.set(stream as usize, line.with_work(start, end));
}

/// The host gives `stream` a graph, whose nodes `body` runs: from the moment it is told, on that CUDA
/// ordinal, until the moment it answers.
pub(crate) fn run_graph(stream: *mut c_void, body: impl FnOnce(Moment, usize) -> Moment) {
    let begun = {
        let mut clock = lock();
        let ordinal = clock.ordinal(stream as usize);
        clock.stream(stream as usize).map(|(device, order, line)| {
            host::launches(device.host_launch);
            (line.caught_up(device.ready(order, line.end)), ordinal)
        })
    };
    let Some((line, ordinal)) = begun else {
        body(0, 0);
        return;
    };
    let start = line.end.max(host::now());
    let end = body(start, ordinal);
    lock().set(stream as usize, line.with_work(start, end));
}

/// A node of a graph, called `name`, is done on CUDA ordinal `ordinal` from `start` on; when it ends.
pub(crate) fn run_node(ordinal: usize, name: &'static str, work: &Work, start: Moment) -> Moment {
    let mut clock = lock();
    clock
        .devices
        .get_mut(ordinal)
        .map_or(start, |device| device.run(name, work, host::now(), start, true))
}

/// An event is recorded on `stream` now.
pub(crate) fn record(stream: *mut c_void) -> Record {
    let mut clock = lock();
    let now = host::now();
    let Some((device, order, line)) = clock.stream(stream as usize) else { return Record::at(now) };
    let line = line.caught_up(device.ready(order, line.end));
    clock.set(stream as usize, line);
    let Line { end, works, last } = line;
    Record { moment: end.max(now), stream: stream as usize, works, last }
}

impl Record {
    /// Of an event that happens at `moment`, on no stream in particular.
    pub(crate) fn at(moment: Moment) -> Self {
        Self { moment, stream: usize::MAX, works: 0, last: 0 }
    }

    /// Nanoseconds from one event to another.
    ///
    /// What lies around a single work is what that work takes: how long the host needs to come to it is
    /// left out, so that who times kernels one by one to choose between them (`cudnn.benchmark`, Triton's
    /// autotuner) chooses the same on every run, and with it the same workspace.
    pub(crate) fn until(&self, end: &Self) -> i64 {
        if self.stream == end.stream && end.works == self.works + 1 {
            return end.last as i64;
        }
        end.moment as i64 - self.moment as i64
    }
}

/// `stream` waits for `moment`.
pub(crate) fn wait(stream: *mut c_void, moment: Moment) {
    let mut clock = lock();
    let Some((_, _, line)) = clock.stream(stream as usize) else { return };
    clock.set(stream as usize, line.caught_up(moment));
}

/// The host waits for `moment`.
pub(crate) fn synchronize(moment: Moment) {
    let _alone = lock();
    host::wait(moment);
}

/// The host waits for `stream`.
pub(crate) fn synchronize_stream(stream: *mut c_void) {
    let mut clock = lock();
    host::wait(clock.end(stream as usize));
}

/// The host waits for a device.
pub(crate) fn synchronize_device(ordinal: usize) {
    let clock = lock();
    host::wait(clock.devices.get(ordinal).map_or(0, Device::latest));
}

/// How a device stands.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct State {
    /// When the host would go on if it waited for the device now.
    pub(crate) now: Moment,
    /// Nanoseconds in which the device had any work.
    pub(crate) busy: u64,
    pub(crate) spent: Spent,
    /// Nanoseconds that the program and PyTorch have been at work on the host.
    pub(crate) dispatch: u64,
}

/// How CUDA ordinal `ordinal` stands.
pub(crate) fn state(ordinal: usize) -> State {
    let clock = lock();
    let mut state = State { now: host::now(), dispatch: host::dispatch(), ..State::default() };
    if let Some(device) = clock.devices.get(ordinal) {
        state.now = state.now.max(device.latest());
        state.busy = device.busy();
        state.spent = device.spent;
    }
    state
}

/// Where the time of each device went, in seconds; zeros of one that was given nothing.
pub(crate) fn times() -> Vec<Time> {
    let seconds = |nanoseconds: u64| nanoseconds as f64 / 1e9;
    let time = |device: &Device| Time {
        total: seconds(device.total().unwrap_or(0)),
        busy: seconds(device.busy()),
        compute: seconds(device.spent.compute),
        memory: seconds(device.spent.memory),
        launch: seconds(device.spent.launch),
        transfer: seconds(device.spent.transfer),
    };
    lock().devices.iter().map(time).collect()
}

/// What all devices were given, with its price; what took longest first.
pub(crate) fn works() -> Vec<PricedWork> {
    let clock = lock();
    let mut works: Vec<_> = clock.devices.iter().flat_map(|device| device.works.list()).collect();
    drop(clock);
    works.sort_by_cached_key(|it| (it.name.clone(), format!("{:?}", it.work)));
    works.dedup_by(|next, kept| {
        let same = next.name == kept.name && next.work == kept.work;
        if same {
            kept.count += next.count;
            kept.seconds += next.seconds;
        }
        same
    });
    works.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
    works
}
