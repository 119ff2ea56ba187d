//! Stream capture: while it lasts, what a stream is given becomes nodes of a graph.
//!
//! What is allowed meanwhile, and with which error it ends, follows the CUDA programming guide ("stream
//! capture", "prohibited and unhandled operations", "invalidation") and the reference of
//! `cudaThreadExchangeStreamCaptureMode`.

mod forbidden;
mod order;

use std::borrow::Cow;
use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::ThreadId;

use vramfit_vgpu_cost::Work;

pub(crate) use forbidden::{
    exchange_mode, forbid_captured, forbid_device, forbid_stream, forbid_unsafe,
};
pub(crate) use order::{Mark, mark, wait};

use super::{Effect, Graph, Kind, Node, destroy, node_handle};
use crate::runtime::status::{
    ILLEGAL_STATE, INITIALIZATION_ERROR, INVALID_VALUE, STREAM_CAPTURE_IMPLICIT,
    STREAM_CAPTURE_INVALIDATED, STREAM_CAPTURE_UNJOINED, STREAM_CAPTURE_UNMATCHED,
    STREAM_CAPTURE_UNSUPPORTED, STREAM_CAPTURE_WRONG_THREAD, Status,
};
use crate::{clock, device, memory};

/// `cudaStreamCaptureMode`.
mod mode {
    pub(super) const GLOBAL: i32 = 0;
    pub(super) const RELAXED: i32 = 2;
}

/// `cudaStreamCaptureStatus`.
const NOT_CAPTURING: c_int = 0;
const ACTIVE: c_int = 1;
const INVALIDATED: c_int = 2;

/// A capture under way.
struct Capture {
    id: u64,
    mode: c_int,
    thread: ThreadId,
    /// The stream it began on.
    origin: usize,
    /// CUDA ordinal of that stream, and whether it waits for the legacy stream.
    ordinal: usize,
    blocking: bool,
    graph: Arc<Graph>,
    handle: usize,
    invalidated: bool,
    /// The streams that take part.
    streams: HashMap<usize, Tip>,
}

/// Where a stream of a capture stands.
#[derive(Default)]
struct Tip {
    /// The nodes that its next one follows.
    after: Vec<usize>,
    /// Their handles, as they were told the program, which may read them until its next call.
    told: Box<[usize]>,
}

/// What a program may ask about a stream's capture.
pub(crate) struct Answer {
    pub(crate) status: c_int,
    pub(crate) id: u64,
    pub(crate) graph: *mut c_void,
    pub(crate) dependencies: *const c_void,
    pub(crate) dependency_count: usize,
}

static CAPTURES: Mutex<Vec<Capture>> = Mutex::new(Vec::new());
/// How many there are: a launch must not wait for a lock to learn that there is none.
static COUNT: AtomicUsize = AtomicUsize::new(0);

fn lock() -> MutexGuard<'static, Vec<Capture>> {
    CAPTURES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Whether any stream is being captured.
pub(crate) fn any() -> bool {
    COUNT.load(Ordering::Acquire) > 0
}

/// Whether `stream` is being captured.
pub(crate) fn is_under_way_on(stream: *mut c_void) -> bool {
    any() && of_stream(&mut lock(), stream).is_some()
}

fn of_stream(captures: &mut [Capture], stream: *mut c_void) -> Option<&mut Capture> {
    captures.iter_mut().find(|it| it.streams.contains_key(&(stream as usize)))
}

/// The default stream, which other streams wait for; none of CUDA's own can be captured here.
fn is_legacy(stream: *mut c_void) -> bool {
    (stream as usize) < 2
}

/// Begins to capture `stream` of CUDA ordinal `ordinal`.
pub(crate) fn begin(
    stream: *mut c_void,
    ordinal: usize,
    blocking: bool,
    mode: c_int,
) -> Result<(), Status> {
    if !(mode::GLOBAL..=mode::RELAXED).contains(&mode) {
        return Err(INVALID_VALUE);
    }
    if stream as usize <= 2 {
        return Err(STREAM_CAPTURE_UNSUPPORTED);
    }
    static IDS: AtomicU64 = AtomicU64::new(1);
    let mut captures = lock();
    if of_stream(&mut captures, stream).is_some() {
        return Err(ILLEGAL_STATE);
    }
    let (handle, graph) = super::create(ordinal);
    captures.push(Capture {
        id: IDS.fetch_add(1, Ordering::Relaxed),
        mode,
        thread: std::thread::current().id(),
        origin: stream as usize,
        ordinal,
        blocking,
        graph,
        handle: handle as usize,
        invalidated: false,
        streams: HashMap::from([(stream as usize, Tip::default())]),
    });
    COUNT.store(captures.len(), Ordering::Release);
    Ok(())
}

/// Ends the capture that began on `stream`; the handle of its graph.
pub(crate) fn end(stream: *mut c_void) -> Result<*mut c_void, Status> {
    let mut captures = lock();
    let capture = of_stream(&mut captures, stream).ok_or(ILLEGAL_STATE)?;
    if capture.origin != stream as usize {
        capture.invalidated = true;
        return Err(STREAM_CAPTURE_UNMATCHED);
    }
    if capture.mode != mode::RELAXED && capture.thread != std::thread::current().id() {
        return Err(STREAM_CAPTURE_WRONG_THREAD);
    }
    let (id, handle) = (capture.id, capture.handle as *mut c_void);
    let failure = if capture.invalidated {
        Some(STREAM_CAPTURE_INVALIDATED)
    } else if !capture.graph.ends_in(&capture.streams[&(stream as usize)].after) {
        Some(STREAM_CAPTURE_UNJOINED)
    } else {
        None
    };
    remove(captures, id);
    match failure {
        Some(failure) => {
            destroy(handle);
            Err(failure)
        }
        None => Ok(handle),
    }
}

fn remove(mut captures: MutexGuard<'_, Vec<Capture>>, id: u64) {
    captures.retain(|it| it.id != id);
    COUNT.store(captures.len(), Ordering::Release);
}

/// The state of `stream`'s capture.
pub(crate) fn answer(stream: *mut c_void) -> Answer {
    let null = std::ptr::null_mut();
    let mut answer = Answer {
        status: NOT_CAPTURING,
        id: 0,
        graph: null,
        dependencies: std::ptr::null(),
        dependency_count: 0,
    };
    if !any() {
        return answer;
    }
    let mut captures = lock();
    let Some(capture) = of_stream(&mut captures, stream) else { return answer };
    answer.status = if capture.invalidated { INVALIDATED } else { ACTIVE };
    answer.id = capture.id;
    answer.graph = capture.handle as *mut c_void;
    let handle = capture.handle;
    if let Some(tip) = capture.streams.get_mut(&(stream as usize)) {
        tip.told = tip.after.iter().map(|it| node_handle(handle, *it)).collect();
        answer.dependencies = tip.told.as_ptr().cast();
        answer.dependency_count = tip.told.len();
    }
    answer
}

/// The capture that `stream` is in, if what it is given now may be captured or, outside of one, done.
fn entered(captures: &mut [Capture], stream: *mut c_void) -> Result<Option<&mut Capture>, Status> {
    if is_legacy(stream) {
        // It waits for every blocking stream of its device, which would tie it to the capture.
        let ordinal = device::current();
        return match captures.iter_mut().find(|it| it.blocking && it.ordinal == ordinal) {
            Some(capture) => {
                capture.invalidated = true;
                Err(STREAM_CAPTURE_IMPLICIT)
            }
            None => Ok(None),
        };
    }
    match of_stream(captures, stream) {
        Some(capture) if capture.invalidated => Err(STREAM_CAPTURE_INVALIDATED),
        found => Ok(found),
    }
}

impl Capture {
    /// Adds a node behind what `stream` was given last.
    fn add(
        &mut self,
        stream: *mut c_void,
        kind: Kind,
        name: impl Into<Cow<'static, str>>,
        work: Work,
        effect: Effect,
    ) {
        let tip = self.streams.entry(stream as usize).or_default();
        let after = std::mem::take(&mut tip.after);
        tip.after = vec![self.graph.add(Node { kind, name: name.into(), after, work, effect })];
    }
}

/// A forked child shares its parent's device memory, and must not write there.
fn refuse_forked() -> Result<(), Status> {
    if device::forked() { Err(INITIALIZATION_ERROR) } else { Ok(()) }
}

/// Gives `stream` what is called `name` and asks `work` of the device: it is captured or, outside of a
/// capture, done. `effect` is what really happens.
pub(crate) fn submit(
    stream: *mut c_void,
    kind: Kind,
    name: &'static str,
    work: Work,
    effect: impl Fn() + Send + Sync + 'static,
) -> Result<(), Status> {
    refuse_forked()?;
    if any() {
        let mut captures = lock();
        if let Some(capture) = entered(&mut captures, stream)? {
            capture.add(stream, kind, name, work, Arc::new(effect));
            return Ok(());
        }
    }
    effect();
    if kind.takes_time() {
        clock::run(name, &work);
    }
    Ok(())
}

/// As [`submit`], but what is not captured is left to the caller: false.
pub(crate) fn take(
    stream: *mut c_void,
    kind: Kind,
    name: &'static str,
    work: &Work,
    effect: impl Fn() + Send + Sync + 'static,
) -> Result<bool, Status> {
    refuse_forked()?;
    if any()
        && let Some(capture) = entered(&mut lock(), stream)?
    {
        capture.add(stream, kind, name, work.clone(), Arc::new(effect));
        return Ok(true);
    }
    Ok(false)
}

/// Memory for a node that allocates, if `stream` is being captured.
pub(crate) fn allocate(stream: *mut c_void, bytes: u64) -> Result<Option<u64>, Status> {
    if any()
        && let Some(capture) = entered(&mut lock(), stream)?
    {
        let address = capture.graph.memory.allocate(bytes)?;
        let name = format!("{bytes} bytes");
        capture.add(stream, Kind::Allocate, name, Work::Unknown, Arc::new(|| ()));
        return Ok(Some(address));
    }
    Ok(None)
}

/// Frees what a graph allocated, if `stream` is being captured: this one's at once, so that what is
/// captured later may use it, another one's with each launch.
pub(crate) fn free(stream: *mut c_void, address: u64) -> Result<bool, Status> {
    if any()
        && let Some(capture) = entered(&mut lock(), stream)?
    {
        let own = capture.graph.memory.free(address);
        if !own && !memory::graph::holds(address) {
            return Err(INVALID_VALUE);
        }
        capture.add(
            stream,
            Kind::Free,
            format!("{address:#x}"),
            Work::Unknown,
            Arc::new(move || {
                if !own {
                    memory::graph::free(address);
                }
            }),
        );
        return Ok(true);
    }
    Ok(false)
}

fn invalidate(captures: &mut [Capture], id: u64, failure: Status) -> Status {
    for capture in captures.iter_mut().filter(|it| it.id == id) {
        capture.invalidated = true;
    }
    failure
}

/// A stream that ends takes its capture with it, which nobody can end any more; one that only joined a
/// capture makes it void.
pub(crate) fn forget_stream(stream: *mut c_void) {
    if !any() {
        return;
    }
    let mut captures = lock();
    let Some(capture) = of_stream(&mut captures, stream) else { return };
    if capture.origin != stream as usize {
        capture.invalidated = true;
        return;
    }
    let (id, handle) = (capture.id, capture.handle as *mut c_void);
    remove(captures, id);
    destroy(handle);
}
