//! Kernels that Triton compiled, of Inductor and of packages. Their names tell no types; the Python side of
//! the process tells the bytes of the tensors that each launch is given (see [`crate::python`]).

use vramfit_vgpu_cost::StreamingClass;

use super::signature::Signature;
use super::{Rule, streaming, tensors};
use crate::python;

/// What Inductor calls kernels, by what they do: element by element, over lists of tensors, reductions in
/// one go and in a loop.
fn class(name: &str) -> StreamingClass {
    let of = |prefix: &str| name.starts_with(prefix);
    if of("triton_poi_") {
        StreamingClass::Elementwise
    } else if of("triton_for_") {
        StreamingClass::Optimizer
    } else if of("triton_red_") || of("triton_per_") {
        if name.contains("norm") {
            StreamingClass::Normalization
        } else {
            StreamingClass::Reduction
        }
    } else {
        tensors::class(name)
    }
}

pub(super) fn rule(signature: &Signature) -> Option<Rule> {
    if !signature.parameters.is_empty() {
        return None;
    }
    let class = class(&signature.name);
    Some(Box::new(move |call| streaming(class, python::bytes()?, call)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_names_of_compiled_kernels_tell_what_they_do() {
        for (name, expected) in [
            ("triton_poi_fused_add_native_layer_norm_0", StreamingClass::Elementwise),
            ("triton_per_fused_native_layer_norm_1", StreamingClass::Normalization),
            ("triton_red_fused_sum_3", StreamingClass::Reduction),
            ("triton_for_fused_0", StreamingClass::Optimizer),
            ("_rms_norm_forward_kernel", StreamingClass::Normalization),
            ("add_kernel", StreamingClass::Elementwise),
        ] {
            assert_eq!(class(name), expected, "{name}");
        }
    }
}
