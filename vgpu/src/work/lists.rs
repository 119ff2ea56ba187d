//! Kernels over lists of tensors: `torch._foreach_*`, fused optimizers, unscaling and clipping.
//!
//! `multi_tensor_apply_kernel(metadata, functor, …)` (ATen, native/cuda/MultiTensorApply.cuh) gives each
//! block a chunk of one tensor. The metadata, passed by value, holds the addresses of `depth` lists, the
//! tensors' lengths, and for each block its tensor and chunk.

use vramfit_vgpu_cost::StreamingClass;

use super::call::Call;
use super::element;
use super::signature::{Signature, number, template_of};
use super::{Rule, streaming};

/// Elements of a chunk.
const CHUNK: u64 = 65_536;
/// Blocks that the metadata has room for.
const BLOCKS: u64 = 320;

/// Where the metadata holds what.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Layout {
    /// Lengths of the tensors, 8 bytes each.
    lengths: usize,
    /// Tensors there is room for.
    tensors: usize,
    /// Each block's tensor, a byte each; each block's chunk, 4 bytes each, follows.
    block_to_tensor: usize,
}

impl Layout {
    /// That of type `metadata` for lists of `depth`.
    fn of(metadata: &str, depth: usize) -> Option<Self> {
        // The sizes keep the arguments of a launch below 4 KiB.
        let [plain, scalars] = match depth {
            1 => [110, 96],
            2 => [64, 64],
            3 => [48, 48],
            4 => [36, 36],
            5 => [30, 30],
            _ => return None,
        };
        let layout = |tensors: usize, beside: usize| {
            let lengths = 8 * depth * tensors;
            Self { lengths, tensors, block_to_tensor: lengths + 8 * tensors + beside }
        };
        Some(if let Some(template) = template_of(metadata, "TensorListScalarListMetadata") {
            let scalar = element::bytes(template.first()?)? as usize;
            let tensors = match (scalar, depth) {
                (16, 1) => 72,
                (16, 2) => 60,
                _ => scalars,
            };
            layout(tensors, scalar * tensors)
        } else if metadata.contains("FusedOptimizerTensorListMetadata") {
            layout(plain, 8 * scalars)
        } else {
            layout(plain, 0)
        })
    }

    /// Elements of all chunks of a launch.
    fn elements(self, call: &Call) -> Option<u64> {
        let blocks = call.grid(0);
        if blocks > BLOCKS {
            return None;
        }
        let chunks = self.block_to_tensor + BLOCKS as usize;
        (0..blocks as usize).try_fold(0, |elements, block| {
            let tensor = usize::from(call.value::<u8>(0, self.block_to_tensor + block)?);
            let chunk = call.number(0, chunks + 4 * block, 4)?;
            if tensor >= self.tensors {
                return None;
            }
            let length = call.number(0, self.lengths + 8 * tensor, 8)?;
            Some(elements + length.saturating_sub(chunk * CHUNK).min(CHUNK))
        })
    }
}

/// How many of its lists a functor reads, and how many it writes.
fn passes(functor: &str, depth: u64) -> u64 {
    let name = functor.split('<').next().unwrap_or(functor);
    let name = name.rsplit("::").next().unwrap_or(name);
    match name {
        // The parameter, its gradient and the optimizer's states: all read, all but the gradient written.
        _ if name.starts_with("Fused") => 2 * depth - 1,
        "LpNormFunctor" | "LpMaxFunctor" => 1,
        "ZeroFunctor" => 1,
        _ => {
            // `…Functor<T, depth, lists read, list written>`; the list written may be one that is read.
            let template = template_of(functor, name).unwrap_or_default();
            let numbers: Vec<u64> = template.iter().filter_map(|it| number(it)).collect();
            match numbers[..] {
                [.., _, read, _] => read + 1,
                _ => depth + 1,
            }
        }
    }
}

pub(super) fn rule(signature: &Signature) -> Option<Rule> {
    if signature.name != "multi_tensor_apply_kernel" {
        return None;
    }
    let (metadata, functor) = (signature.template(0), signature.template(1));
    let open = metadata.find("Metadata<")? + "Metadata".len();
    let depth =
        number(super::signature::split(super::signature::within(&metadata[open..])?).last()?)?;
    let layout = Layout::of(metadata, depth as usize)?;
    let name = functor.split('<').next()?.rsplit("::").next()?;
    let types = template_of(functor, name)?;
    // Copies name two types, and read the second.
    let sizes: Vec<u64> = types.iter().map_while(|it| element::bytes(it)).collect();
    let bytes = match sizes[..] {
        [] => return None,
        [written, read, ..] if name == "CopyFunctor" => written + read,
        [each, ..] => each * passes(functor, depth),
    };
    Some(Box::new(move |call| {
        streaming(StreamingClass::Optimizer, layout.elements(call)? * bytes, call)
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_metadata_of_each_depth_stays_below_the_limit_of_arguments() {
        for (metadata, depth) in [
            ("TensorListMetadata<1>", 1),
            ("TensorListMetadata<5>", 5),
            ("TensorListScalarListMetadata<float, 2>", 2),
            ("TensorListScalarListMetadata<c10::complex<double>, 1>", 1),
            ("FusedOptimizerTensorListMetadata<4>", 4),
        ] {
            let layout = Layout::of(metadata, depth).unwrap();
            let end = layout.block_to_tensor + 5 * BLOCKS as usize;
            assert!((3000..4096).contains(&end), "{metadata} ends at {end}");
        }
    }

    #[test]
    fn functors_tell_which_lists_they_read_and_write() {
        assert_eq!(passes("a::BinaryOpScalarFunctor<float, 1, 1, 0>", 1), 2);
        assert_eq!(passes("a::BinaryOpListAlphaFunctor<float, 2, 2, 0>", 2), 3);
        assert_eq!(passes("a::PointwiseOpScalarFunctor<float, 3, 3, 0>", 3), 4);
        assert_eq!(passes("a::UnaryOpFunctor<float, 2, 1, 1>", 2), 2);
        assert_eq!(passes("a::FusedAdamMathFunctor<float, 4, (a::ADAM_MODE)1, false>", 4), 7);
        assert_eq!(passes("a::LpNormFunctor<float, (a::NormType)1, float, 1, 1, 0>", 1), 1);
    }
}
