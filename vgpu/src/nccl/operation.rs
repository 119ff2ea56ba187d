//! One operation of one rank, and how it advances without ever blocking.

use std::ffi::c_void;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::communicator::Communicator;
use super::element::Element;
use super::reduction::Reduction;
use super::room::Message;
use super::{Failure, status};
use crate::{activity, copy};

/// What is exchanged. Counts are bytes of one rank's share.
#[derive(Clone, Debug)]
pub(super) enum Exchange {
    /// All ranks have joined.
    Join,
    AllReduce(Element, Reduction),
    Reduce(Element, Reduction, usize),
    Broadcast(usize),
    AllGather,
    ReduceScatter(Element, Reduction),
    AllToAll,
    Gather(usize),
    Send(usize),
    Receive(usize),
}

impl Exchange {
    fn code(&self) -> u32 {
        match self {
            Self::Join => 1,
            Self::AllReduce(..) => 2,
            Self::Reduce(..) => 3,
            Self::Broadcast(..) => 4,
            Self::AllGather => 5,
            Self::ReduceScatter(..) => 6,
            Self::AllToAll => 7,
            Self::Gather(..) => 8,
            Self::Send(..) => 9,
            Self::Receive(..) => 10,
        }
    }
}

impl Exchange {
    fn reduction(&self) -> Option<(Element, Reduction)> {
        match self {
            Self::AllReduce(element, reduction)
            | Self::Reduce(element, reduction, _)
            | Self::ReduceScatter(element, reduction) => Some((*element, *reduction)),
            _ => None,
        }
    }
}

/// An operation under way.
pub(super) struct Operation {
    pub(super) communicator: Arc<Communicator>,
    pub(super) exchange: Exchange,
    /// What this rank gives; device addresses, or null where it gives nothing.
    pub(super) source: *const c_void,
    /// Where this rank wants the result.
    pub(super) target: *mut c_void,
    /// One rank's share in bytes.
    pub(super) bytes: usize,
    /// Whether `source` holds what the program thinks it holds; see [`Operation::look_at_source`].
    pub(super) known: bool,
    /// Number of the collective, once this rank has posted its part.
    pub(super) number: Option<u64>,
}

/// Operations of one lane are done in their order, different lanes side by side.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Lane {
    Collectives(u64, usize),
    To(u64, usize, usize),
    From(u64, usize, usize),
}

impl Operation {
    /// An exchange of nothing yet.
    pub(super) fn new(communicator: &Arc<Communicator>, exchange: Exchange) -> Self {
        Self {
            communicator: Arc::clone(communicator),
            exchange,
            source: std::ptr::null(),
            target: std::ptr::null_mut(),
            bytes: 0,
            known: true,
            number: None,
        }
    }

    pub(super) fn lane(&self) -> Lane {
        let (name, rank) = (self.communicator.name, self.communicator.rank);
        match self.exchange {
            Exchange::Send(peer) => Lane::To(name, rank, peer),
            Exchange::Receive(peer) => Lane::From(name, rank, peer),
            _ => Lane::Collectives(name, rank),
        }
    }

    /// Bytes that this rank gives.
    fn given(&self) -> usize {
        let ranks = self.communicator.ranks();
        match self.exchange {
            Exchange::Join | Exchange::Receive(_) => 0,
            Exchange::ReduceScatter(..) | Exchange::AllToAll => self.bytes * ranks,
            Exchange::Broadcast(root) if root != self.communicator.rank => 0,
            _ => self.bytes,
        }
    }

    /// Finds out whether what this rank gives is known. Before the operation counts as launched.
    pub(super) fn look_at_source(&mut self) {
        let given = self.given();
        self.known = given == 0 || copy::is_known(self.source, given);
    }

    fn message(&self) -> Message {
        let given = self.given();
        let mut message = Message {
            call: self.exchange.code(),
            bytes: self.bytes as u64,
            known: self.known,
            payload: Vec::new(),
        };
        if given > 0 && given <= copy::LIMIT {
            message.payload.resize(given, 0);
            copy::read(self.source, &mut message.payload);
            if let Some((element, reduction)) = self.exchange.reduction() {
                message.payload = reduction.own_part(element, message.payload);
            }
        }
        message
    }

    /// Takes the next step if it can be taken now; whether the operation is done.
    pub(super) fn advance(&mut self) -> Result<bool, Failure> {
        let communicator = &self.communicator;
        let (room, rank) = (&communicator.room, communicator.rank);
        match self.exchange {
            Exchange::Join => {
                if !room.is_full() {
                    return Ok(false);
                }
                if let Some((first, second)) = room.duplicate() {
                    return Err(Failure::new(
                        status::INVALID_USAGE,
                        format!("Duplicate GPU detected: rank {first} and rank {second}"),
                    ));
                }
                Ok(true)
            }
            Exchange::Send(peer) => Ok(room.send(rank, peer, &self.message())),
            Exchange::Receive(peer) => {
                let Some(message) = room.receive(peer, rank) else { return Ok(false) };
                if message.bytes != self.bytes as u64 {
                    return Err(Failure::new(
                        status::INVALID_USAGE,
                        format!(
                            "rank {peer} sent {} bytes, rank {rank} expects {}",
                            message.bytes, self.bytes
                        ),
                    ));
                }
                write(self.target, &message.payload, message.known);
                Ok(true)
            }
            _ => {
                let number = match self.number {
                    Some(number) => number,
                    None => {
                        let number = communicator.next.fetch_add(1, Ordering::Relaxed);
                        room.post(rank, number, &self.message());
                        self.number = Some(number);
                        number
                    }
                };
                let Some(messages) = room.read(number) else { return Ok(false) };
                self.agree(&messages)?;
                self.deliver(&messages)?;
                Ok(true)
            }
        }
    }

    /// Why an operation that does not advance never will, if so. Slow.
    pub(super) fn lost(&self) -> Option<usize> {
        let room = &self.communicator.room;
        match self.exchange {
            Exchange::Join => (0..room.ranks()).find(|rank| room.is_gone(*rank)),
            Exchange::Send(peer) | Exchange::Receive(peer) => room.is_gone(peer).then_some(peer),
            _ => room.lost(self.number?),
        }
    }

    /// All ranks must have made the same call with the same size.
    fn agree(&self, messages: &[Message]) -> Result<(), Failure> {
        let own = (self.exchange.code(), self.bytes as u64);
        match messages.iter().position(|message| (message.call, message.bytes) != own) {
            None => Ok(()),
            Some(other) => Err(Failure::new(
                status::INVALID_USAGE,
                format!(
                    "ranks disagree: rank {} calls {:?} of {} bytes, rank {other} call {} of {}",
                    self.communicator.rank,
                    self.exchange,
                    self.bytes,
                    messages[other].call,
                    messages[other].bytes,
                ),
            )),
        }
    }

    /// Writes this rank's result, where payloads were exchanged.
    fn deliver(&self, messages: &[Message]) -> Result<(), Failure> {
        let rank = self.communicator.rank;
        let known = messages.iter().all(|message| message.known);
        let parts: Vec<&[u8]> = messages.iter().map(|it| it.payload.as_slice()).collect();
        // Of each rank's payload the share that is meant for this one.
        let shares = || -> Option<Vec<&[u8]>> {
            parts.iter().map(|part| part.get(rank * self.bytes..(rank + 1) * self.bytes)).collect()
        };
        match &self.exchange {
            Exchange::Join | Exchange::Send(_) | Exchange::Receive(_) => {}
            Exchange::AllReduce(element, reduction) => {
                self.reduced(*element, *reduction, &parts, known)?;
            }
            Exchange::Reduce(element, reduction, root) => {
                if *root == rank {
                    self.reduced(*element, *reduction, &parts, known)?;
                }
            }
            Exchange::Broadcast(root) => {
                write(self.target, parts[*root], messages[*root].known);
            }
            Exchange::AllGather => write(self.target, &parts.concat(), known),
            Exchange::Gather(root) => {
                if *root == rank {
                    write(self.target, &parts.concat(), known);
                }
            }
            Exchange::AllToAll => {
                if let Some(shares) = shares() {
                    write(self.target, &shares.concat(), known);
                }
            }
            Exchange::ReduceScatter(element, reduction) => {
                if let Some(shares) = shares() {
                    self.reduced(*element, *reduction, &shares, known)?;
                }
            }
        }
        Ok(())
    }

    fn reduced(
        &self,
        element: Element,
        reduction: Reduction,
        parts: &[&[u8]],
        known: bool,
    ) -> Result<(), Failure> {
        let Some(result) = reduction.apply(element, parts) else {
            activity::not_implemented("NCCL reductions of 8-bit floating-point numbers");
            return Err(Failure::argument(format!("{element:?} is not reduced here")));
        };
        write(self.target, &result, known);
        Ok(())
    }
}

/// Writes a result; an empty payload is one that was too large to be exchanged.
fn write(target: *mut c_void, payload: &[u8], known: bool) {
    if !payload.is_empty() {
        copy::write(target, payload, known);
    }
}
