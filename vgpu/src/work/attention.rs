//! Attention in one kernel: FlashAttention-2 and the memory-efficient kernels of CUTLASS, as PyTorch
//! builds them. Both take one struct of pointers, strides and sizes by value.

use vramfit_vgpu_cost::{Arithmetic, Attention, Direction, StreamingClass, Work};

use super::call::Call;
use super::signature::{Signature, number, split, within};
use super::{Rule, streaming};

/// Sizes of one attention.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Sizes {
    batch: u64,
    heads: u64,
    queries: u64,
    keys: u64,
    head_size: u64,
    /// Sizes that the kernel rounds up to.
    rounded: Option<(u64, u64)>,
}

pub(super) fn rule(signature: &Signature) -> Option<Rule> {
    let name = signature.name.as_str();
    if name.starts_with("fmha_cutlassF") || name.starts_with("fmha_cutlassB") {
        return memory_efficient(signature);
    }
    if !name.starts_with("flash_") || !signature.parameter(0).ends_with("_params") {
        return None;
    }
    let traits = signature.template.iter().find(|it| it.contains("kernel_traits<"))?;
    let arithmetic = arithmetic(traits)?;
    match name {
        "flash_fwd_kernel" | "flash_fwd_splitkv_kernel" => {
            // Both have the template arguments traits, …, causal; the split one lacks dropout.
            let at = if name == "flash_fwd_kernel" { 2 } else { 1 };
            let causal = signature.template(at) == "true";
            Some(Box::new(move |call| {
                let sizes = flash_sizes(call)?;
                Some(attention(sizes, Direction::Forward, causal, arithmetic, 2))
            }))
        }
        "flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel" => {
            let causal = signature.template(2) == "true";
            Some(Box::new(move |call| {
                let sizes = flash_sizes(call)?;
                Some(attention(sizes, Direction::Backward, causal, arithmetic, 2))
            }))
        }
        // Sums of the products of output and its gradient; may clear the sums of the queries' gradients.
        "flash_bwd_dot_do_o_kernel" => {
            let clears = signature.template(0) == "true";
            Some(Box::new(move |call| {
                let it = flash_sizes(call)?;
                let rows = it.batch * it.heads * it.queries;
                let (padded, width) = it.rounded?;
                let cleared = it.batch * it.heads * padded * width * 4;
                let bytes = rows * (2 * 2 * it.head_size + 4) + if clears { cleared } else { 0 };
                streaming(StreamingClass::Reduction, bytes, call)
            }))
        }
        // Sums in single precision become gradients.
        "flash_bwd_convert_dq_kernel" | "flash_bwd_convert_dkv_kernel" => {
            Some(Box::new(move |call| {
                let it = flash_sizes(call)?;
                let elements = it.batch * it.heads * it.queries * it.head_size;
                streaming(StreamingClass::Elementwise, elements * (4 + 2), call)
            }))
        }
        _ => None,
    }
}

/// By the element type that `name` contains.
fn arithmetic(name: &str) -> Option<Arithmetic> {
    if name.contains("bfloat16_t") {
        Some(Arithmetic::Bf16)
    } else if name.contains("half_t") {
        Some(Arithmetic::Fp16)
    } else {
        None
    }
}

fn attention(
    sizes: Sizes,
    direction: Direction,
    causal: bool,
    arithmetic: Arithmetic,
    element_bytes: u64,
) -> Work {
    let Sizes { batch, heads, queries, keys, head_size, .. } = sizes;
    let heads = batch * heads;
    Work::Attention(Attention {
        direction,
        heads,
        queries,
        keys,
        head_size,
        causal,
        arithmetic,
        element_bytes,
    })
}

/// `Flash_fwd_params` of FlashAttention 2.5.7 and later (PyTorch 2.5 and later), which
/// `Flash_bwd_params` begins with: 3 pointers and 9 strides of 8 bytes, 3 numbers of heads, 2 pointers, 3
/// strides, 3 pointers, then sizes.
fn flash_sizes(call: &Call) -> Option<Sizes> {
    let number = |offset| call.number(0, offset, 4);
    let (heads, batch, queries, keys) = (number(96)?, number(176)?, number(180)?, number(184)?);
    let (head_size, padded, width) = (number(192)?, number(196)?, number(204)?);
    let sane = [batch, heads, queries, keys, head_size].iter().all(|it| *it > 0)
        && head_size <= 256
        && (head_size..=256).contains(&width)
        && padded >= queries;
    let rounded = Some((padded, width));
    sane.then_some(Sizes { batch, heads, queries, keys, head_size, rounded })
}

/// `AttentionKernel<…>::Params` and `AttentionBackwardKernel<…>::Params` (ATen,
/// native/transformers/cuda/mem_eff_attention/kernel_forward.h and kernel_backward.h).
fn memory_efficient(signature: &Signature) -> Option<Rule> {
    let kernel = signature.parameter(0);
    let open = kernel.find('<')?;
    let template = split(within(&kernel[open..])?);
    let forward = signature.name.starts_with("fmha_cutlassF");
    let single = template.iter().any(|it| it == "float");
    let (arithmetic, element_bytes) = if single {
        // On tensor cores it takes three products in TF32 for one.
        (Arithmetic::Fp32, 4)
    } else {
        (arithmetic(kernel)?, 2)
    };
    let rows = template.iter().find_map(|it| number(it))?;
    Some(Box::new(move |call| {
        let (sizes, causal) =
            if forward { forward_sizes(call, rows)? } else { backward_sizes(call)? };
        let direction = if forward { Direction::Forward } else { Direction::Backward };
        Some(attention(sizes, direction, causal, arithmetic, element_bytes))
    }))
}

/// 7 or 8 pointers, an offset, 3 pointers, perhaps a window, the scale, then sizes: a scale is no size of
/// a head, and the grid is blocks of `rows` queries × heads × samples.
fn forward_sizes(call: &Call, rows: u64) -> Option<(Sizes, bool)> {
    [92, 96, 100, 104].into_iter().find_map(|at| {
        let number = |index: usize| call.number(0, at + 4 * index, 4);
        let (head_size, queries, keys) = (number(0)?, number(2)?, number(3)?);
        let fits = (1..=65_536).contains(&head_size)
            && keys > 0
            && queries.div_ceil(rows.max(1)) == call.grid(0);
        let causal = call.value::<u8>(0, at + 20)? != 0;
        let (heads, batch) = (call.grid(1), call.grid(2));
        fits.then_some((Sizes { batch, heads, queries, keys, head_size, rounded: None }, causal))
    })
}

/// 17 pointers, perhaps a window, the scale, then sizes. The grid is splits of the keys × heads × samples.
fn backward_sizes(call: &Call) -> Option<(Sizes, bool)> {
    [140, 144].into_iter().find_map(|at| {
        let number = |index: usize| call.number(0, at + 4 * index, 4);
        let (head_size, queries, keys, heads) = (number(0)?, number(2)?, number(3)?, number(4)?);
        let fits =
            (1..=65_536).contains(&head_size) && queries > 0 && keys > 0 && heads == call.grid(1);
        // How many query heads share a key comes before the mask in newer versions, where the rows of
        // the queries are then not next.
        let (word, next) = (number(5)?, number(6)?);
        let shared = (1..=heads).contains(&word) && next < head_size;
        let causal = call.value::<u8>(0, at + if shared { 24 } else { 20 })? != 0;
        let batch = call.grid(2);
        fits.then_some((Sizes { batch, heads, queries, keys, head_size, rounded: None }, causal))
    })
}
