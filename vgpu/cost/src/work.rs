use serde::{Deserialize, Serialize};

/// What one launch asks of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "work")]
pub enum Work {
    /// A matrix product, or a batch of them.
    Product(Product),
    /// A convolution or one of its gradients.
    Convolution(Convolution),
    /// Scaled dot-product attention in one kernel (flash, memory-efficient, cuDNN).
    Attention(Attention),
    /// A kernel whose time is that of its bytes: element by element, reductions, gathers.
    Streaming(Streaming),
    /// A copy or a fill by the driver.
    Copy(Copy),
    /// A collective operation between devices.
    Collective(Collective),
    /// A launch of which nothing is known but that it happens.
    Unknown,
}

/// In which numbers a kernel multiplies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arithmetic {
    /// Double precision.
    Fp64,
    /// Single precision on the ordinary lanes.
    Fp32,
    /// Single precision on tensor cores that round to 10 bits.
    Tf32,
    /// fp16 with fp32 sums.
    Fp16,
    /// bf16 with fp32 sums.
    Bf16,
    /// 8-bit floating point.
    Fp8,
    /// 8-bit integers.
    Int8,
}

/// Which of the three passes of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// The output from the input.
    Forward,
    /// The input's gradient (dgrad), or an attention's whole backward pass.
    Backward,
    /// The weight's gradient (wgrad).
    Weight,
}

/// `batch` products of `m`×`k` by `k`×`n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Product {
    /// Rows of the result.
    pub m: u64,
    /// Columns of the result.
    pub n: u64,
    /// Length of the inner products.
    pub k: u64,
    /// Products in the call.
    pub batch: u64,
    /// What multiplies.
    pub arithmetic: Arithmetic,
    /// Bytes of an element of the factors.
    pub input_bytes: u64,
    /// Bytes of an element of the result.
    pub output_bytes: u64,
}

/// A convolution over up to three spatial dimensions, by the sizes of its forward pass.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Convolution {
    /// Which pass.
    pub direction: Direction,
    /// Samples.
    pub batch: u64,
    /// Channels of the input.
    pub inputs: u64,
    /// Channels of the output.
    pub outputs: u64,
    /// Groups of channels that do not mix; as many as channels in a depthwise convolution.
    pub groups: u64,
    /// Positions of the input: height × width, of one sample.
    pub input_positions: u64,
    /// Positions of the output.
    pub output_positions: u64,
    /// Positions of the filter.
    pub filter_positions: u64,
    /// What multiplies.
    pub arithmetic: Arithmetic,
    /// Bytes of an element.
    pub element_bytes: u64,
    /// Whether channels are the innermost dimension, as tensor cores want them.
    pub channels_last: bool,
}

/// Softmax(Q·Kᵀ)·V in one kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Attention {
    /// Forward or backward.
    pub direction: Direction,
    /// Samples × heads of the queries.
    pub heads: u64,
    /// Queries of one head.
    pub queries: u64,
    /// Keys of one head.
    pub keys: u64,
    /// Length of one head's vectors.
    pub head_size: u64,
    /// Whether keys after the query are left out.
    pub causal: bool,
    /// What multiplies.
    pub arithmetic: Arithmetic,
    /// Bytes of an element.
    pub element_bytes: u64,
}

/// What a memory-bound kernel does with its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum StreamingClass {
    /// Each output element from the input elements at the same place.
    Elementwise,
    /// Sums, norms, softmax, losses: many inputs to one output.
    Reduction,
    /// Batch norm, layer norm and their gradients.
    Normalization,
    /// Over lists of tensors (`multi_tensor_apply`): optimizers, clipping, unscaling.
    Optimizer,
    /// Reads or writes at places that other values tell: embedding, indexing, sorting, scattering.
    Gather,
    /// Pooling, resizing, padding: windows over an image.
    Window,
    /// Nobody knows: the bytes are a guess from the number of threads.
    Unrecognised,
}

/// A kernel that is bound by memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Streaming {
    /// What kind of kernel.
    pub class: StreamingClass,
    /// Bytes read and written.
    pub bytes: u64,
    /// Threads launched: few threads do not saturate the memory.
    pub threads: u64,
}

/// The way of a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Route {
    /// Within the device's memory.
    Device,
    /// Between the host's pinned memory and the device.
    Pinned,
    /// Between the host's ordinary memory and the device.
    Pageable,
    /// Fills the device's memory.
    Fill,
    /// To another device.
    Peer,
}

impl Route {
    /// Whether it is the way between host and device.
    pub fn is_to_host(self) -> bool {
        matches!(self, Self::Pinned | Self::Pageable)
    }
}

/// A copy or a fill.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Copy {
    /// From where to where.
    pub route: Route,
    /// Bytes that arrive.
    pub bytes: u64,
}

/// A collective operation of NCCL.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Collective {
    /// Bytes that each device sends: with `n` devices, of `b` bytes an all-reduce sends 2·b·(n−1)/n, an
    /// all-gather or reduce-scatter b·(n−1)/n (NCCL's documentation, "bus bandwidth").
    pub sent_bytes: u64,
    /// Steps one after the other.
    pub steps: u64,
}
