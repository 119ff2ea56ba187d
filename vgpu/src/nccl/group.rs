//! Groups: operations between `ncclGroupStart` and `ncclGroupEnd` begin together and end together. A
//! call outside a group is a group of one.

use std::cell::RefCell;
use std::collections::HashSet;
use std::ffi::c_void;
use std::time::{Duration, Instant};

use super::operation::Operation;
use super::{Failure, finish, status};
use crate::clock::host;
use crate::entry::entry_points;

/// PyTorch's own limit for one collective (`kProcessGroupNCCLDefaultTimeout`): a rank that is busy
/// with something else for longer is taken to be lost.
pub(super) const PATIENCE: Duration = Duration::from_secs(600);
/// How often a waiting rank looks whether the others are alive.
const LOOK_AFTER: Duration = Duration::from_millis(50);
/// Ranks wait for each other only as long as one of them runs ahead; after some polls without a pause
/// they leave the processor to the others.
const POLLS_WITHOUT_SLEEP: u32 = 64;
const SLEEP: Duration = Duration::from_micros(100);

#[derive(Default)]
struct Group {
    depth: u32,
    pending: Vec<Operation>,
}

thread_local! {
    static GROUP: RefCell<Group> = RefCell::default();
}

/// Runs `operation` now, or at the end of the group that is open.
pub(super) fn submit(operation: Operation) -> Result<(), Failure> {
    let ready = GROUP.with_borrow_mut(|group| {
        group.pending.push(operation);
        if group.depth == 0 { std::mem::take(&mut group.pending) } else { Vec::new() }
    });
    run(ready, PATIENCE)
}

/// Advances all operations until they are done, or one of them cannot be.
pub(super) fn run(mut operations: Vec<Operation>, patience: Duration) -> Result<(), Failure> {
    // The others are late by real time, which is not theirs on a GPU.
    let _pause = host::pause();
    let (mut last_progress, mut last_look) = (Instant::now(), Instant::now());
    let mut polls = 0;
    loop {
        let before = operations.len();
        if let Err((failure, operation)) = advance_all(&mut operations) {
            operation.communicator.fail(&failure);
            return Err(failure);
        }
        if operations.is_empty() {
            return Ok(());
        }
        if operations.len() < before {
            (last_progress, polls) = (Instant::now(), 0);
            continue;
        }
        if last_look.elapsed() > LOOK_AFTER {
            last_look = Instant::now();
            if let Some((operation, failure)) = stuck(&operations, last_progress, patience) {
                operation.communicator.fail(&failure);
                return Err(failure);
            }
        }
        polls += 1;
        if polls > POLLS_WITHOUT_SLEEP {
            std::thread::sleep(SLEEP);
        } else {
            std::thread::yield_now();
        }
    }
}

/// The operation that will not be done any more, and why.
fn stuck(
    operations: &[Operation],
    last_progress: Instant,
    patience: Duration,
) -> Option<(&Operation, Failure)> {
    let lost = operations.iter().find_map(|operation| Some((operation, operation.lost()?)));
    let (operation, text) = match lost {
        Some((operation, rank)) => (operation, format!("rank {rank} left or died")),
        None if last_progress.elapsed() > patience => {
            let first = operations.first()?;
            let seconds = patience.as_secs_f32();
            (first, format!("{:?} waited {seconds} s for the other ranks", first.exchange))
        }
        None => return None,
    };
    Some((operation, Failure::new(status::REMOTE_ERROR, text)))
}

/// Takes one step of each lane that can take one; finished operations are removed.
fn advance_all(operations: &mut Vec<Operation>) -> Result<(), (Failure, Operation)> {
    let mut waiting = HashSet::new();
    let mut index = 0;
    while let Some(operation) = operations.get_mut(index) {
        let lane = operation.lane();
        if waiting.contains(&lane) {
            index += 1;
            continue;
        }
        match operation.communicator.check().and_then(|()| operation.advance()) {
            Ok(true) => {
                operations.remove(index);
            }
            Ok(false) => {
                waiting.insert(lane);
                index += 1;
            }
            Err(failure) => return Err((failure, operations.remove(index))),
        }
    }
    Ok(())
}

entry_points! {
    on_panic = status::INTERNAL_ERROR;

    /// Opens a group.
    fn ncclGroupStart() -> i32 {
        GROUP.with_borrow_mut(|group| group.depth += 1);
        status::SUCCESS
    }

    /// Closes a group and carries it out.
    fn ncclGroupEnd() -> i32 {
        let ready = GROUP.with_borrow_mut(|group| {
            group.depth = group.depth.checked_sub(1)?;
            Some(if group.depth == 0 { std::mem::take(&mut group.pending) } else { Vec::new() })
        });
        finish(match ready {
            Some(ready) => run(ready, PATIENCE),
            None => Err(Failure::new(status::INVALID_USAGE, "no group is open")),
        })
    }

    /// Closes a group without carrying it out; there is no estimate of its time.
    fn ncclGroupSimulateEnd(_information: *mut c_void) -> i32 {
        GROUP.with_borrow_mut(|group| {
            group.depth = group.depth.saturating_sub(1);
            group.pending.clear();
        });
        crate::activity::not_implemented("ncclGroupSimulateEnd");
        status::INVALID_USAGE
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::nccl::communicator::Communicator;
    use crate::nccl::element::Element;
    use crate::nccl::operation::Exchange;
    use crate::nccl::reduction::Reduction;
    use crate::nccl::room::Room;

    /// Rank `rank` of two in the room `name`.
    fn rank(name: &str, rank: usize) -> Arc<Communicator> {
        let file = format!("vramfit-vgpu-group-{name}-{}", std::process::id());
        let room = Room::open(std::env::temp_dir().join(file), 2).unwrap();
        assert!(room.join(rank, rank));
        Arc::new(Communicator::new(7, room, rank, rank))
    }

    fn sum(communicator: &Arc<Communicator>, value: &mut f32) -> Operation {
        let exchange = Exchange::AllReduce(Element::F32, Reduction::Sum);
        let mut operation = Operation::new(communicator, exchange);
        operation.source = std::ptr::from_ref(value).cast();
        operation.target = std::ptr::from_mut(value).cast();
        operation.bytes = size_of::<f32>();
        operation
    }

    #[test]
    fn one_thread_can_be_all_ranks_of_a_group() {
        let ranks = [rank("thread", 0), rank("thread", 1)];
        let mut values = [1.0, 2.0];
        let [first, second] = &mut values;
        // Two rounds in one group: the second adds up what the first left.
        let operations = vec![
            sum(&ranks[0], first),
            sum(&ranks[0], first),
            sum(&ranks[1], second),
            sum(&ranks[1], second),
        ];
        run(operations, PATIENCE).unwrap();
        assert_eq!(values, [6.0, 6.0]);
        ranks.iter().for_each(|rank| rank.room.leave(rank.rank));
    }

    #[test]
    fn patience_ends_and_the_communicator_is_broken_from_then_on() {
        let ranks = [rank("late", 0), rank("late", 1)];
        let mut value = 1.0;
        let late = run(vec![sum(&ranks[0], &mut value)], Duration::from_millis(10)).unwrap_err();
        assert_eq!(late.status, status::REMOTE_ERROR);
        assert!(late.text.contains("waited 0.01 s"), "{}", late.text);
        assert_eq!(ranks[0].failure(), status::REMOTE_ERROR);
        let again = run(vec![sum(&ranks[0], &mut value)], PATIENCE).unwrap_err();
        assert!(again.text.contains("an earlier call"), "{}", again.text);
        ranks.iter().for_each(|rank| rank.room.leave(rank.rank));
    }
}
