//! What NCCL itself holds on a device. An estimate: its buffers depend on the links between the cards,
//! which a device description does not tell.
//!
//! - One connection takes 4 MiB (simple protocol) + 4,915,200 bytes (LL128) + 512 KiB (LL) for what it
//!   receives, which the driver rounds to 10 MiB, and 2 MiB for what it sends: allocations of 10,485,760
//!   and 2,097,152 bytes in the log of NVIDIA/nccl issue 1685.
//! - Cards that meet over PCIe use two channels, each with a ring and a tree connection: the logs of
//!   machines with consumer cards, e.g. four RTX 4090. That makes 48 MiB a communicator.
//! - Cards with NVLink use many more channels: 544 MB a communicator of two, 688 MB of more, on an
//!   A100 board (NVIDIA/nccl issue 964). Here they are taken to have PCIe, so this is a lower bound.
//! - Connections are made at first use, since NCCL 2.22; those for messages between two ranks one by one.

use crate::address_space::GRANULE;

/// Receive and send buffer of one connection.
const CONNECTION: u64 = 5 * GRANULE + GRANULE;
const CHANNELS: u64 = 2;

/// Buffers for collectives of a communicator with `ranks` ranks, in bytes.
pub(super) fn collective_bytes(ranks: usize) -> u64 {
    if ranks > 1 { CHANNELS * 2 * CONNECTION } else { 0 }
}

/// Buffers for messages with one more peer, in bytes.
pub(super) fn peer_bytes() -> u64 {
    CHANNELS * CONNECTION
}

/// What the report says of these figures.
pub(super) const BASIS: &str = "NCCL buffers: estimated as 48 MiB a communicator and 24 MiB for each \
                                peer of send and receive, as on cards without NVLink; with NVLink \
                                several hundred MiB";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_basis_states_the_figures_in_use() {
        let mib = |bytes: u64| format!("{} MiB", bytes >> 20);
        assert!(BASIS.contains(&mib(collective_bytes(2))) && BASIS.contains(&mib(peer_bytes())));
        assert_eq!(collective_bytes(1), 0, "a rank alone has nobody to connect to");
    }
}
