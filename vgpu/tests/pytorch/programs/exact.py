"""Requested bytes of single operations against numbers worked out by hand.

Each line of the output is one check: name, measured, expected. Requested bytes (not allocated ones)
are what the operations asked for, before the allocator rounds up to blocks of 512 bytes.
"""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

# Workspace of a cuBLAS handle below compute capability 9.0: PyTorch's default
# CUBLAS_WORKSPACE_CONFIG of :4096:2:16:8 (ATen/cuda/CublasHandlePool.cpp).
CUBLAS = 2 * 4096 * 1024 + 8 * 16 * 1024
# And of cuBLASLt (CUBLASLT_WORKSPACE_SIZE, 1024 KiB).
CUBLASLT = 1024 * 1024
FP32, BF16 = 4, 2


def requested(what="current"):
    return torch.cuda.memory_stats()[f"requested_bytes.all.{what}"]


def check(name, measured, expected):
    print(f"{name}\t{measured}\t{expected}")


def run(function):
    """Result of `function`, bytes it kept, and its peak above the start."""
    torch.cuda.reset_peak_memory_stats()
    before = requested()
    result = function()
    return result, requested() - before, requested("peak") - before


def matrix_product():
    a = torch.empty(100, 300, device="cuda")
    b = torch.empty(300, 200, device="cuda")
    product, kept, _ = run(lambda: a @ b)
    check("first product keeps its result and a cuBLAS workspace", kept, 100 * 200 * FP32 + CUBLAS)
    del product
    product, kept, peak = run(lambda: a @ b)
    check("second product keeps its result alone", kept, 100 * 200 * FP32)
    check("second product needs nothing else", peak, 100 * 200 * FP32)


def linear():
    batch, inputs, outputs = 777, 1000, 513
    layer = nn.Linear(inputs, outputs, device="cuda")
    x = torch.empty(batch, inputs, device="cuda", requires_grad=True)
    y, kept, _ = run(lambda: layer(x))
    check("first linear keeps its output and a cuBLASLt workspace", kept, batch * outputs * FP32 + CUBLASLT)
    gradient = torch.empty_like(y)
    parameters = (outputs * inputs + outputs) * FP32
    _, kept, _ = run(lambda: y.backward(gradient))
    check(
        "first backward keeps three gradients and the workspace of autograd's thread",
        kept,
        parameters + batch * inputs * FP32 + CUBLAS,
    )
    for dtype, size in ((torch.float32, FP32), (torch.bfloat16, BF16)):
        layer = nn.Linear(inputs, outputs, device="cuda", dtype=dtype)
        x = torch.empty(batch, inputs, device="cuda", dtype=dtype, requires_grad=True)
        y, kept, peak = run(lambda: layer(x))
        check(f"linear {dtype} keeps its output", kept, batch * outputs * size)
        check(f"linear {dtype} needs nothing else", peak, batch * outputs * size)
        gradient = torch.empty_like(y)
        _, kept, peak = run(lambda: y.backward(gradient))
        three = (outputs * inputs + outputs + batch * inputs) * size
        check(f"linear {dtype} backward keeps three gradients", kept, three)
        del y, gradient


def activations():
    rows, columns = 512, 1024
    size = rows * columns * FP32
    x = torch.empty(rows, columns, device="cuda", requires_grad=True)
    for name, function, expected in (
        ("gelu keeps its output", F.gelu, size),
        ("dropout keeps its output and one byte an element", lambda x: F.dropout(x, 0.1), size + rows * columns),
        ("layer norm keeps its output, means and deviations", nn.LayerNorm(columns, device="cuda"), size + 2 * rows * FP32),
        ("softmax keeps its output", lambda x: x.softmax(-1), size),
    ):
        y, kept, _ = run(lambda: function(x))
        check(name, kept, expected)
        del y
    target = torch.zeros(rows, dtype=torch.long, device="cuda")
    loss, kept, _ = run(lambda: F.cross_entropy(x, target))
    check("cross entropy keeps log-probabilities and two scalars", kept, size + 2 * FP32)
    _, _, peak = run(loss.backward)
    # The incoming gradient of 1 is freed before the second large buffer exists.
    check("cross entropy backward peaks at two more buffers", peak in (2 * size, 2 * size + FP32), True)
    indices = torch.zeros(32, 50, dtype=torch.long, device="cuda")
    embedding = nn.Embedding(1000, 64, device="cuda")
    y, kept, _ = run(lambda: embedding(indices))
    check("embedding keeps its output", kept, 32 * 50 * 64 * FP32)


def batch_norm():
    x = torch.empty(8, 64, 32, 32, device="cuda", requires_grad=True)
    layer = nn.BatchNorm2d(64, device="cuda")
    y, kept, _ = run(lambda: layer(x))
    check("batch norm keeps its output and two statistics a channel", kept, x.numel() * FP32 + 2 * 64 * FP32)


def optimizers():
    tensor, count = 1000 * 777 * FP32, 3
    whole = count * tensor
    for name, make, state, temporary in (
        ("adamw foreach", lambda p: torch.optim.AdamW(p), 2 * whole, whole),
        # The denominator is a quotient of a square root; the previous parameter's is still held.
        ("adamw for-loop", lambda p: torch.optim.AdamW(p, foreach=False), 2 * whole, 3 * tensor),
        ("adamw fused", lambda p: torch.optim.AdamW(p, fused=True), 2 * whole + count * FP32, 0),
        ("sgd foreach", lambda p: torch.optim.SGD(p, 0.1), 0, 0),
        ("sgd with momentum", lambda p: torch.optim.SGD(p, 0.1, momentum=0.9), whole, 0),
    ):
        parameters = [nn.Parameter(torch.empty(1000, 777, device="cuda")) for _ in range(count)]
        for parameter in parameters:
            parameter.grad = torch.empty_like(parameter)
        optimizer = make(parameters)
        _, kept, _ = run(optimizer.step)
        check(f"{name}: first step keeps its state", kept, state)
        _, kept, peak = run(optimizer.step)
        check(f"{name}: second step keeps nothing", kept, 0)
        check(f"{name}: second step's temporaries", peak, temporary)


def attention():
    batch, heads, sequence, width = 2, 4, 512, 64
    for backend, dtype, size in (
        (SDPBackend.FLASH_ATTENTION, torch.bfloat16, BF16),
        (SDPBackend.EFFICIENT_ATTENTION, torch.float32, FP32),
    ):
        query, key, value = (
            torch.empty(batch, heads, sequence, width, device="cuda", dtype=dtype, requires_grad=True)
            for _ in range(3)
        )
        one = batch * heads * sequence * width * size
        log_sum = batch * heads * sequence * FP32
        with sdpa_kernel(backend):
            output, kept, _ = run(lambda: F.scaled_dot_product_attention(query, key, value, is_causal=True))
        if backend is SDPBackend.FLASH_ATTENTION:
            # Seed and offset of the generator are three 8-byte words.
            check("flash attention bf16 keeps output, log-sums and its seed", kept, one + log_sum + 3 * 8)
        else:
            check("memory-efficient attention fp32 keeps output and log-sums", kept, one + log_sum)
        gradient = torch.empty_like(output)
        _, kept, _ = run(lambda: output.backward(gradient))
        freed = log_sum + (3 * 8 if backend is SDPBackend.FLASH_ATTENTION else 0)
        check(f"{backend.name} backward keeps three gradients, frees what it saved", kept, 3 * one - freed)


matrix_product()
linear()
activations()
batch_norm()
optimizers()
attention()
