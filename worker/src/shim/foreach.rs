//! Operators over lists of tensors (`torch._foreach_*`, `torch._fused_*`), and the in-place
//! operators with a factor that tch lacks. Lists that an operator takes together have one length.

use std::ffi::c_int;
use std::ptr;

use tch::{TchError, Tensor};
use torch_sys::C_tensor;

use super::check;

type Handles = *const *mut C_tensor;

/// Hyper-parameters of Adam, as libtorch's fused step takes them.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub(crate) struct Adam {
    pub(crate) learning_rate: f64,
    pub(crate) beta1: f64,
    pub(crate) beta2: f64,
    pub(crate) weight_decay: f64,
    pub(crate) epsilon: f64,
    /// AdamW's decay of the weights themselves.
    pub(crate) decoupled: bool,
}

/// What a gradient scaler hands to a fused step: the scale, where gradients still carry it, and
/// whether one of them is not finite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Scaled<'a> {
    pub(crate) scale: Option<&'a Tensor>,
    pub(crate) found_inf: &'a Tensor,
}

// SAFETY: the signatures are those of shim/foreach.cpp.
unsafe extern "C" {
    fn vf_drop_gradients(parameters: Handles, n: usize) -> c_int;
    fn vf_foreach_add_scalar_(this: Handles, n: usize, scalar: f64) -> c_int;
    fn vf_foreach_add_list_(this: Handles, other: Handles, n: usize, alpha: f64) -> c_int;
    fn vf_foreach_sub_list_(this: Handles, other: Handles, n: usize) -> c_int;
    fn vf_foreach_mul_scalar_(this: Handles, n: usize, scalar: f64) -> c_int;
    fn vf_foreach_mul_tensor_(this: Handles, n: usize, other: *const C_tensor) -> c_int;
    fn vf_foreach_lerp_(this: Handles, end: Handles, n: usize, weight: f64) -> c_int;
    fn vf_foreach_addcmul_(this: Handles, a: Handles, b: Handles, n: usize, value: f64) -> c_int;
    fn vf_foreach_addcdiv_(
        this: Handles,
        a: Handles,
        b: Handles,
        n: usize,
        values: *const f64,
    ) -> c_int;
    fn vf_foreach_div_(this: Handles, n: usize, values: *const f64) -> c_int;
    fn vf_foreach_sqrt(this: Handles, n: usize, out: *mut *mut C_tensor) -> c_int;
    fn vf_foreach_norm(this: Handles, n: usize, out: *mut *mut C_tensor) -> c_int;
    fn vf_vector_norm(this: *const C_tensor, out: *mut *mut C_tensor) -> c_int;
    fn vf_add_(this: *mut C_tensor, other: *const C_tensor, alpha: f64) -> c_int;
    fn vf_addcmul_(
        this: *mut C_tensor,
        a: *const C_tensor,
        b: *const C_tensor,
        value: f64,
    ) -> c_int;
    fn vf_addcdiv_(
        this: *mut C_tensor,
        a: *const C_tensor,
        b: *const C_tensor,
        value: f64,
    ) -> c_int;
    fn vf_fused_adam_(
        parameters: Handles,
        gradients: Handles,
        averages: Handles,
        squares: Handles,
        steps: Handles,
        n: usize,
        options: *const Adam,
        scale: *const C_tensor,
        found_inf: *const C_tensor,
    ) -> c_int;
    fn vf_fused_sgd_(
        parameters: Handles,
        gradients: Handles,
        momenta: Handles,
        n: usize,
        momentum: f64,
        learning_rate: f64,
        first_step: bool,
        scale: *const C_tensor,
        found_inf: *const C_tensor,
    ) -> c_int;
    fn vf_unscale_(
        gradients: Handles,
        n: usize,
        found_inf: *mut C_tensor,
        inverse: *const C_tensor,
    ) -> c_int;
}

/// Handles of a list; good as long as the list is borrowed.
fn handles(list: &[Tensor]) -> Vec<*mut C_tensor> {
    list.iter().map(|tensor| tensor.as_ptr().cast_mut()).collect()
}

fn handle(tensor: Option<&Tensor>) -> *const C_tensor {
    tensor.map_or(ptr::null(), Tensor::as_ptr)
}

fn same_length(a: &[Tensor], b: &[Tensor]) {
    assert_eq!(a.len(), b.len(), "lists of one operator");
}

/// Sets each parameter's gradient to none, as `zero_grad(set_to_none=True)` does.
pub(crate) fn drop_gradients(parameters: &[Tensor]) -> Result<(), TchError> {
    // SAFETY: live handles, as many as stated.
    check(unsafe { vf_drop_gradients(handles(parameters).as_ptr(), parameters.len()) })
}

/// `list += scalar`.
pub(crate) fn add_scalar_(list: &[Tensor], scalar: f64) -> Result<(), TchError> {
    // SAFETY: live handles, as many as stated.
    check(unsafe { vf_foreach_add_scalar_(handles(list).as_ptr(), list.len(), scalar) })
}

/// `list += alpha · other`.
pub(crate) fn add_list_(list: &[Tensor], other: &[Tensor], alpha: f64) -> Result<(), TchError> {
    same_length(list, other);
    let (a, b) = (handles(list), handles(other));
    // SAFETY: live handles, as many as stated.
    check(unsafe { vf_foreach_add_list_(a.as_ptr(), b.as_ptr(), list.len(), alpha) })
}

/// `list -= other`.
pub(crate) fn sub_list_(list: &[Tensor], other: &[Tensor]) -> Result<(), TchError> {
    same_length(list, other);
    let (a, b) = (handles(list), handles(other));
    // SAFETY: live handles, as many as stated.
    check(unsafe { vf_foreach_sub_list_(a.as_ptr(), b.as_ptr(), list.len()) })
}

/// `list *= scalar`.
pub(crate) fn mul_scalar_(list: &[Tensor], scalar: f64) -> Result<(), TchError> {
    // SAFETY: live handles, as many as stated.
    check(unsafe { vf_foreach_mul_scalar_(handles(list).as_ptr(), list.len(), scalar) })
}

/// `list *= other`, one tensor for all.
pub(crate) fn mul_tensor_(list: &[Tensor], other: &Tensor) -> Result<(), TchError> {
    // SAFETY: live handles, as many as stated.
    check(unsafe { vf_foreach_mul_tensor_(handles(list).as_ptr(), list.len(), other.as_ptr()) })
}

/// `list += weight · (end − list)`.
pub(crate) fn lerp_(list: &[Tensor], end: &[Tensor], weight: f64) -> Result<(), TchError> {
    same_length(list, end);
    let (a, b) = (handles(list), handles(end));
    // SAFETY: live handles, as many as stated.
    check(unsafe { vf_foreach_lerp_(a.as_ptr(), b.as_ptr(), list.len(), weight) })
}

/// `list += value · a · b`.
pub(crate) fn addcmul_(
    list: &[Tensor],
    a: &[Tensor],
    b: &[Tensor],
    value: f64,
) -> Result<(), TchError> {
    same_length(list, a);
    same_length(list, b);
    let (list_, a, b) = (handles(list), handles(a), handles(b));
    // SAFETY: live handles, as many as stated.
    check(unsafe { vf_foreach_addcmul_(list_.as_ptr(), a.as_ptr(), b.as_ptr(), list.len(), value) })
}

/// `list += values · a / b`, one value for each tensor.
pub(crate) fn addcdiv_(
    list: &[Tensor],
    a: &[Tensor],
    b: &[Tensor],
    values: &[f64],
) -> Result<(), TchError> {
    same_length(list, a);
    same_length(list, b);
    assert_eq!(list.len(), values.len(), "one value a tensor");
    let (list_, a, b) = (handles(list), handles(a), handles(b));
    // SAFETY: live handles and values, as many as stated.
    check(unsafe {
        vf_foreach_addcdiv_(list_.as_ptr(), a.as_ptr(), b.as_ptr(), list.len(), values.as_ptr())
    })
}

/// `list /= values`, one value for each tensor.
pub(crate) fn div_(list: &[Tensor], values: &[f64]) -> Result<(), TchError> {
    assert_eq!(list.len(), values.len(), "one value a tensor");
    // SAFETY: live handles and values, as many as stated.
    check(unsafe { vf_foreach_div_(handles(list).as_ptr(), list.len(), values.as_ptr()) })
}

/// Square roots, as new tensors.
pub(crate) fn sqrt(list: &[Tensor]) -> Result<Vec<Tensor>, TchError> {
    let mut out = vec![ptr::null_mut(); list.len()];
    // SAFETY: live handles and room for as many results as stated.
    check(unsafe { vf_foreach_sqrt(handles(list).as_ptr(), list.len(), out.as_mut_ptr()) })?;
    Ok(received(out))
}

/// Euclidean norms, one for each tensor.
pub(crate) fn norm(list: &[Tensor]) -> Result<Vec<Tensor>, TchError> {
    let mut out = vec![ptr::null_mut(); list.len()];
    // SAFETY: live handles and room for as many results as stated.
    check(unsafe { vf_foreach_norm(handles(list).as_ptr(), list.len(), out.as_mut_ptr()) })?;
    Ok(received(out))
}

/// Euclidean norm of all elements.
pub(crate) fn vector_norm(tensor: &Tensor) -> Result<Tensor, TchError> {
    let mut out = ptr::null_mut();
    // SAFETY: a live handle and room for one result.
    check(unsafe { vf_vector_norm(tensor.as_ptr(), &raw mut out) })?;
    // SAFETY: after a successful call it is a handle that is ours.
    Ok(unsafe { Tensor::from_ptr(out) })
}

fn received(out: Vec<*mut C_tensor>) -> Vec<Tensor> {
    // SAFETY: after a successful call each is a handle that is ours.
    out.into_iter().map(|handle| unsafe { Tensor::from_ptr(handle) }).collect()
}

/// `this += alpha · other`.
pub(crate) fn add_one_(this: &Tensor, other: &Tensor, alpha: f64) -> Result<(), TchError> {
    // SAFETY: live handles.
    check(unsafe { vf_add_(this.as_ptr().cast_mut(), other.as_ptr(), alpha) })
}

/// `this += value · a · b`.
pub(crate) fn addcmul_one_(
    this: &Tensor,
    a: &Tensor,
    b: &Tensor,
    value: f64,
) -> Result<(), TchError> {
    // SAFETY: live handles.
    check(unsafe { vf_addcmul_(this.as_ptr().cast_mut(), a.as_ptr(), b.as_ptr(), value) })
}

/// `this += value · a / b`.
pub(crate) fn addcdiv_one_(
    this: &Tensor,
    a: &Tensor,
    b: &Tensor,
    value: f64,
) -> Result<(), TchError> {
    // SAFETY: live handles.
    check(unsafe { vf_addcdiv_(this.as_ptr().cast_mut(), a.as_ptr(), b.as_ptr(), value) })
}

/// One step of Adam or AdamW in one kernel.
pub(crate) fn fused_adam_(
    parameters: &[Tensor],
    gradients: &[Tensor],
    [averages, squares, steps]: [&[Tensor]; 3],
    options: &Adam,
    scaled: Option<Scaled<'_>>,
) -> Result<(), TchError> {
    for list in [gradients, averages, squares, steps] {
        same_length(parameters, list);
    }
    let n = parameters.len();
    let (parameters, gradients) = (handles(parameters), handles(gradients));
    let (averages, squares, steps) = (handles(averages), handles(squares), handles(steps));
    // SAFETY: live handles, as many as stated; null where there is no tensor.
    check(unsafe {
        vf_fused_adam_(
            parameters.as_ptr(),
            gradients.as_ptr(),
            averages.as_ptr(),
            squares.as_ptr(),
            steps.as_ptr(),
            n,
            options,
            handle(scaled.and_then(|scaled| scaled.scale)),
            handle(scaled.map(|scaled| scaled.found_inf)),
        )
    })
}

/// One step of SGD in one kernel; `momenta` is empty where `momentum` is 0.
pub(crate) fn fused_sgd_(
    parameters: &[Tensor],
    gradients: &[Tensor],
    momenta: &[Tensor],
    (learning_rate, momentum): (f64, f64),
    first_step: bool,
    scaled: Option<Scaled<'_>>,
) -> Result<(), TchError> {
    same_length(parameters, gradients);
    if momentum != 0.0 {
        same_length(parameters, momenta);
    }
    let n = parameters.len();
    let (parameters, gradients) = (handles(parameters), handles(gradients));
    let momenta = handles(momenta);
    // SAFETY: live handles, as many as stated; null where there is no tensor.
    check(unsafe {
        vf_fused_sgd_(
            parameters.as_ptr(),
            gradients.as_ptr(),
            momenta.as_ptr(),
            n,
            momentum,
            learning_rate,
            first_step,
            handle(scaled.and_then(|scaled| scaled.scale)),
            handle(scaled.map(|scaled| scaled.found_inf)),
        )
    })
}

/// Multiplies gradients by `inverse` and sets `found_inf` to 1 if one of them is not finite.
pub(crate) fn unscale_(
    gradients: &[Tensor],
    found_inf: &Tensor,
    inverse: &Tensor,
) -> Result<(), TchError> {
    // SAFETY: live handles, as many as stated.
    check(unsafe {
        vf_unscale_(
            handles(gradients).as_ptr(),
            gradients.len(),
            found_inf.as_ptr().cast_mut(),
            inverse.as_ptr(),
        )
    })
}
