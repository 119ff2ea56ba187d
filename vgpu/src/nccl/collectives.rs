//! The exported exchanges: collectives, messages between two ranks, and what they use.

use std::ffi::{c_int, c_void};

use super::communicator::{Communicator, communicator, cuda_failure};
use super::element::{Element, number_at};
use super::group::submit;
use super::membership::rank_number;
use super::operation::{Exchange, Operation};
use super::reduction::{Reduction, forget_scaled_sum, make_scaled_sum};
use super::work::work;
use super::{Failure, finish, status, watchdog};
use crate::entry::{Out, entry_points};
use crate::graph::capture;
use crate::{activity, clock, copy, memory};

/// One exchange of `count` elements, as the calls below describe it.
struct Request {
    call: &'static str,
    source: *const c_void,
    target: *mut c_void,
    count: usize,
    element: c_int,
    communicator: *mut c_void,
    stream: *mut c_void,
}

impl Request {
    /// Checks the request and carries it out; `exchange` is made from element and communicator.
    fn run(
        self,
        exchange: impl FnOnce(Element, &Communicator) -> Result<Exchange, Failure>,
    ) -> i32 {
        finish(self.submit(exchange))
    }

    fn submit(
        self,
        exchange: impl FnOnce(Element, &Communicator) -> Result<Exchange, Failure>,
    ) -> Result<(), Failure> {
        let _pause = clock::host::pause();
        if capture::is_under_way_on(self.stream) {
            activity::not_implemented("NCCL within a CUDA graph");
            return Err(Failure::new(
                status::INVALID_USAGE,
                "the virtual GPU captures no NCCL call into a CUDA graph",
            ));
        }
        let communicator = communicator(self.communicator)?;
        communicator.check()?;
        let element = Element::of(self.element)?;
        let exchange = exchange(element, &communicator)?;
        let bytes = self
            .count
            .checked_mul(element.bytes())
            .ok_or_else(|| Failure::argument(format!("{} elements", self.count)))?;
        communicator.connect(match exchange {
            Exchange::Send(peer) | Exchange::Receive(peer) => Some(peer),
            _ => None,
        })?;
        let Self { call, source, target, .. } = self;
        let mut operation =
            Operation { source, target, bytes, ..Operation::new(&communicator, exchange) };
        operation.look_at_source();
        let work = work(&operation.exchange, bytes as u64, communicator.ranks() as u64);
        copy::launch_of_known_effect(|| activity::collective(call, bytes as u64));
        submit(operation)?;
        clock::run(self.stream, call, &work);
        watchdog::queued(self.stream as usize);
        Ok(())
    }
}

/// A rank of `communicator` that came from outside.
fn peer(communicator: &Communicator, rank: c_int) -> Result<usize, Failure> {
    let peer = rank_number(rank)?;
    if peer < communicator.ranks() {
        Ok(peer)
    } else {
        Err(Failure::argument(format!("rank {rank} of {} ranks", communicator.ranks())))
    }
}

entry_points! {
    on_panic = status::INTERNAL_ERROR;

    fn ncclMemAlloc(pointer: Out<*mut c_void>, bytes: usize) -> i32 {
        finish(memory::allocate(bytes as u64).map(|address| pointer.set(address)).map_err(|error| {
            cuda_failure(error.into())
        }))
    }

    fn ncclMemFree(pointer: *mut c_void) -> i32 {
        let freed = memory::free(pointer);
        finish(if freed { Ok(()) } else { Err(Failure::argument("not an allocation")) })
    }

    /// An operator that multiplies each rank's part by a factor of that rank before it adds. The factor
    /// may lie on the device (residence 0), where it was put before the operator is used.
    fn ncclRedOpCreatePreMulSum(operator: Out<c_int>, factor: *const c_void, element: c_int,
        _residence: c_int, handle: *mut c_void) -> i32 {
        finish(communicator(handle).and_then(|_| {
            let element = Element::of(element)?;
            let mut bytes = [0; 8];
            copy::read(factor, &mut bytes[..element.bytes()]);
            // SAFETY: `bytes` holds one element of any type.
            let factor = unsafe { number_at(bytes.as_ptr().cast(), element) };
            let factor = factor.ok_or_else(|| Failure::argument("no factors of 8 bits"))?;
            operator.set(make_scaled_sum(factor));
            Ok(())
        }))
    }

    fn ncclRedOpDestroy(operator: c_int, _handle: *mut c_void) -> i32 {
        let known = forget_scaled_sum(operator);
        finish(if known { Ok(()) } else { Err(Failure::argument("no operator of a program")) })
    }

    fn ncclAllReduce(source: *const c_void, target: *mut c_void, count: usize, element: c_int,
        reduction: c_int, communicator: *mut c_void, stream: *mut c_void) -> i32 {
        Request { call: "ncclAllReduce", source, target, count, element, communicator, stream }
            .run(|element, _| Ok(Exchange::AllReduce(element, Reduction::of(reduction)?)))
    }

    fn ncclReduce(source: *const c_void, target: *mut c_void, count: usize, element: c_int,
        reduction: c_int, root: c_int, communicator: *mut c_void, stream: *mut c_void) -> i32 {
        Request { call: "ncclReduce", source, target, count, element, communicator, stream }.run(
            |element, it| Ok(Exchange::Reduce(element, Reduction::of(reduction)?, peer(it, root)?)),
        )
    }

    fn ncclBroadcast(source: *const c_void, target: *mut c_void, count: usize, element: c_int,
        root: c_int, communicator: *mut c_void, stream: *mut c_void) -> i32 {
        Request { call: "ncclBroadcast", source, target, count, element, communicator, stream }
            .run(|_, it| Ok(Exchange::Broadcast(peer(it, root)?)))
    }

    fn ncclBcast(buffer: *mut c_void, count: usize, element: c_int, root: c_int,
        communicator: *mut c_void, stream: *mut c_void) -> i32 {
        Request { call: "ncclBcast", source: buffer, target: buffer, count, element, communicator, stream }
            .run(|_, it| Ok(Exchange::Broadcast(peer(it, root)?)))
    }

    fn ncclAllGather(source: *const c_void, target: *mut c_void, count: usize, element: c_int,
        communicator: *mut c_void, stream: *mut c_void) -> i32 {
        Request { call: "ncclAllGather", source, target, count, element, communicator, stream }
            .run(|_, _| Ok(Exchange::AllGather))
    }

    fn ncclGather(source: *const c_void, target: *mut c_void, count: usize, element: c_int,
        root: c_int, communicator: *mut c_void, stream: *mut c_void) -> i32 {
        Request { call: "ncclGather", source, target, count, element, communicator, stream }
            .run(|_, it| Ok(Exchange::Gather(peer(it, root)?)))
    }

    fn ncclReduceScatter(source: *const c_void, target: *mut c_void, count: usize, element: c_int,
        reduction: c_int, communicator: *mut c_void, stream: *mut c_void) -> i32 {
        Request { call: "ncclReduceScatter", source, target, count, element, communicator, stream }
            .run(|element, _| Ok(Exchange::ReduceScatter(element, Reduction::of(reduction)?)))
    }

    fn ncclAlltoAll(source: *const c_void, target: *mut c_void, count: usize, element: c_int,
        communicator: *mut c_void, stream: *mut c_void) -> i32 {
        Request { call: "ncclAlltoAll", source, target, count, element, communicator, stream }
            .run(|_, _| Ok(Exchange::AllToAll))
    }

    fn ncclSend(source: *const c_void, count: usize, element: c_int, to: c_int,
        communicator: *mut c_void, stream: *mut c_void) -> i32 {
        let target = std::ptr::null_mut();
        Request { call: "ncclSend", source, target, count, element, communicator, stream }
            .run(|_, it| Ok(Exchange::Send(peer(it, to)?)))
    }

    fn ncclRecv(target: *mut c_void, count: usize, element: c_int, from: c_int,
        communicator: *mut c_void, stream: *mut c_void) -> i32 {
        let source = std::ptr::null();
        Request { call: "ncclRecv", source, target, count, element, communicator, stream }
            .run(|_, it| Ok(Exchange::Receive(peer(it, from)?)))
    }
}
