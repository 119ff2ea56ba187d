//! Kernels whose arguments are pointers and sizes: which operand has how many elements.

use vramfit_vgpu_cost::StreamingClass::{
    self, Elementwise, Gather, Normalization, Optimizer, Reduction, Window,
};

use super::call::Call;
use super::element;
use super::signature::Signature;
use super::tensors::Described;
use super::{Rule, streaming};

/// A factor of a number of elements.
#[derive(Clone, Copy)]
enum Of {
    /// Argument of that index; below 0, counted from the last.
    A(i8),
    /// Its inverse.
    Per(i8),
    /// Elements of the tensor that the argument of that index describes.
    T(i8),
    /// Blocks in the first direction.
    X,
    /// Blocks in the second.
    Y,
}
use Of::{A, Per, T, X, Y};

/// Operands, by the indices of their arguments (twice where they are read and written), and the factors of
/// their number of elements.
type Term = (&'static [i8], &'static [Of]);

/// A kernel by its name, its class, and what it touches.
type Row = (&'static str, StreamingClass, &'static [Term]);

/// By the sources of PyTorch 2.6 to 2.11 (ATen, native/cuda) and CUB.
const ROWS: &[Row] = &[
    // PersistentSoftmax.cuh, SoftMax.cu.
    ("softmax_warp_forward", Reduction, &[(&[0, 1], &[A(2), A(4)])]),
    ("softmax_warp_backward", Reduction, &[(&[0, 1, 2], &[A(3), A(5)])]),
    ("cunn_SoftMaxForward", Reduction, &[(&[0, 1], &[X, A(2)])]),
    ("cunn_SoftMaxForwardGmem", Reduction, &[(&[0, 1], &[X, A(2)])]),
    ("cunn_SoftMaxForwardReg", Reduction, &[(&[0, 1], &[X, A(2)])]),
    ("cunn_SoftMaxForwardSmem", Reduction, &[(&[0, 1], &[X, A(2)])]),
    ("cunn_SoftMaxBackward", Reduction, &[(&[0, 1, 2], &[X, A(3)])]),
    ("cunn_SoftMaxBackwardSmem", Reduction, &[(&[0, 1, 2], &[X, A(3)])]),
    ("cunn_SpatialSoftMaxForward", Reduction, &[(&[0, 1], &[A(2), A(3), A(4)])]),
    ("cunn_SpatialSoftMaxBackward", Reduction, &[(&[0, 1, 2], &[A(3), A(4), A(5)])]),
    // NLLLoss.cu, NLLLoss2d.cu: of the inputs, those that the targets name.
    ("nll_loss_forward_reduce_cuda_kernel_1d", Reduction, &[(&[0, 1, 2, 3], &[])]),
    ("nll_loss_forward_reduce_cuda_kernel_2d", Reduction, &[(&[2, 3], &[A(6)])]),
    ("nll_loss_backward_reduce_cuda_kernel_1d", Reduction, &[(&[0, 1, 3], &[])]),
    ("nll_loss_backward_reduce_cuda_kernel_2d", Reduction, &[(&[0, 2], &[A(6)])]),
    ("nll_loss2d_forward_kernel", Reduction, &[(&[2, 3], &[X, A(6), Per(7)])]),
    ("nll_loss2d_backward_kernel", Reduction, &[(&[0, 2], &[X, A(7), Per(8)])]),
    // layer_norm_kernel.cu.
    (
        "vectorized_layer_norm_kernel",
        Normalization,
        &[(&[2, 7], &[X, A(0)]), (&[3, 4], &[A(0)]), (&[5, 6], &[X])],
    ),
    ("RowwiseMomentsCUDAKernel", Normalization, &[(&[2], &[X, A(0)]), (&[3, 4], &[X])]),
    (
        "LayerNormForwardCUDAKernel",
        Normalization,
        &[(&[1, 6], &[X, A(0)]), (&[2, 3], &[X]), (&[4, 5], &[A(0)])],
    ),
    (
        "layer_norm_grad_input_kernel",
        Normalization,
        &[(&[0, 1, 5], &[X, A(6)]), (&[2, 3], &[X]), (&[4], &[A(6)])],
    ),
    (
        "layer_norm_grad_input_kernel_vectorized",
        Normalization,
        &[(&[0, 1, 5], &[X, A(6)]), (&[2, 3], &[X]), (&[4], &[A(6)])],
    ),
    (
        "GammaBetaBackwardCUDAKernelTemplate",
        Normalization,
        &[(&[2, 3], &[A(0), A(1)]), (&[4, 5], &[A(0)]), (&[6, 7], &[A(1), Y])],
    ),
    (
        "GammaBetaBackwardSimpleCUDAKernel",
        Normalization,
        &[(&[2, 3], &[A(0), A(1)]), (&[4, 5], &[A(0)]), (&[6, 7], &[A(1)])],
    ),
    (
        "GammaBetaBackwardCUDAKernel",
        Normalization,
        &[(&[2, 3], &[A(0), A(1)]), (&[4, 5], &[A(0)]), (&[6, 7], &[A(1)])],
    ),
    (
        "GammaBetaBackwardCUDAKernel_32x32",
        Normalization,
        &[(&[2, 3], &[A(0), A(1)]), (&[4, 5], &[A(0)]), (&[6, 7], &[A(1)])],
    ),
    // group_norm_kernel.cu: the kernels beside the elementwise ones.
    (
        "ComputeInternalGradientsCUDAKernel",
        Normalization,
        &[(&[1, 2], &[X, A(0)]), (&[3, 4], &[X])],
    ),
    ("ComputeFusedParamsCUDAKernel", Normalization, &[(&[7, 8], &[A(0), A(1)])]),
    ("ComputeBackwardFusedParamsCUDAKernel", Normalization, &[(&[6, 7], &[X, A(0)])]),
    ("GammaBetaBackwardCUDAKernel1", Normalization, &[(&[5, 6], &[A(0), A(1)])]),
    ("GammaBetaBackwardCUDAKernel2", Normalization, &[(&[5, 6], &[A(0), A(1)])]),
    // Normalization.cuh, channels last; the others describe their tensors.
    ("batch_norm_collect_statistics_channels_last_kernel", Normalization, &[(&[0], &[A(5), A(6)])]),
    (
        "batch_norm_transform_input_channels_last_kernel",
        Normalization,
        &[(&[0, 1, 6], &[A(7), A(8)])],
    ),
    (
        "batch_norm_backward_reduce_channels_last_kernel",
        Normalization,
        &[(&[0, 1], &[A(-2), A(-1)])],
    ),
    (
        "batch_norm_backward_elemt_channels_last_kernel",
        Normalization,
        &[(&[0, 1, 7], &[A(-2), A(-1)])],
    ),
    // WeightNorm.cu: norms and products over rows.
    ("weight_norm_fwd_first_dim_kernel", Normalization, &[(&[0, 2], &[X, A(4)])]),
    ("weight_norm_bwd_first_dim_kernel", Normalization, &[(&[1, 2, 3], &[X, A(6)])]),
    // DilatedMaxPool2d.cu, AveragePool2d.cu, AdaptiveAveragePooling.cu.
    (
        "max_pool_forward_nchw",
        Window,
        &[(&[1], &[A(0), A(3), A(4), Per(5), Per(6)]), (&[-2, -1], &[A(0)])],
    ),
    (
        "max_pool_forward_nhwc",
        Window,
        &[(&[0], &[A(1), A(2), A(3), A(4)]), (&[-2, -1], &[A(1), A(2), A(5), A(6)])],
    ),
    (
        "max_pool_backward_nchw",
        Window,
        &[(&[0, 1], &[A(2), A(3), A(6), A(7)]), (&[-1], &[A(2), A(3), A(4), A(5)])],
    ),
    (
        "max_pool_backward_nhwc",
        Window,
        &[(&[0, 1], &[A(2), A(3), A(6), A(7)]), (&[-1], &[A(2), A(3), A(4), A(5)])],
    ),
    (
        "avg_pool2d_out_cuda_frame",
        Window,
        &[(&[1], &[A(0), A(3), A(4), Per(5), Per(6)]), (&[-4], &[A(0)])],
    ),
    (
        "avg_pool2d_out_cuda_frame_nhwc",
        Window,
        &[(&[1], &[A(0), A(3), A(4), Per(5), Per(6)]), (&[-4], &[A(0)])],
    ),
    (
        "avg_pool2d_backward_out_cuda_frame",
        Window,
        &[(&[1], &[A(0), A(5), A(6), Per(3), Per(4)]), (&[-4], &[A(0)])],
    ),
    (
        "avg_pool2d_backward_out_cuda_frame_nhwc",
        Window,
        &[(&[1], &[A(0), A(5), A(6), Per(3), Per(4)]), (&[-4], &[A(0)])],
    ),
    ("adaptive_average_pool", Window, &[(&[0], &[X, A(2), A(3)]), (&[1], &[X, A(4), A(5)])]),
    ("adaptive_average_gradinput", Window, &[(&[0], &[X, A(2), A(3)]), (&[1], &[X, A(4), A(5)])]),
    (
        "atomic_adaptive_average_gradinput",
        Window,
        &[(&[0], &[X, A(2), A(3)]), (&[1], &[X, A(4), A(5)])],
    ),
    (
        "adaptive_average_pool_nhwc",
        Window,
        &[(&[0], &[A(2), A(3), A(4), A(5)]), (&[1], &[A(2), A(3), A(6), A(7)])],
    ),
    (
        "adaptive_average_gradinput_nhwc",
        Window,
        &[(&[0], &[A(2), A(3), A(4), A(5)]), (&[1], &[A(2), A(3), A(6), A(7)])],
    ),
    ("adaptivemaxpool", Window, &[(&[0], &[X, A(3), A(4)]), (&[1, 2], &[X, A(5), A(6)])]),
    ("adaptivemaxgradinput", Window, &[(&[0], &[X, A(3), A(4)]), (&[1, 2], &[X, A(5), A(6)])]),
    (
        "atomicadaptivemaxgradinput",
        Window,
        &[(&[0], &[X, A(3), A(4)]), (&[1, 2], &[X, A(5), A(6)])],
    ),
    // UpSampleNearest2d.cu, UpSampleBilinear2d.cu; others describe their tensors.
    (
        "upsample_nearest2d_out_frame",
        Window,
        &[(&[0], &[A(2), A(3), A(4)]), (&[1], &[A(2), A(5), A(6)])],
    ),
    (
        "upsample_nearest2d_nhwc_out_frame",
        Window,
        &[(&[1], &[A(-1)]), (&[0], &[A(-1), A(3), A(4), Per(5), Per(6)])],
    ),
    (
        "upsample_nearest2d_backward_out_frame",
        Window,
        &[(&[0], &[A(1), A(2), A(3), A(4)]), (&[7], &[A(1), A(2), A(5), A(6)])],
    ),
    (
        "upsample_nearest2d_backward_nhwc_out_frame",
        Window,
        &[(&[1], &[A(-1)]), (&[0], &[A(-1), A(2), A(3), Per(4), Per(5)])],
    ),
    (
        "upsample_bilinear2d_backward_out_frame",
        Window,
        &[(&[8], &[A(0), A(1), A(2)]), (&[9], &[A(0), A(3), A(4)])],
    ),
    (
        "upsample_bilinear2d_nhwc_out_frame",
        Window,
        &[(&[9], &[A(-1)]), (&[8], &[A(-1), A(4), A(5), Per(6), Per(7)])],
    ),
    ("upsample_bilinear2d_backward_nhwc_out_frame", Window, &[(&[7], &[A(-1)]), (&[8], &[A(-2)])]),
    // im2col.cuh.
    (
        "im2col_kernel",
        Window,
        &[(&[1], &[A(0), A(2), A(3), Per(12), Per(13)]), (&[14], &[A(0), A(4), A(5)])],
    ),
    (
        "col2im_kernel",
        Window,
        &[(&[1], &[A(0), A(4), A(5), A(12), A(13), Per(2), Per(3)]), (&[14], &[A(0)])],
    ),
    ("col2im_batched_kernel", Window, &[(&[1], &[A(2), A(3)]), (&[16], &[A(0), A(3)])]),
    // Embedding.cu, EmbeddingBackwardKernel.cu, Indexing.cu, IndexKernelUtils.cu.
    ("embedding_backward_feature_kernel", Gather, &[(&[0], &[A(3)]), (&[1, 2, 2], &[A(3), A(4)])]),
    ("compute_grad_weight", Gather, &[(&[0], &[A(3)]), (&[1], &[A(3), A(4)])]),
    ("vectorized_gather_kernel", Gather, &[(&[0, 1], &[A(3), A(4)]), (&[2], &[A(3)])]),
    ("indexSelectLargeIndex", Gather, &[(&[0, 1], &[A(5)]), (&[2], &[T(2)])]),
    ("indexSelectSmallIndex", Gather, &[(&[0, 1], &[T(0)]), (&[2], &[T(2)])]),
    ("indexFuncLargeIndex", Gather, &[(&[0, 0, 1], &[A(5)]), (&[2], &[T(2)])]),
    ("indexFuncSmallIndex", Gather, &[(&[0, 0, 1], &[T(1)]), (&[2], &[T(2)])]),
    ("indexing_backward_kernel", Gather, &[(&[0, 1], &[A(4)]), (&[2, 3, 3], &[A(4), A(5)])]),
    (
        "indexing_backward_kernel_small_stride",
        Gather,
        &[(&[0, 1], &[A(4)]), (&[2, 3, 3], &[A(4), A(5)])],
    ),
    (
        "indexing_backward_kernel_stride_1",
        Gather,
        &[(&[0, 1], &[A(4)]), (&[2, 3, 3], &[A(4), A(5)])],
    ),
    // ScanUtils.cuh.
    ("tensor_kernel_scan_innermost_dim", Gather, &[(&[0, 1], &[A(2), A(3)])]),
    ("tensor_kernel_scan_outer_dim", Gather, &[(&[0, 1], &[A(2), A(3), A(4)])]),
    ("tensor_kernel_scan_innermost_dim_with_indices", Gather, &[(&[0, 1, 2], &[A(3), A(4)])]),
    ("tensor_kernel_scan_outer_dim_with_indices", Gather, &[(&[0, 1, 2], &[A(3), A(4), A(5)])]),
    ("roll_cuda_kernel", Elementwise, &[(&[0, 1], &[A(2)])]),
    // CUB: sorts and scans.
    ("DeviceRadixSortHistogramKernel", Gather, &[(&[1], &[A(2)])]),
    ("DeviceRadixSortOnesweepKernel", Gather, &[(&[4, 5, 6, 7], &[A(8)])]),
    ("DeviceRadixSortSingleTileKernel", Gather, &[(&[0, 1, 2, 3], &[A(4)])]),
    ("DeviceRadixSortUpsweepKernel", Gather, &[(&[0], &[A(2)])]),
    ("DeviceRadixSortDownsweepKernel", Gather, &[(&[0, 1, 2, 3], &[A(5)])]),
    ("DeviceScanKernel", Gather, &[(&[0, 1], &[A(-1)])]),
    // AmpKernels.cu.
    ("amp_update_scale_cuda_kernel", Elementwise, &[(&[0, 0, 1, 1, 2], &[])]),
    // bitsandbytes 0.50, csrc/kernels.cu: states of one byte, parameters and gradients. What takes half a byte
    // counts as one.
    ("kOptimizerStatic8bit2StateBlockwise", Optimizer, &[(&[0, 0, 1, 2, 2, 3, 3], &[A(-1)])]),
    ("kOptimizerStatic8bit1StateBlockwise", Optimizer, &[(&[0, 0, 1, 2, 2], &[A(-1)])]),
    ("kOptimizer32bit2State", Optimizer, &[(&[0, 1, 1, 2, 2, 3, 3], &[A(-1)])]),
    ("kOptimizer32bit1State", Optimizer, &[(&[0, 1, 1, 2, 2], &[A(-1)])]),
    ("kQuantizeBlockwise", Elementwise, &[(&[1, 3], &[A(-1)])]),
    ("kQuantizeBlockwiseSmall", Elementwise, &[(&[1, 3], &[A(-1)])]),
    ("kDequantizeBlockwise", Elementwise, &[(&[1, 3], &[A(-1)])]),
    ("kInt8VectorQuant", Reduction, &[(&[0, 1], &[A(-2), A(-1)])]),
    ("kfunc", Elementwise, &[(&[0, 1], &[A(-1)])]),
    // torchvision, roi_align_kernel.cu: of the input, about as much as there is output.
    ("roi_align_forward_kernel_impl", Window, &[(&[1, -1], &[A(0)])]),
    ("roi_align_backward_kernel_impl", Window, &[(&[1, 10, 10], &[A(0)])]),
    // ForeachReduceOp.cu: sums of the chunks' norms, one block a tensor.
    ("lpnorm_cleanup", Reduction, &[(&[0], &[X, A(2)])]),
    ("lpmax_cleanup", Reduction, &[(&[0], &[X, A(2)])]),
];

/// An operand: its argument, bytes of an element, and whether it is a pointer that may be null.
#[derive(Clone, Copy)]
struct Operand {
    argument: usize,
    bytes: u64,
}

/// A factor, with the type of its argument.
#[derive(Clone, Copy)]
enum Factor {
    Number { argument: usize, bytes: u64 },
    Divisor { argument: usize, bytes: u64 },
    Tensor(Described),
    Grid(usize),
}

/// Operands and their number of elements.
type Read = (Vec<Operand>, Vec<Factor>);

/// Element of a pointer whose type does not say: such are sums in single precision.
const UNKNOWN_BYTES: u64 = 4;

/// Index `index` of a list of `length`, from the end if it is negative.
fn place(index: i8, length: usize) -> Option<usize> {
    let index = isize::from(index);
    let index = if index < 0 { length.checked_add_signed(index)? } else { index.unsigned_abs() };
    (index < length).then_some(index)
}

fn operand(signature: &Signature, index: i8) -> Option<Operand> {
    let argument = place(index, signature.parameters.len())?;
    let name = signature.parameter(argument);
    let bytes = match Described::of(signature, argument) {
        Some(tensor) => tensor.element(),
        None if name.contains("NullType") => 0,
        None if name.ends_with('*') => element::bytes(name).unwrap_or(UNKNOWN_BYTES),
        None => return None,
    };
    Some(Operand { argument, bytes })
}

fn factor(signature: &Signature, of: Of) -> Option<Factor> {
    let number = |index| {
        let argument = place(index, signature.parameters.len())?;
        let bytes = element::bytes(signature.parameter(argument))?;
        matches!(bytes, 4 | 8).then_some((argument, bytes))
    };
    Some(match of {
        A(index) => {
            let (argument, bytes) = number(index)?;
            Factor::Number { argument, bytes }
        }
        Per(index) => {
            let (argument, bytes) = number(index)?;
            Factor::Divisor { argument, bytes }
        }
        T(index) => {
            Factor::Tensor(Described::of(signature, place(index, signature.parameters.len())?)?)
        }
        X => Factor::Grid(0),
        Y => Factor::Grid(1),
    })
}

fn elements(factors: &[Factor], call: &Call) -> Option<u64> {
    let (mut product, mut divisor) = (1_u64, 1_u64);
    for factor in factors {
        match *factor {
            Factor::Number { argument, bytes } => {
                product = product.saturating_mul(call.number(argument, 0, bytes)?);
            }
            Factor::Divisor { argument, bytes } => {
                divisor = divisor.saturating_mul(call.number(argument, 0, bytes)?);
            }
            Factor::Tensor(tensor) => product = product.saturating_mul(tensor.elements(call)?),
            Factor::Grid(index) => product = product.saturating_mul(call.grid(index)),
        }
    }
    product.checked_div(divisor)
}

pub(super) fn rule(signature: &Signature) -> Option<Rule> {
    let (_, class, terms) = ROWS.iter().find(|(name, ..)| *name == signature.name)?;
    let read = |(operands, factors): &Term| -> Option<Read> {
        let operands: Option<_> = operands.iter().map(|it| operand(signature, *it)).collect();
        let factors: Option<_> = factors.iter().map(|it| factor(signature, *it)).collect();
        Some((operands?, factors?))
    };
    let terms: Vec<Read> = terms.iter().map(read).collect::<Option<_>>()?;
    let class = *class;
    Some(Box::new(move |call| {
        let mut bytes = 0_u64;
        for (operands, factors) in &terms {
            let mut each = 0;
            for operand in operands {
                // The argument, or what it begins with, is an address; optional operands have none.
                if call.value::<usize>(operand.argument, 0)? != 0 {
                    each += operand.bytes;
                }
            }
            bytes = bytes.saturating_add(each.saturating_mul(elements(factors, call)?));
        }
        streaming(class, bytes, call)
    }))
}

#[cfg(test)]
mod tests {
    use vramfit_vgpu_cost::Work;

    use super::*;
    use crate::launch::Launch;

    #[test]
    fn each_kernel_has_one_row() {
        let names: std::collections::BTreeSet<_> = ROWS.iter().map(|(name, ..)| name).collect();
        assert_eq!(names.len(), ROWS.len());
    }

    #[test]
    fn operands_that_are_not_there_take_no_bytes() {
        let name = "_ZN2at6native53_GLOBAL__N__21739cd4_20_layer_norm_kernel_cu_9c5ada8a28vectorized_layer_norm_kernelIffLb0EEEviT0_PKT_S6_S6_PS3_S7_PS4_";
        let rule = rule(&Signature::of(name)).unwrap();
        let bytes = |bias: usize| {
            let (columns, epsilon, data) = (768_i32, 0_f32, 0x1000_usize);
            let pointers = [data, data, bias, data, data, data];
            let mut arguments = vec![(&raw const columns).cast(), (&raw const epsilon).cast()];
            arguments.extend(pointers.iter().map(|it| (&raw const *it).cast()));
            let launch = Launch {
                grid: [5, 1, 1],
                block: [32, 4, 1],
                arguments: arguments.as_ptr(),
                stream: std::ptr::null_mut(),
            };
            match rule(&Call::new(&launch)) {
                Some(Work::Streaming(it)) => it.bytes,
                other => panic!("{other:?}"),
            }
        };
        let without = 4 * (2 * 5 * 768 + 768 + 2 * 5);
        assert_eq!((bytes(0), bytes(0x2000)), (without, without + 4 * 768));
    }
}
