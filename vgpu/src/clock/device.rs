//! One device: what it does when, on its streams.

use vramfit_vgpu_cost::{Bound, Speed, Work};

use super::Moment;
use super::resource::Resource;
use super::spent::{Spent, Works, nanoseconds};

/// Of the time between two kernels that have nothing to do, the part that is saved where both are nodes of a
/// graph: with kernels of 2.9 µs, 3.8 µs a kernel from a stream and 3.4 µs from a graph (NVIDIA's
/// "Getting Started with CUDA Graphs", 2019, on a V100).
const SAVED_IN_GRAPH: f64 = 0.4 / 0.9;

/// When one stream has done all it was given, and what it was given last.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) end: Moment,
    /// Works so far, and waits that held it up.
    pub(super) works: u64,
    /// Nanoseconds from when the last work could begin to its end.
    pub(super) last: u64,
}

impl Line {
    /// After it has waited for `moment`.
    pub(super) fn caught_up(self, moment: Moment) -> Self {
        if moment <= self.end {
            return self;
        }
        Self { end: moment, works: self.works + 1, ..self }
    }

    /// After another work.
    pub(super) fn with_work(self, start: Moment, end: Moment) -> Self {
        Self { end, works: self.works + 1, last: end.saturating_sub(start) }
    }
}

/// How a stream stands to the legacy default stream of its device (CUDA programming guide, "implicit
/// synchronization").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// It is that stream.
    Legacy,
    /// They wait for each other.
    Blocking,
    /// They do not.
    Free,
}

/// See the [module](self).
pub(super) struct Device {
    speed: Speed,
    /// What of a launch is saved in a graph.
    saved_in_graph: u64,
    /// What the driver keeps the host for.
    pub(super) host_launch: u64,
    pub(super) legacy: Line,
    pub(super) per_thread: Line,
    /// The latest end of the streams that the legacy one waits for, its own included, and of all.
    blocking: Moment,
    latest: Moment,
    processors: Resource,
    host_link: Resource,
    peer_link: Resource,
    /// When the first work began.
    first: Option<Moment>,
    /// Nanoseconds in which there was any work, and until when they are counted.
    busy: u64,
    busy_until: Moment,
    pub(super) spent: Spent,
    pub(super) works: Works,
}

impl Device {
    pub(super) fn new(speed: &Speed) -> Self {
        let efficiency = &speed.efficiency;
        Self {
            speed: speed.clone(),
            saved_in_graph: nanoseconds(efficiency.launch_seconds * SAVED_IN_GRAPH),
            host_launch: nanoseconds(efficiency.host_launch_seconds),
            legacy: Line::default(),
            per_thread: Line::default(),
            blocking: 0,
            latest: 0,
            processors: Resource::default(),
            host_link: Resource::default(),
            peer_link: Resource::default(),
            first: None,
            busy: 0,
            busy_until: 0,
            spent: Spent::default(),
            works: Works::default(),
        }
    }

    /// When a stream that has done its own until `own` can go on.
    pub(super) fn ready(&self, order: Order, own: Moment) -> Moment {
        match order {
            Order::Legacy => self.blocking.max(own),
            Order::Blocking => self.legacy.end.max(own),
            Order::Free => own,
        }
    }

    /// A stream of that order is busy until `end`.
    pub(super) fn until(&mut self, order: Order, end: Moment) {
        if order != Order::Free {
            self.blocking = self.blocking.max(end);
        }
        self.latest = self.latest.max(end);
    }

    /// Does `work`, called `name`, which can begin at `start`, and which the host comes to at `now`; when it
    /// ends. What fills the multiprocessors, the way to the host or the way to other devices takes turns
    /// with its like on other streams; what is over before the next launch runs beside it.
    pub(super) fn run(
        &mut self,
        name: &'static str,
        work: &Work,
        now: Moment,
        start: Moment,
        in_graph: bool,
    ) -> Moment {
        let saved = if in_graph { self.saved_in_graph } else { 0 };
        let (taken, bound) = self.works.take(name, work, &self.speed, saved);
        let resource = match (bound, work) {
            (Bound::Launch, _) => None,
            (Bound::Transfer, Work::Copy(copy)) if copy.route.is_to_host() => {
                Some(&mut self.host_link)
            }
            (Bound::Transfer, _) => Some(&mut self.peer_link),
            _ => Some(&mut self.processors),
        };
        let (begin, end) =
            resource.map_or((start, start + taken), |resource| resource.take(now, start, taken));
        self.spent.add(bound, taken);
        self.first = Some(self.first.map_or(begin, |first| first.min(begin)));
        self.busy += end.saturating_sub(begin.max(self.busy_until));
        self.busy_until = self.busy_until.max(end);
        end
    }

    /// When all streams have done what they were given.
    pub(super) fn latest(&self) -> Moment {
        self.latest
    }

    /// Nanoseconds in which there was any work.
    pub(super) fn busy(&self) -> u64 {
        self.busy
    }

    /// Nanoseconds from the first work's begin to the last one's end.
    pub(super) fn total(&self) -> Option<u64> {
        Some(self.busy_until.saturating_sub(self.first?))
    }
}

#[cfg(test)]
mod tests {
    use vramfit_vgpu_cost::{Copy, Route, Streaming, StreamingClass};

    use super::*;

    fn streaming(bytes: u64) -> Work {
        Work::Streaming(Streaming { class: StreamingClass::Elementwise, bytes, threads: 1 << 20 })
    }

    fn copy(route: Route) -> Work {
        Work::Copy(Copy { route, bytes: 100 << 20 })
    }

    #[test]
    fn kernels_that_fill_the_device_take_turns_and_copies_run_beside_them() {
        let mut device = Device::new(&Speed::small());
        let kernel = device.run("a", &streaming(100 << 20), 0, 0, false);
        assert_eq!(device.run("a", &streaming(100 << 20), 0, 0, false), 2 * kernel);
        let copied = device.run("copy", &copy(Route::Pinned), 0, 0, false);
        assert_ne!(copied, kernel);
        assert_eq!(device.run("copy", &copy(Route::Pinned), 0, 0, false), 2 * copied);
        assert!(device.run("copy", &copy(Route::Device), 0, 0, false) > 2 * kernel);
    }

    #[test]
    fn work_that_can_begin_earlier_does_not_wait_for_what_was_given_before() {
        let mut device = Device::new(&Speed::small());
        let kernel =
            device.run("a", &streaming(100 << 20), 0, 1_000_000_000, false) - 1_000_000_000;
        assert_eq!(device.run("a", &streaming(100 << 20), 0, 5, false), 5 + kernel);
    }

    #[test]
    fn time_is_spent_by_what_work_waits_for() {
        let mut device = Device::new(&Speed::small());
        let end_of_kernel = device.run("a", &streaming(100 << 20), 0, 7, false);
        let end = device.run("b", &Work::Unknown, 0, end_of_kernel + 50, false);
        let (memory, launch) = (end_of_kernel - 7, end - end_of_kernel - 50);
        assert_eq!(device.spent, Spent { memory, launch, ..Spent::default() });
        assert_eq!((device.total(), device.busy()), (Some(end - 7), memory + launch));
        let of_node = device.run("b", &Work::Unknown, 0, end, true) - end;
        assert!(of_node < launch && of_node > launch / 2, "{of_node} of {launch}");
    }

    #[test]
    fn the_legacy_stream_and_blocking_ones_wait_for_each_other() {
        let mut device = Device::new(&Speed::small());
        device.until(Order::Free, 9);
        assert_eq!(device.ready(Order::Legacy, 0), 0);
        device.until(Order::Blocking, 5);
        assert_eq!(device.ready(Order::Legacy, 0), 5);
        device.legacy.end = 7;
        device.until(Order::Legacy, 7);
        assert_eq!(device.ready(Order::Blocking, 5), 7);
        assert_eq!(device.ready(Order::Free, 5), 5);
        assert_eq!(device.latest(), 9);
    }
}
