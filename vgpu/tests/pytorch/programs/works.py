"""Runs operators one by one, and prints what each must ask of the device, from its tensors' sizes.

A line is: label, part of the kernel's or the call's name, `bytes` or `operations`, the figure. Sizes are
chosen so that no two lines of one kernel have the same figure.
"""

import torch
import torch.nn.functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

DEVICE = "cuda"


def size(tensor):
    """Bytes of the elements of `tensor` that lie in places of their own."""
    elements = 1
    for length, stride in zip(tensor.shape, tensor.stride()):
        elements *= length if stride else 1
    return elements * tensor.element_size()


def line(label, kernel, unit, figure):
    print(label, kernel, unit, figure, sep="\t")


def case(label, kernel, run, *read, beside=0):
    """What `run` gives is written; `beside`: bytes read or written besides."""
    written = run()
    written = written if isinstance(written, (tuple, list)) else [written]
    line(label, kernel, "bytes", sum(map(size, [*read, *written])) + beside)
    return written[0]


def gradients(label, kernel, output, inputs, *read, beside=0):
    """The backward pass of `output` reads its gradient and `read`, and writes the inputs' gradients."""
    gradient = torch.ones_like(output)
    written = torch.autograd.grad(output, inputs, gradient)
    line(label, kernel, "bytes", sum(map(size, [gradient, *read, *written])) + beside)


def operations(label, kernel, run):
    """Operations of `run` as PyTorch's own counter has them."""
    with FlopCounterMode(display=False) as counter:
        result = run()
    line(label, kernel, "operations", counter.get_total_flops())
    return result


def random(*shape, dtype=torch.float32, **options):
    return torch.empty(*shape, dtype=dtype, device=DEVICE).requires_grad_(**options) if options else torch.empty(
        *shape, dtype=dtype, device=DEVICE
    )


def elementwise():
    for dtype, rows in [(torch.float32, 1009), (torch.bfloat16, 1013), (torch.float16, 1019)]:
        x, y = random(rows, 64, dtype=dtype), random(rows, 64, dtype=dtype)
        name = str(dtype)
        case(f"add {name}", "CUDAFunctor_add", lambda: x + y, x, y)
        case(f"multiply {name}", "MulFunctor", lambda: x * y, x, y)
        case(f"scale {name}", "MulFunctor", lambda: x * 2.0, x)
        case(f"gelu {name}", "GeluCUDAKernelImpl", lambda: F.gelu(x), x)
        case(f"silu {name}", "silu_kernel", lambda: F.silu(x), x)
        case(f"relu {name}", "launch_clamp_scalar", lambda: F.relu(x), x)
        case(f"where {name}", "where_kernel_impl", lambda: torch.where(x.view(torch.uint8)[:, :64].bool(), x, y), x, y, beside=x.numel())
        case(f"compare {name}", "CompareFunctor", lambda: x < y, x, y)
        case(f"broadcast {name}", "CUDAFunctor_add", lambda: x + y[:1], x, y[:1])
        case(f"column {name}", "MulFunctor", lambda: x * y[:, :1], x, y[:, :1].contiguous())
        case(f"transposed copy {name}", "direct_copy_kernel_cuda", lambda: x.t().contiguous(), x)
        case(f"fill {name}", "FillFunctor", lambda: torch.full_like(x, 2.0))
        case(f"normal {name}", "distribution_elementwise", lambda: torch.randn_like(x))
        case(f"logical not {name}", "logical_not", lambda: torch.logical_not(x), x)
    x = random(1021, 33)
    half = case("to half", "float16_copy_kernel", lambda: x.half(), x)
    case("to bfloat16", "bfloat16_copy_kernel", lambda: x.bfloat16(), x)
    case("from half", "direct_copy_kernel_cuda", lambda: half.float(), half)
    case("to double", "direct_copy_kernel_cuda", lambda: x.double(), x)
    case("mixed", "CUDAFunctor_add", lambda: x + half, x, half)
    column = half[:, :1].contiguous()
    case("mixed broadcast", "CUDAFunctor_add", lambda: x + column, x, column)
    mask = random(1021, 33, dtype=torch.bool)
    case("masked fill", "masked_fill", lambda: x.masked_fill(mask, 0.0), x, mask)


def reductions():
    for dtype, rows in [(torch.float32, 515), (torch.float16, 517)]:
        x = random(rows, 129, 7, dtype=dtype)
        name = str(dtype)
        case(f"sum {name}", "sum_functor", lambda: x.sum(), x)
        case(f"sum over rows {name}", "sum_functor", lambda: x.sum(0), x)
        case(f"mean over the last {name}", "MeanOps", lambda: x.mean(-1), x)
        case(f"maximum {name}", "MaxNanFunctor", lambda: x.amax(1), x)
        case(f"norm {name}", "NormTwoOps", lambda: x.norm(), x)
        case(f"variance {name}", "WelfordOps", lambda: x.var(1), x)
        for columns in (700, 5003, 50257):
            y = random(24 + rows % 7, columns, dtype=dtype, requires_grad=True)
            kernel = "softmax_warp_forward" if columns <= 1024 else "cunn_SoftMaxForward"
            out = case(f"softmax {name} {columns}", kernel, lambda: F.log_softmax(y, -1), y)
            kernel = kernel.replace("forward", "backward").replace("Forward", "Backward")
            gradients(f"softmax's gradient {name} {columns}", kernel, out, [y], out)
    x = random(27, 1000, requires_grad=True)
    target = torch.zeros(27, dtype=torch.long, device=DEVICE)
    loss = F.nll_loss(x, target)
    line("loss", "nll_loss_forward", "bytes", 27 * (8 + 4))
    loss.backward()
    line("loss's gradient", "nll_loss_backward", "bytes", 27 * (8 + 4))


def normalizations():
    for dtype, rows in [(torch.float32, 301), (torch.bfloat16, 303)]:
        name, width = str(dtype), 768
        x = random(rows, width, dtype=dtype, requires_grad=True)
        weight, bias = (random(width, dtype=dtype, requires_grad=True) for _ in range(2))
        # Mean and reciprocal deviation, in single precision.
        saved = 2 * rows * 4
        out = case(f"layer norm {name}", "vectorized_layer_norm", lambda: F.layer_norm(x, (width,), weight, bias), x, weight, bias, beside=saved)
        gradient = torch.ones_like(out)
        torch.autograd.grad(out, [x, weight, bias], gradient)
        line(f"layer norm's gradient {name}", "layer_norm_grad_input", "bytes", 3 * size(x) + size(weight) + saved)
    for channels_last, batch in [(False, 5), (True, 6)]:
        x = random(batch, 24, 14, 15, requires_grad=True)
        if channels_last:
            x = x.detach().to(memory_format=torch.channels_last).requires_grad_()
        norm = torch.nn.BatchNorm2d(24, device=DEVICE)
        out = norm(x)
        line("batch norm", "cudnnBatchNormalizationForwardTrainingEx", "bytes", 2 * size(x))
        out.sum().backward()
        line("batch norm's gradient", "cudnnBatchNormalizationBackwardEx", "bytes", 3 * size(x))
        with torch.backends.cudnn.flags(enabled=False):
            x = x.detach().requires_grad_()
            out = norm(x)
            line("own batch norm, statistics", "batch_norm_collect_statistics", "bytes", size(x) + (0 if channels_last else 2 * 24 * 4))


def windows():
    for channels_last, batch in [(False, 5), (True, 6)]:
        x = random(batch, 16, 28, 30)
        if channels_last:
            x = x.to(memory_format=torch.channels_last)
        x.requires_grad_()
        kind = "nhwc" if channels_last else "nchw"
        frame = "nhwc_out_frame" if channels_last else "out_frame"
        # The places of the largest elements are 8 bytes each.
        out = F.max_pool2d(x, 2)
        line(f"max pool {kind}", f"max_pool_forward_{kind}", "bytes", size(x) + 3 * size(out))
        out.sum().backward()
        line(f"max pool's gradient {kind}", f"max_pool_backward_{kind}", "bytes", size(x) + 3 * size(out))
        out = case(f"average pool {kind}", "avg_pool2d_out", lambda: F.avg_pool2d(x, 2), x)
        gradients(f"average pool's gradient {kind}", "avg_pool2d_backward", out, [x])
        out = case(f"adaptive pool {kind}", "adaptive_average_pool", lambda: F.adaptive_avg_pool2d(x, (7, 5)), x)
        gradients(f"adaptive pool's gradient {kind}", "adaptive_average_gradinput", out, [x])
        out = case(f"nearest {kind}", f"upsample_nearest2d_{frame}", lambda: F.interpolate(x, scale_factor=2), x)
        gradients(f"nearest's gradient {kind}", f"upsample_nearest2d_backward_{frame}", out, [x])
        out = case(f"bilinear {kind}", f"upsample_bilinear2d_{frame}", lambda: F.interpolate(x, scale_factor=3, mode="bilinear"), x)
        gradients(f"bilinear's gradient {kind}", f"upsample_bilinear2d_backward_{frame}", out, [x])
    x = random(3, 12, 20, 21)
    case("unfold", "im2col_kernel", lambda: F.unfold(x, 3)[:1], x[:1])
    columns = F.unfold(x, 3)
    line("fold", "col2im", "bytes", size(columns) + size(F.fold(columns, (20, 21), 3)))


def gathers():
    table = random(4001, 96, requires_grad=True)
    places = torch.zeros(700, dtype=torch.long, device=DEVICE)
    out = F.embedding(places, table)
    line("embedding", "gather", "bytes", 2 * size(out) + size(places))
    out.sum().backward()
    line("embedding's gradient", "embedding_backward_feature_kernel", "bytes", 3 * size(out) + size(places))
    table = table.detach()
    out = case("row selection", "", lambda: table.index_select(0, places[:300]), places[:300], beside=300 * 96 * 4)
    out = case("advanced indexing", "index_elementwise_kernel", lambda: table[:, :90][places[:200]], places[:200], beside=200 * 90 * 4)
    index = torch.zeros(500, 96, dtype=torch.long, device=DEVICE)
    case("gather", "_scatter_gather_elementwise_kernel", lambda: table.gather(0, index), index, beside=500 * 96 * 4)
    parts = [random(31, 77), random(32, 77), random(35, 77)]
    case("concatenation", "CatArrayBatchedCopy", lambda: torch.cat(parts), *parts)
    parts = [random(31, 77, dtype=torch.half), random(31, 80, dtype=torch.half)]
    case("concatenation of columns", "CatArrayBatchedCopy", lambda: torch.cat(parts, 1), *parts)
    x = random(50, 300)
    case("cumulative sum", "tensor_kernel_scan_innermost_dim", lambda: x.cumsum(-1), x)
    square = random(301, 301)
    case("triangle", "triu_tril_kernel", lambda: square.tril(), square)
    x = random(300, 64)
    case("dropout", "fused_dropout", lambda: torch.native_dropout(x, 0.1, True), x)


def lists():
    parameters = [random(n).requires_grad_() for n in (70_001, 65_536, 13, 200_003)]
    elements = sum(it.numel() for it in parameters)
    for parameter in parameters:
        parameter.grad = torch.zeros_like(parameter)
    torch.optim.AdamW(parameters, fused=True).step()
    line("fused AdamW", "FusedAdamMathFunctor", "bytes", 7 * 4 * elements)
    torch.optim.SGD(parameters, 0.1, momentum=0.9, fused=True).step()
    line("fused SGD", "FusedSgdMathFunctor", "bytes", 5 * 4 * elements)
    torch.optim.SGD(parameters, 0.1, foreach=True).step()
    line("SGD", "BinaryOpListAlphaFunctor", "bytes", 3 * 4 * elements)
    torch.optim.Adam(parameters, foreach=True).step()
    line("Adam's first moment", "LerpFunctor", "bytes", 3 * 4 * elements)
    line("Adam's second moment", "PointwiseOpScalarFunctor", "bytes", 4 * 4 * elements)
    torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
    line("norms", "LpNormFunctor", "bytes", 4 * elements)
    # More blocks than one launch has: 320 chunks of 65 536 elements.
    large = [random(65_536 * 330 + 5).requires_grad_()]
    large[0].grad = torch.zeros_like(large[0])
    torch.optim.SGD(large, 0.1, foreach=True).step()
    line("first launch of a large tensor", "BinaryOpListAlphaFunctor", "bytes", 3 * 4 * 65_536 * 320)
    line("its second launch", "BinaryOpListAlphaFunctor", "bytes", 3 * 4 * (65_536 * 10 + 5))


def products():
    for dtype, rows in [(torch.float32, 67), (torch.bfloat16, 71), (torch.float16, 73), (torch.float64, 79)]:
        a, b = random(rows, 128, dtype=dtype), random(128, 96, dtype=dtype)
        operations(f"product {dtype}", "cublas", lambda: a @ b)
        a, b = random(5, rows, 64, dtype=dtype), random(5, 64, 40, dtype=dtype)
        operations(f"batch {dtype}", "cublas", lambda: a @ b)
        bias = random(48, dtype=dtype)
        x, weight = random(rows, 112, dtype=dtype), random(48, 112, dtype=dtype)
        operations(f"linear {dtype}", "cublas", lambda: F.linear(x, weight, bias))


def convolutions():
    for dtype, batch in [(torch.float32, 3), (torch.float16, 4), (torch.bfloat16, 5)]:
        for groups, stride in [(1, 1), (4, 2)]:
            x = random(batch, 16, 28, 26, dtype=dtype, requires_grad=True)
            weight = random(32, 16 // groups, 3, 5, dtype=dtype, requires_grad=True)
            label = f"{dtype} groups {groups}"
            run = lambda: F.conv2d(x, weight, stride=stride, padding=1, groups=groups)
            out = operations(f"convolution {label}", "convolution_forward", run)
            figure = 2 * out.numel() * weight[0].numel()
            torch.autograd.grad(out, [x, weight], torch.ones_like(out))
            line(f"input's gradient {label}", "convolution_backward_data", "operations", figure)
            line(f"filter's gradient {label}", "convolution_backward_filter", "operations", figure)


def attentions():
    backends = [(SDPBackend.FLASH_ATTENTION, "flash"), (SDPBackend.EFFICIENT_ATTENTION, "fmha_cutlass")]
    for (backend, name), batch in zip(backends, (2, 3)):
        for dtype, width in [(torch.float16, 64), (torch.bfloat16, 40)]:
            for causal, length in [(False, 333), (True, 334)]:
                shape = (batch, 5, length, width)
                query, key, value = (random(*shape, dtype=dtype, requires_grad=True) for _ in range(3))
                with sdpa_kernel(backend):
                    out = F.scaled_dot_product_attention(query, key, value, is_causal=causal)
                whole = 2 * batch * 5 * length * length * width
                label = f"{name} {dtype}" + (" causal" if causal else "")
                line(label, name, "operations", 2 * whole // (2 if causal else 1))
                out.sum().backward()
                line(label + " gradient", name, "operations", 5 * whole // (2 if causal else 1))


torch.backends.cuda.matmul.allow_tf32 = True
for part in (elementwise, reductions, normalizations, windows, gathers, lists, products, convolutions, attentions):
    part()
