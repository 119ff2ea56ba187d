//! How the blocks of a network are run: as a setting says, or each by itself to see what it costs.

use std::cell::RefCell;

use tch::{Device, TchError, Tensor};
use vramfit::survey::BlockCost;
use vramfit::units::Bytes;
use vramfit::workload::Checkpointing;

use crate::shim::{autocast, checkpoint, device};
use crate::step::now;

/// Who runs the blocks of a network, in the order of the forward pass.
pub(crate) enum Blocks {
    /// Trains them, checkpointed as is said.
    Trained(Checkpointing),
    /// Runs each once more by itself on a device, and keeps what that cost. Otherwise all are
    /// checkpointed, so that no more than one block at a time is whole in memory.
    Surveyed(Device, RefCell<Vec<BlockCost>>),
}

impl Blocks {
    /// Blocks that are about to be surveyed.
    pub(crate) fn to_survey(device: Device) -> Self {
        Self::Surveyed(device, RefCell::default())
    }

    /// What each cost that was surveyed.
    pub(crate) fn into_costs(self) -> Vec<BlockCost> {
        match self {
            Self::Trained(_) => Vec::new(),
            Self::Surveyed(_, costs) => costs.into_inner(),
        }
    }

    /// Runs `block`, which is number `index`, on `x`. Panics as tch's operators do.
    pub(crate) fn run(
        &self,
        index: usize,
        x: &Tensor,
        block: impl Fn(&Tensor) -> Tensor + Send + 'static,
    ) -> Tensor {
        let result = match self {
            Self::Trained(checkpointing) => {
                let index = u32::try_from(index).unwrap_or(u32::MAX);
                match checkpointing.covers(index) {
                    true => checkpoint::checkpointed(Box::new(block), x),
                    false => return block(x),
                }
            }
            Self::Surveyed(device, costs) => cost(&block, x, *device).and_then(|cost| {
                costs.borrow_mut().push(cost);
                checkpoint::checkpointed(Box::new(block), x)
            }),
        };
        match result {
            Ok(y) => y,
            // Where tch's operators panic, this does: one way for failures to travel.
            Err(error) => panic!("{error}"),
        }
    }
}

/// What `block` leaves behind after a forward pass, and how long that takes.
fn cost(
    block: impl Fn(&Tensor) -> Tensor,
    x: &Tensor,
    device: Device,
) -> Result<BlockCost, TchError> {
    // The first time, libraries choose and load kernels.
    drop(block(x));
    // Cast copies of weights are the block's own: it must make them, and they must go with it.
    autocast::forget_casts()?;
    let before = allocated(device)?;
    let start = now(device);
    let y = block(x);
    let end = now(device);
    let after = allocated(device)?;
    let output = y.detach();
    drop(y);
    autocast::forget_casts()?;
    let left = allocated(device)?;
    drop(output);
    let bytes = |from: i64, to: i64| Bytes(u64::try_from(to - from).unwrap_or(0));
    Ok(BlockCost {
        saved: bytes(left, after),
        output: bytes(before, left),
        seconds: start.until(&end).device_seconds(),
    })
}

/// Live bytes; none on the CPU, which keeps no account.
fn allocated(device: Device) -> Result<i64, TchError> {
    if device.is_cuda() { Ok(device::allocator()?.allocated) } else { Ok(0) }
}
