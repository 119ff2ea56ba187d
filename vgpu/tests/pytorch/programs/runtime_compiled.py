"""Kernels that PyTorch compiles with NVRTC while the program runs."""

import os
from pathlib import Path

import nvidia
import torch

x = torch.rand(1000, device="cuda", requires_grad=True)


@torch.jit.script
def fused(a, b):
    return torch.relu(a * b + a).sigmoid() * b


for _ in range(4):
    fused(x, x).sum().backward()
y = x.detach()
# Operators whose kernels PyTorch has as source alone.
torch.special.bessel_j0(y), torch.lcm(torch.arange(9, device="cuda"), torch.arange(9, device="cuda"))
own = torch.cuda.jiterator._create_jit_fn("template <typename T> T own(T x, T y) { return x * y + x; }")
assert own(y, y).shape == y.shape
if hasattr(torch.cuda, "_compile_kernel"):
    os.environ.setdefault("CUDA_HOME", str(next(Path(nvidia.__path__[0]).glob("cu*"))))
    twice = torch.cuda._compile_kernel("__global__ void twice(float* p) { p[threadIdx.x] *= 2; }", "twice")
    twice((4, 1, 1), (250, 1, 1), (y,))
