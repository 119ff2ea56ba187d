"""One 3x3 convolution, forward and backward: PRECISION BATCH CHANNELS FILTERS SIDE [channels_last] [benchmark]."""
import sys

import torch

precision, batch, channels, filters, side = sys.argv[1], *map(int, sys.argv[2:6])
dtype = {"fp32": torch.float32, "bf16": torch.bfloat16, "fp16": torch.float16}[precision]
torch.backends.cudnn.benchmark = "benchmark" in sys.argv
layout = torch.channels_last if "channels_last" in sys.argv else torch.contiguous_format


def tensor(*shape):
    return torch.empty(shape, device="cuda", dtype=dtype).to(memory_format=layout).requires_grad_()


x, w = tensor(batch, channels, side, side), tensor(filters, channels, 3, 3)
y = torch.nn.functional.conv2d(x, w, padding=1)
y.backward(torch.empty_like(y))
