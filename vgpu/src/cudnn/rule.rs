//! Workspaces of convolutions by rule, for a cuDNN that cannot be asked without a device.
//!
//! The rule is read off what cuDNN 9.10 answers for the convolutions of ResNet-50 and MobileNetV2 (8 ×
//! 3 × 224 × 224, compute capability 8.6): on tensor cores it works in NHWC, so operands in another
//! layout are copied into the workspace, the filter too unless it is 1 × 1. Without tensor cores it
//! takes tensors as they are; for a 3 × 3 filter at stride 1 it may choose a Winograd transform of the
//! filter (tiles of 5 × 5, so 25/9 of its size). A depthwise convolution takes nothing.
//!
//! Single convolutions differ by all of their workspace, since the choice of the engine is not modelled.

use super::graph::{BACKWARD_FILTER, Work};
use crate::device;

/// One way to compute a graph.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Engine {
    /// Its number, as programs print it.
    pub(super) index: i64,
    /// `cudnnBackendNumericalNote_t`: what programs filter by.
    pub(super) notes: &'static [i32],
    /// Workspace in bytes.
    pub(super) workspace: u64,
}

const DIRECT: i64 = 0;
const TENSOR_CORE: i64 = 1;

/// In single precision it means TF32, which programs can refuse.
pub(super) const NOTE_TENSOR_CORE: i32 = 0;
const NOTE_WINOGRAD: i32 = 5;

/// Values of `cudnnDataType_t`.
pub(super) const FLOAT: i32 = 0;
pub(super) const DOUBLE: i32 = 1;
pub(super) const HALF: i32 = 2;
pub(super) const BFLOAT16: i32 = 9;

/// The engines for `work` on the calling thread's device, best first. None for other work than
/// convolutions.
pub(super) fn engines(work: &Work) -> Vec<Engine> {
    let machine = device::machine();
    let device = machine.and_then(|machine| machine.device(device::current()));
    device.map_or(Vec::new(), |device| engines_on(device.compute_capability, work))
}

fn engines_on(capability: (i32, i32), work: &Work) -> Vec<Engine> {
    if !work.is_convolution() {
        return Vec::new();
    }
    let element = match work.data_type {
        HALF | BFLOAT16 => 2,
        DOUBLE => 8,
        _ => 4,
    };
    let bytes = |shape: &[i64]| element * shape.iter().map(|n| n.unsigned_abs()).product::<u64>();
    let filter = work.w.get(2..).unwrap_or_default();
    let is_point = filter.iter().all(|side| *side == 1);
    let (x, w, y) = (bytes(&work.x), bytes(&work.w), bytes(&work.y));

    let has_tensor_cores = match work.data_type {
        HALF => capability >= (7, 0),
        FLOAT | BFLOAT16 => capability >= (8, 0),
        _ => false,
    };
    let mut engines = Vec::new();
    // Channels of the input over those a filter sees.
    let is_grouped = work.x.get(1) != work.w.get(1);
    if has_tensor_cores && !is_grouped {
        let copies = if work.channels_last { 0 } else { x + y + if is_point { 0 } else { w } };
        engines.push(Engine { index: TENSOR_CORE, notes: &[NOTE_TENSOR_CORE], workspace: copies });
    }
    let keeps_size = work.x.get(2..) == work.y.get(2..);
    let winograd = filter == [3, 3] && keeps_size && !is_grouped && work.kind != BACKWARD_FILTER;
    engines.push(if winograd {
        Engine { index: DIRECT, notes: &[NOTE_WINOGRAD], workspace: w * 25 / 9 }
    } else {
        Engine { index: DIRECT, notes: &[], workspace: 0 }
    });
    engines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cudnn::graph::FORWARD;

    fn work(kind: i32, data_type: i32, x: [i64; 4], w: [i64; 4], y: [i64; 4]) -> Work {
        let (x, w, y) = (x.to_vec(), w.to_vec(), y.to_vec());
        Work { kind, x, w, y, data_type, channels_last: false }
    }

    fn workspaces(capability: (i32, i32), work: &Work) -> Vec<u64> {
        engines_on(capability, work).iter().map(|engine| engine.workspace).collect()
    }

    #[test]
    fn tensor_cores_work_on_copies_in_nhwc() {
        let square = [8, 64, 56, 56];
        let image = 8 * 64 * 56 * 56;
        let mut point = work(FORWARD, BFLOAT16, square, [64, 64, 1, 1], square);
        assert_eq!(workspaces((8, 6), &point), [2 * 2 * image, 0]);
        assert_eq!(workspaces((7, 5), &point), [0], "no tensor cores for this type");
        point.channels_last = true;
        assert_eq!(workspaces((8, 6), &point), [0, 0]);
        let filter = 64 * 64 * 9;
        let three = work(FORWARD, FLOAT, square, [64, 64, 3, 3], square);
        assert_eq!(workspaces((8, 6), &three), [4 * (2 * image + filter), 4 * filter * 25 / 9]);
        let back = work(BACKWARD_FILTER, FLOAT, square, [64, 64, 3, 3], square);
        assert_eq!(workspaces((7, 5), &back), [0]);
    }

    #[test]
    fn a_depthwise_convolution_takes_nothing() {
        let square = [8, 64, 56, 56];
        let depthwise = work(FORWARD, HALF, square, [64, 1, 3, 3], square);
        assert_eq!(workspaces((8, 6), &depthwise), [0]);
    }
}
