"""Convolutions of each kind, forward and backward: FLAGS of `torch.backends.cudnn` as arguments."""

import sys

import torch
from attempt import Attempts, backward
from torch import nn

CUDA = "cuda"
for flag in sys.argv[1:]:
    setattr(torch.backends.cudnn, flag.removeprefix("no-"), not flag.startswith("no-"))

LAYERS = {
    "1-D": (nn.Conv1d(16, 32, 5, dilation=2), (8, 16, 64)),
    "2-D": (nn.Conv2d(16, 32, 3, padding=1), (8, 16, 28, 28)),
    "2-D strided without bias": (nn.Conv2d(16, 32, 7, stride=2, bias=False), (8, 16, 28, 28)),
    "dilated": (nn.Conv2d(16, 32, 3, padding=2, dilation=2), (8, 16, 28, 28)),
    "grouped": (nn.Conv2d(16, 32, 3, groups=4), (8, 16, 28, 28)),
    "depthwise": (nn.Conv2d(16, 16, 3, groups=16), (8, 16, 28, 28)),
    "3-D": (nn.Conv3d(8, 16, 3, padding=1), (2, 8, 12, 12, 12)),
    "3-D grouped": (nn.Conv3d(8, 16, 3, groups=2), (2, 8, 12, 12, 12)),
    "1-D transposed": (nn.ConvTranspose1d(16, 8, 4, 2), (8, 16, 32)),
    "2-D transposed": (nn.ConvTranspose2d(16, 8, 4, 2, 1), (8, 16, 14, 14)),
    "2-D transposed, grouped": (nn.ConvTranspose2d(16, 8, 3, 2, 1, 1, groups=4), (8, 16, 14, 14)),
    "3-D transposed": (nn.ConvTranspose3d(8, 4, 2, 2), (2, 8, 6, 6, 6)),
    "circular": (nn.Conv2d(16, 32, 3, padding=1, padding_mode="circular"), (8, 16, 14, 14)),
    "same": (nn.Conv2d(16, 32, 4, padding="same"), (8, 16, 14, 14)),
}
LAYOUTS = {4: torch.channels_last, 5: torch.channels_last_3d}


def train(layer, shape, dtype, layout):
    layer = layer.to(CUDA, dtype)
    x = torch.randn(shape, device=CUDA, dtype=dtype)
    if layout is not None:
        layer, x = layer.to(memory_format=layout), x.to(memory_format=layout)
    x.requires_grad_()
    backward(layer(x))
    assert x.grad is not None and layer.weight.grad is not None
    layer.zero_grad()


attempt = Attempts()
for dtype in torch.float32, torch.float16, torch.bfloat16, torch.float64:
    for name, (layer, shape) in LAYERS.items():
        for layout in (None, LAYOUTS.get(len(shape))):
            attempt(f"{name} {dtype} {layout}", lambda: train(layer, shape, dtype, layout))
fused = nn.Conv2d(16, 32, 3, padding=1).to(CUDA)
x = torch.randn(8, 16, 28, 28, device=CUDA)
with torch.no_grad():
    one = [1, 1]
    attempt("with ReLU", lambda: torch.cudnn_convolution_relu(x, fused.weight, fused.bias, one, one, one, 1))
    z = torch.randn(8, 32, 28, 28, device=CUDA)
    attempt("with sum and ReLU", lambda: torch.cudnn_convolution_add_relu(
        x, fused.weight, z, 1.0, fused.bias, one, one, one, 1))
attempt.finish()
