//! What an operation graph of cuDNN's asks of the device.

use vramfit_vgpu_cost::{
    Arithmetic, Attention, Convolution, Direction, Product, Streaming, StreamingClass, Work,
};

use super::element_bytes;
use super::graph::{self, BACKWARD_DATA, BACKWARD_FILTER, FORWARD};
use super::rule::{BFLOAT16, DOUBLE, FLOAT, HALF};

/// Values of `cudnnDataType_t` of 8 bits.
const INT8: i32 = 3;
const FP8: [i32; 2] = [12, 13];

/// Elements that one thread takes of a kernel bound by memory, if its grid is not known.
const ELEMENTS_OF_THREAD: u64 = 4;

/// What `work` asks for; `tensor_cores`: whether its engine multiplies on tensor cores.
pub(super) fn of(work: &graph::Work, tensor_cores: bool) -> Work {
    let known = match work.kind {
        FORWARD => convolution(work, Direction::Forward, tensor_cores),
        BACKWARD_DATA => convolution(work, Direction::Backward, tensor_cores),
        BACKWARD_FILTER => convolution(work, Direction::Weight, tensor_cores),
        graph::MATRIX_PRODUCT => product(work, tensor_cores),
        graph::ATTENTION_FORWARD => attention(work, Direction::Forward),
        graph::ATTENTION_BACKWARD => attention(work, Direction::Backward),
        graph::NORM_FORWARD => Some(norm(2, volume(&work.x), work.data_type)),
        graph::NORM_BACKWARD => Some(norm(3, volume(&work.x), work.data_type)),
        _ => None,
    };
    known.unwrap_or(Work::Unknown)
}

/// A norm that touches `passes` tensors of `elements` elements.
pub(super) fn norm(passes: u64, elements: u64, data_type: i32) -> Work {
    let bytes = passes * elements * element_bytes(data_type);
    let threads = elements.div_ceil(ELEMENTS_OF_THREAD);
    Work::Streaming(Streaming { class: StreamingClass::Normalization, bytes, threads })
}

/// Single precision takes TF32 where the engine is one of tensor cores; what is narrower has no other
/// kernels worth a choice.
pub(super) fn arithmetic(data_type: i32, tensor_cores: bool) -> Option<Arithmetic> {
    Some(match data_type {
        FLOAT if tensor_cores => Arithmetic::Tf32,
        FLOAT => Arithmetic::Fp32,
        DOUBLE => Arithmetic::Fp64,
        HALF => Arithmetic::Fp16,
        BFLOAT16 => Arithmetic::Bf16,
        INT8 => Arithmetic::Int8,
        other if FP8.contains(&other) => Arithmetic::Fp8,
        _ => return None,
    })
}

fn volume(dimensions: &[i64]) -> u64 {
    dimensions.iter().map(|size| size.unsigned_abs()).product()
}

/// `x` is samples × channels × positions, `w` outputs × channels of one group × positions.
fn convolution(work: &graph::Work, direction: Direction, tensor_cores: bool) -> Option<Work> {
    let ([batch, inputs, input @ ..], [outputs, of_group, filter @ ..], [_, _, output @ ..]) =
        (&work.x[..], &work.w[..], &work.y[..])
    else {
        return None;
    };
    let [batch, inputs, outputs, of_group] =
        [batch, inputs, outputs, of_group].map(|size| size.unsigned_abs());
    Some(Work::Convolution(Convolution {
        direction,
        batch,
        inputs,
        outputs,
        groups: inputs / of_group.max(1),
        input_positions: volume(input),
        output_positions: volume(output),
        filter_positions: volume(filter),
        arithmetic: arithmetic(work.data_type, tensor_cores)?,
        element_bytes: element_bytes(work.data_type),
        channels_last: work.channels_last,
    }))
}

/// `x` is … × m × k, `w` … × k × n.
fn product(work: &graph::Work, tensor_cores: bool) -> Option<Work> {
    let ([batch @ .., m, k], [.., n]) = (&work.x[..], &work.w[..]) else { return None };
    let bytes = element_bytes(work.data_type);
    Some(Work::Product(Product {
        m: m.unsigned_abs(),
        n: n.unsigned_abs(),
        k: k.unsigned_abs(),
        batch: volume(batch),
        arithmetic: arithmetic(work.data_type, tensor_cores)?,
        input_bytes: bytes,
        output_bytes: bytes,
    }))
}

/// `x` is the queries, `w` the keys, both samples × heads × positions × head size. Whether it is causal,
/// the operation's tensors do not tell.
fn attention(work: &graph::Work, direction: Direction) -> Option<Work> {
    let ([batch, heads, queries, head_size], [_, _, keys, ..]) = (&work.x[..], &work.w[..]) else {
        return None;
    };
    Some(Work::Attention(Attention {
        direction,
        heads: (batch * heads).unsigned_abs(),
        queries: queries.unsigned_abs(),
        keys: keys.unsigned_abs(),
        head_size: head_size.unsigned_abs(),
        causal: false,
        arithmetic: arithmetic(work.data_type, true)?,
        element_bytes: element_bytes(work.data_type),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn work(kind: i32, x: &[i64], w: &[i64], y: &[i64]) -> graph::Work {
        let (x, w, y) = (x.to_vec(), w.to_vec(), y.to_vec());
        graph::Work { kind, x, w, y, data_type: FLOAT, channels_last: true }
    }

    #[test]
    fn a_convolution_has_the_groups_and_positions_of_its_tensors() {
        let of = of(&work(BACKWARD_DATA, &[8, 6, 10, 12], &[9, 2, 3, 5], &[8, 9, 8, 8]), true);
        let Work::Convolution(found) = of else { panic!("{of:?}") };
        assert_eq!((found.direction, found.arithmetic), (Direction::Backward, Arithmetic::Tf32));
        assert_eq!((found.batch, found.inputs, found.outputs, found.groups), (8, 6, 9, 3));
        let positions = (found.input_positions, found.filter_positions, found.output_positions);
        assert_eq!(positions, (120, 15, 64));
        assert!(found.channels_last);
    }

    #[test]
    fn single_precision_is_rounded_on_tensor_cores_alone() {
        assert_eq!(arithmetic(FLOAT, false), Some(Arithmetic::Fp32));
        assert_eq!(arithmetic(FLOAT, true), Some(Arithmetic::Tf32));
        assert_eq!(arithmetic(HALF, false), Some(Arithmetic::Fp16));
        assert_eq!(arithmetic(99, true), None);
    }

    #[test]
    fn what_has_no_tensors_is_not_known() {
        assert_eq!(of(&work(FORWARD, &[], &[], &[]), true), Work::Unknown);
        assert_eq!(of(&work(99, &[1], &[1], &[1]), true), Work::Unknown);
    }
}
