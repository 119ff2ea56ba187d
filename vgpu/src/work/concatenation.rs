//! `torch.cat` and `stack`: `CatArrayBatchedCopy…(output*, metadata, …)` (ATen, native/cuda/Shape.cu). The
//! metadata, passed by value, has a pointer, an offset, a size and a number of elements for each of up to
//! `n` inputs; the grid has one row of blocks for each.

use vramfit_vgpu_cost::StreamingClass;

use super::element;
use super::signature::{Signature, number, template_of};
use super::{Rule, streaming};

pub(super) fn rule(signature: &Signature) -> Option<Rule> {
    if !signature.name.starts_with("CatArrayBatchedCopy") {
        return None;
    }
    let element = element::bytes(signature.template(0))?;
    let metadata = template_of(signature.parameter(1), "CatArrInputTensorMetadata")?;
    let index = element::bytes(metadata.get(1)?)?;
    let most = number(metadata.get(2)?)? as usize;
    let counts = most * (8 + 2 * index as usize);
    Some(Box::new(move |call| {
        let inputs = call.grid(1) as usize;
        if inputs > most {
            return None;
        }
        let elements = (0..inputs)
            .map(|input| call.number(1, counts + input * index as usize, index))
            .sum::<Option<u64>>()?;
        streaming(StreamingClass::Elementwise, 2 * element * elements, call)
    }))
}
