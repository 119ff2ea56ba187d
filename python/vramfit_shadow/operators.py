"""Which operators are computed, by their names in ATen without the overload.

Chosen are those that programs put between a tensor and a decision: masks, lengths, indices, counts,
losses, norms, samples. What works on large floating-point tensors alone (convolutions, attention,
normalisation) is left to its kernel, and so are operators that do not read or write what they are
given (views) or whose kernel keeps a state of its own (dropout). Operators without a CUDA kernel of
their own (`stack`, `one_hot`) are made of these.
"""


def _names(text: str) -> list[str]:
    return text.split()


# Each stands for its overloads and for its in-place form (`add`, `add_`).
ELEMENTWISE = _names("""
    add sub rsub mul div floor_divide remainder fmod pow neg abs sign sgn reciprocal rsqrt sqrt exp
    exp2 expm1 log log1p log2 log10 floor ceil round trunc frac sin cos tan asin acos atan atan2
    sinh cosh tanh asinh acosh atanh sinc erf erfc erfinv lgamma digamma sigmoid relu gelu silu
    leaky_relu elu hardtanh softplus hypot copysign heaviside nextafter gcd lcm logaddexp logaddexp2
    eq ne lt le gt ge logical_and logical_or logical_xor logical_not bitwise_and bitwise_or
    bitwise_xor bitwise_not __lshift__ __rshift__ bitwise_left_shift bitwise_right_shift minimum
    maximum fmin fmax clamp clamp_min clamp_max where masked_fill lerp addcmul addcdiv isnan isin
    complex polar angle special_entr
""")

REDUCTIONS = _names("""
    sum nansum prod mean amax amin max min aminmax argmax argmin any all count_nonzero norm
    linalg_vector_norm _softmax _log_softmax var std var_mean std_mean cumsum cumprod _cummax_helper
    _cummin_helper mode median nanmedian trace dot vdot bincount histc
""")

INDEXING = _names("""
    cat index _index_put_impl_ index_add index_copy index_fill index_select gather scatter
    scatter_add scatter_reduce take put masked_scatter masked_select _embedding_bag flip roll tril
    triu repeat_interleave sort topk kthvalue searchsorted bucketize nonzero_static
""")

CREATION = _names("""
    fill zero arange range linspace logspace eye tril_indices triu_indices
""")

LINEAR = _names("""
    mm bmm addmm addmv addbmm baddbmm linalg_cross _linalg_det linalg_inv_ex linalg_cholesky_ex
    _linalg_eigh linalg_qr _linalg_svd _linalg_solve_ex linalg_lu_factor_ex linalg_lu
    linalg_solve_triangular _cdist_forward _pdist_forward renorm _fft_r2c _fft_c2c _fft_c2r col2im
    im2col unfold_backward upsample_nearest2d avg_pool2d max_pool2d_with_indices
    _adaptive_avg_pool2d
""")

# A loss that cannot be computed is 1: zero would end a program's loop, or its early stopping.
LOSSES = _names("""
    nll_loss_forward nll_loss2d_forward mse_loss smooth_l1_loss huber_loss binary_cross_entropy
    multi_margin_loss multilabel_margin_loss_forward _ctc_loss _cudnn_ctc_loss
""")

# Of a whole tensor, or none of whose results is an index.
SMALLEST = _names("min amin")

# By these a gradient scaler, an optimizer on the GPU and clipping keep their scalars. What an
# optimizer does to weights in lists is left to its kernels.
SCALARS = _names("_amp_update_scale _foreach_add _foreach_sub _foreach_norm _foreach_max")

# Drawn on the CPU, from a generator of this package's own.
RANDOM = _names("""
    bernoulli uniform normal exponential random randperm multinomial poisson binomial geometric
    cauchy log_normal _standard_gamma _sample_dirichlet
""")

# Their number of results is found by reading a count back: it is computed first.
COUNTED = _names("nonzero _unique _unique2 unique_dim unique_consecutive unique_dim_consecutive")

# Statistics that normalisation keeps; its schemas do not say that it writes them.
STATISTICS = ("running_mean", "running_var")

# They change what a tensor is of, not what it holds.
NOT_WRITING = _names("set_ resize_ record_stream")

# `pow` of a plain number comes here with that number as a tensor on the device, marked as a number:
# PyTorch cannot hand such a one to Python. `pow.Scalar`, which it came from, is computed.
LEFT_OUT = {"aten::pow.Tensor_Tensor_out"}

ALL = [
    *ELEMENTWISE,
    *REDUCTIONS,
    *INDEXING,
    *CREATION,
    *LINEAR,
    *LOSSES,
    *SCALARS,
    *RANDOM,
    *COUNTED,
]
