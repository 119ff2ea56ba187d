//! Arguments that describe tensors: `TensorInfo`, `PackedTensorAccessor` and `OffsetCalculator`. A kernel
//! that no other family knows is taken to touch each tensor that it is told of once.

use vramfit_vgpu_cost::StreamingClass;

use super::call::Call;
use super::element;
use super::signature::{Signature, number, split, within};
use super::{Rule, streaming};

/// Most dimensions of a `TensorInfo` and of an `OffsetCalculator`.
const MOST_DIMENSIONS: usize = 25;

/// A parameter that describes a tensor.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Described {
    parameter: usize,
    element: u64,
    index: u64,
    /// Of an accessor; a `TensorInfo` says how many it has.
    dimensions: Option<usize>,
}

impl Described {
    /// Parameter `parameter` of a kernel, if it describes a tensor.
    pub(super) fn of(signature: &Signature, parameter: usize) -> Option<Self> {
        let name = signature.parameter(parameter);
        let open = name.find('<')?;
        let template = split(within(&name[open..])?);
        let (element, index, dimensions) = match &template[..] {
            [element, index] if name[..open].ends_with("TensorInfo") => (element, index, None),
            // Since 2.10 the types of single elements come before.
            [.., element, dimensions, _, index]
                if name[..open].contains("PackedTensorAccessor") =>
            {
                (element, index, Some(number(dimensions)? as usize))
            }
            _ => return None,
        };
        let (element, index) = (element::bytes(element)?, element::bytes(index)?);
        Some(Self { parameter, element, index, dimensions })
    }

    /// Elements of the tensor that lie in places of their own.
    pub(super) fn elements(self, call: &Call) -> Option<u64> {
        let Self { parameter, index, .. } = self;
        let bytes = index as usize;
        let most = self.dimensions.unwrap_or(MOST_DIMENSIONS);
        let dimensions = match self.dimensions {
            Some(dimensions) => dimensions,
            None => call.number(parameter, 8 + 2 * most * bytes, 4)? as usize,
        };
        if dimensions > most {
            return None;
        }
        (0..dimensions).try_fold(1_u64, |elements, dimension| {
            let size = call.number(parameter, 8 + dimension * bytes, index)?;
            let stride = call.number(parameter, 8 + (most + dimension) * bytes, index)?;
            Some(if stride == 0 { elements } else { elements.saturating_mul(size) })
        })
    }

    pub(super) fn bytes(self, call: &Call) -> Option<u64> {
        // No data, no bytes: an operand that is optional.
        match call.value::<usize>(self.parameter, 0)? {
            0 => Some(0),
            _ => Some(self.elements(call)? * self.element),
        }
    }

    /// Bytes of an element.
    pub(super) fn element(self) -> u64 {
        self.element
    }
}

/// An `OffsetCalculator`: sizes of the dimensions, and each operand's stride in each.
pub(super) struct Strided<'a, 'b> {
    call: &'a Call<'b>,
    parameter: usize,
    at: usize,
    dimensions: usize,
    operands: usize,
}

/// A divisor with its magic number and shift.
const DIVIDER: usize = 12;

impl<'a, 'b> Strided<'a, 'b> {
    /// The calculator for `operands` operands at byte `at` of argument `parameter`, if the sizes there
    /// are those of a tensor of `elements` elements.
    pub(super) fn read(
        call: &'a Call<'b>,
        parameter: usize,
        at: usize,
        operands: usize,
        elements: u64,
    ) -> Option<Self> {
        let dimensions = call.number(parameter, at, 4)? as usize;
        let strided = Self { call, parameter, at, dimensions, operands };
        let fits = dimensions <= MOST_DIMENSIONS
            && (0..dimensions).map(|it| strided.size(it)).product::<u64>() == elements;
        fits.then_some(strided)
    }

    fn size(&self, dimension: usize) -> u64 {
        self.call.number(self.parameter, self.at + 4 + DIVIDER * dimension, 4).unwrap_or_default()
    }

    fn stride(&self, dimension: usize, operand: usize) -> u64 {
        let strides = self.at + 4 + DIVIDER * MOST_DIMENSIONS;
        let index = dimension * self.operands + operand;
        let stride = self.call.value::<i32>(self.parameter, strides + 4 * index);
        stride.unwrap_or_default().unsigned_abs().into()
    }

    /// Elements of `operand` that lie in places of their own.
    pub(super) fn distinct(&self, operand: usize) -> u64 {
        let moves = |dimension: &usize| self.stride(*dimension, operand) != 0;
        (0..self.dimensions).filter(moves).map(|it| self.size(it)).product()
    }

    /// Bytes between an element of `operand` and the next.
    pub(super) fn shortest(&self, operand: usize) -> Option<u64> {
        (0..self.dimensions).map(|it| self.stride(it, operand)).filter(|stride| *stride > 0).min()
    }
}

/// What a kernel does, by words in its name.
pub(super) fn class(name: &str) -> StreamingClass {
    let name = name.to_ascii_lowercase();
    let has = |words: &[&str]| words.iter().any(|word| name.contains(word));
    if has(&["norm", "moments", "statistics"]) {
        StreamingClass::Normalization
    } else if has(&[
        "pool",
        "upsample",
        "pad",
        "grid_sampl",
        "im2col",
        "col2im",
        "vol2",
        "depthwise",
        "roi",
    ]) {
        StreamingClass::Window
    } else if has(&[
        "index",
        "gather",
        "scatter",
        "sort",
        "topk",
        "embedding",
        "unique",
        "select",
        "scan",
    ]) {
        StreamingClass::Gather
    } else if has(&["softmax", "loss", "reduce", "gradinput"]) {
        StreamingClass::Reduction
    } else {
        StreamingClass::Elementwise
    }
}

pub(super) fn rule(signature: &Signature) -> Option<Rule> {
    let parameters = 0..signature.parameters.len();
    let tensors: Vec<_> = parameters.filter_map(|it| Described::of(signature, it)).collect();
    if tensors.is_empty() {
        return None;
    }
    // Sorts in place read and write.
    let passes = if signature.name.contains("InPlace") { 2 } else { 1 };
    let class = class(&signature.name);
    Some(Box::new(move |call| {
        let bytes = tensors.iter().map(|it| it.bytes(call)).sum::<Option<u64>>()?;
        streaming(class, passes * bytes, call)
    }))
}
