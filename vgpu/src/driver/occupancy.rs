//! How many blocks and clusters of a kernel a device holds at once.

use std::ffi::{c_int, c_uint, c_void};

use super::device::code;
use super::function::{Function, function};
use super::launch::Configuration;
use crate::entry::{In, Out, entry_points};
use crate::occupancy::{Block, resident_blocks};
use crate::runtime::checked;
use crate::runtime::status::{INVALID_VALUE, NOT_SUPPORTED, Status, UNKNOWN};
use crate::{activity, device};

fn occupancy(blocks: Out<c_int>, handle: *mut c_void, threads: c_int, shared: usize) -> Status {
    code(function(handle).and_then(|function| {
        let (_, device) = checked(device::current() as c_int)?;
        blocks.set(resident_blocks(device, block(&function, threads, shared)));
        Ok(())
    }))
}

fn block(function: &Function, threads: c_int, dynamic_shared: usize) -> Block {
    let shared_bytes = dynamic_shared.saturating_add(function.needs.shared_bytes as usize);
    Block { threads, shared_bytes, registers: Some(function.needs.registers) }
}

/// What the report says of a number of clusters.
const CLUSTERS: &str = "clusters on the device at once: taken to fill all multiprocessors; the real \
                        number depends on how these are grouped";

entry_points! {
    on_panic = UNKNOWN;

    /// Resident blocks of a kernel.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessor(
        blocks: Out<c_int>,
        handle: *mut c_void,
        threads: c_int,
        shared_bytes: usize,
    ) -> Status {
        occupancy(blocks, handle, threads, shared_bytes)
    }

    /// Resident blocks of a kernel.
    fn cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
        blocks: Out<c_int>,
        handle: *mut c_void,
        threads: c_int,
        shared_bytes: usize,
        _flags: c_uint,
    ) -> Status {
        occupancy(blocks, handle, threads, shared_bytes)
    }

    /// Clusters that are on the device at once. An estimate.
    fn cuOccupancyMaxActiveClusters(
        clusters: Out<c_int>,
        handle: *mut c_void,
        configuration: In<Configuration>,
    ) -> Status {
        code(function(handle).and_then(|function| {
            let (_, device) = checked(device::current() as c_int)?;
            if device.compute_capability.0 < 9 {
                return Err(NOT_SUPPORTED);
            }
            let configuration = configuration.get().ok_or(INVALID_VALUE)?;
            let threads: c_uint = configuration.block.iter().product();
            let block = block(&function, threads as c_int, configuration.shared_bytes as usize);
            let blocks = resident_blocks(device, block) * device.multiprocessors;
            activity::estimate(CLUSTERS);
            clusters.set(blocks.checked_div(configuration.cluster() as c_int).unwrap_or(0));
            Ok(())
        }))
    }
}
