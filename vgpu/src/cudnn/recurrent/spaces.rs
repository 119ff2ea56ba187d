//! Workspace and reserve of a recurrent network.
//!
//! cuDNN works these out for a handle, which takes a device. Asked without one, cuDNN 9.19 fails, but
//! only after it has written both sizes: those of its standard algorithm for a device of which nothing
//! is known. The formulas here were fitted to these answers, and checked on 2500 others drawn at
//! random (cells, layers, directions, projections, dropout, element sizes, lengths up to 1000, batches
//! up to 256, widths up to 2048): none was off by more than a kilobyte. What they cannot know is
//! whether a real device makes cuDNN choose another algorithm.

use super::network::{Cell, Network};

/// What the report says of the sizes.
pub(super) const BASIS: &str = "cuDNN RNN workspace and reserve: by formula for cuDNN's standard \
    algorithm, equal to what cuDNN 9.19 computes without a device; on a card it may choose a \
    persistent algorithm (fp16) or larger workspaces of cuBLAS (8 MiB a layer and direction assumed)";

/// Bytes that cuBLAS gets for each pseudo-layer, which runs on a stream of its own.
const PRODUCT_WORKSPACE: u64 = 8 << 20;
/// Both spaces begin with a header of so many bytes.
const HEADER: u64 = 256;
/// Time steps of which the gates' share of the input is computed ahead, in one direction.
const STEPS_AHEAD: u64 = 256;

/// What goes through the network.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sequences {
    pub(super) batch: u64,
    /// Sum of all lengths.
    pub(super) tokens: u64,
    /// Whether a backward pass follows (`CUDNN_FWD_MODE_TRAINING`).
    pub(super) training: bool,
}

/// Bytes kept from the forward pass for the backward pass.
pub(super) fn reserve_bytes(network: &Network, sequences: &Sequences) -> u64 {
    if !sequences.training {
        return 0;
    }
    let Network { hidden, layers, directions, .. } = *network;
    let kept = hidden
        * match network.cell {
            Cell::Plain => 1,
            Cell::Lstm => 5,
            Cell::Gru => 6,
        };
    let projected = network.projection.map_or(0, |width| hidden + width);
    let token = directions * (layers * (kept + projected) + (layers - 1) * hidden);
    // One bit for each value that may be dropped between layers.
    let mask = sequences.tokens * network.output() * directions * directions * (layers - 1) / 8;
    let mask = if network.drops { mask } else { 0 };
    HEADER + sequences.tokens * token * network.element_bytes + mask
}

/// Bytes used during a call, forward or backward.
pub(super) fn workspace_bytes(network: &Network, sequences: &Sequences) -> u64 {
    let layers = network.pseudo_layers();
    // Sequences in a layout of the caller's are copied into cuDNN's own, and so are the states.
    let states = network.output() + if network.cell == Cell::Lstm { network.hidden } else { 0 };
    let copies = sequences.tokens * (network.input + network.output() * network.directions)
        + sequences.batch * layers * 2 * states;
    let copies = if network.padded { copies } else { 0 };
    let forward = forward_elements(network, sequences) + copies;
    let backward = backward_elements(network, sequences) + 2 * copies;
    let elements = if sequences.training { forward.max(backward) } else { forward };
    let order = if network.padded { 8 * sequences.batch } else { 0 };
    HEADER
        + layers * PRODUCT_WORKSPACE
        + order
        + (network.matrix_elements() + elements) * network.element_bytes
}

/// Elements beside the transformed weights in the forward pass.
fn forward_elements(network: &Network, sequences: &Sequences) -> u64 {
    let Network { cell, hidden, .. } = *network;
    let Sequences { batch, tokens, .. } = *sequences;
    let state = match cell {
        Cell::Plain => 1,
        Cell::Gru => 3,
        Cell::Lstm => 6,
    };
    let gates = cell.gates();
    let projected = u64::from(network.projection.is_some());
    if network.directions == 1 {
        let ahead = tokens.min(STEPS_AHEAD * batch);
        let layer = network.layers * state * batch;
        (gates * ahead + (projected + u64::from(network.drops)) * tokens + layer) * hidden
    } else {
        let layer = network.pseudo_layers() * (state + 2) * batch;
        ((2 * (gates + projected) + 4) * tokens + layer) * hidden
    }
}

/// The same in the backward pass.
fn backward_elements(network: &Network, sequences: &Sequences) -> u64 {
    let Network { hidden, layers, directions, .. } = *network;
    let Sequences { batch, tokens, .. } = *sequences;
    let state = if network.cell == Cell::Lstm { 3 } else { 1 };
    let widest = network.input.max(hidden);
    let projected = if network.projection.is_some() { directions * tokens } else { 0 };
    if directions == 1 {
        let between =
            if layers == 1 { tokens } else { tokens.min(in_flight(network, batch) * batch) };
        tokens * widest + (between + projected + layers * state * batch) * hidden
    } else {
        let between = if layers == 1 { 2 * tokens } else { 4 * tokens };
        let layer = network.pseudo_layers() * (state + 2) * batch;
        4 * tokens * widest + (between + projected + layer) * hidden
    }
}

/// Time steps that lie between layers which run at the same time, in blocks the longer the smaller the
/// batch.
fn in_flight(network: &Network, batch: u64) -> u64 {
    let block = match batch {
        ..=1 => 32,
        2..=8 => 16,
        9..=16 => 8,
        17..128 => 4,
        128.. => 2,
    };
    block * network.layers + block.max(8)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cudnn::recurrent::network::tests::network;

    fn sequences(steps: u64, batch: u64) -> Sequences {
        Sequences { batch, tokens: steps * batch, training: true }
    }

    /// cuDNN's sizes are multiples of 16 bytes for each of their parts.
    fn is_nearly(ours: u64, cudnns: u64) {
        assert!(ours <= cudnns && cudnns - ours < 1024, "{ours}, cuDNN says {cudnns}");
    }

    /// All figures are what cuDNN 9.19 says for a device that it does not know.
    #[test]
    fn the_reserve_is_as_large_as_cudnn_says() {
        let some = sequences(20, 8);
        let lstm = network(Cell::Lstm);
        assert_eq!(reserve_bytes(&lstm, &some), 901_376);
        assert_eq!(reserve_bytes(&Network { directions: 2, ..lstm }, &some), 1_802_496);
        assert_eq!(reserve_bytes(&Network { projection: Some(64), ..lstm }, &some), 1_147_136);
        assert_eq!(reserve_bytes(&network(Cell::Gru), &some), 1_065_216);
        assert_eq!(reserve_bytes(&network(Cell::Plain), &some), 246_016);
        assert_eq!(reserve_bytes(&lstm, &Sequences { training: false, ..some }), 0);
        let dropping = Network { drops: true, ..lstm };
        assert_eq!(reserve_bytes(&dropping, &sequences(16, 16)), 1_446_144);
    }

    #[test]
    fn the_workspace_is_as_large_as_cudnn_says() {
        let lstm = network(Cell::Lstm);
        let some = sequences(20, 8);
        is_nearly(workspace_bytes(&lstm, &some), 18_071_808);
        is_nearly(workspace_bytes(&Network { directions: 2, ..lstm }, &some), 37_028_096);
        is_nearly(workspace_bytes(&Network { padded: true, ..lstm }, &some), 18_227_520);
        is_nearly(workspace_bytes(&network(Cell::Gru), &some), 17_735_936);
        is_nearly(workspace_bytes(&network(Cell::Plain), &some), 17_178_880);
        // The backward pass needs more than the forward pass.
        let wide = Network { layers: 1, input: 2048, ..lstm };
        let long = sequences(1000, 8);
        is_nearly(workspace_bytes(&wide, &long), 82_489_600);
        is_nearly(workspace_bytes(&wide, &Sequences { training: false, ..long }), 17_064_192);
        let packed = Sequences { tokens: 80, ..some };
        is_nearly(workspace_bytes(&lstm, &packed), 17_907_968);
    }
}
