//! `torch.nn.utils.clip_grad_norm_` in its default, foreach, form.

use tch::{TchError, Tensor};

use crate::model::Then;
use crate::shim::foreach;

/// Scales `gradients` down such that their common Euclidean norm is at most `largest`.
///
/// # Errors
/// libtorch's own.
pub(crate) fn clip_grad_norm_(gradients: &[Tensor], largest: f64) -> Result<(), TchError> {
    tch::no_grad(|| {
        let total = {
            let norms = foreach::norm(gradients)?;
            Tensor::f_stack(&norms, 0)?.then(foreach::vector_norm)?
        };
        let factor = (&total + 1e-6)
            .then(Tensor::f_reciprocal)?
            .then(|x| x.f_mul_scalar(largest))?
            .then(|x| x.f_clamp_max(1.0))?;
        foreach::mul_tensor_(gradients, &factor)
    })
}
