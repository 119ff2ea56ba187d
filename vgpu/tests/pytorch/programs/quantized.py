"""What bitsandbytes keeps on the device, beside what its formats take, as lines of name, measured and
expected."""

import bitsandbytes
import torch
from torch import nn

NUMBERS = 4096 * 4096
# Numbers that share a scale, and numbers of a table of quantized values.
OPTIMIZER_BLOCK, TABLE, WEIGHT_BLOCK = 256, 256, 64


def say(name, measured, expected):
    print(name, measured, expected, sep="\t")


def states(kind, **options):
    weight = nn.Linear(4096, 4096, bias=False).cuda()
    optimizer = kind(weight.parameters(), lr=1e-3, **options)
    weight(torch.randn(4, 4096, device="cuda")).sum().backward()
    before = torch.cuda.memory_allocated()
    optimizer.step()
    torch.cuda.synchronize()
    return torch.cuda.memory_allocated() - before


one = NUMBERS + 4 * NUMBERS // OPTIMIZER_BLOCK + 4 * TABLE
optimizers = bitsandbytes.optim
say("AdamW8bit", states(optimizers.AdamW8bit), 2 * one)
say("Lion8bit", states(optimizers.Lion8bit), one)
say("SGD8bit", states(optimizers.SGD8bit, momentum=0.9), one)
say("AdamW", states(optimizers.AdamW), 8 * NUMBERS)
# The states themselves lie in managed memory.
say("PagedAdamW8bit", states(optimizers.PagedAdamW8bit), 2 * (one - NUMBERS))


def weights(layer, dtype):
    before = torch.cuda.memory_allocated()
    layer = layer.cuda()
    held = torch.cuda.memory_allocated() - before
    inputs = torch.randn(8, 4096, device="cuda", dtype=dtype, requires_grad=True)
    layer(inputs).sum().backward()
    say("gradient of the input", inputs.grad.shape, inputs.shape)
    return held


four = {"bias": False, "compute_dtype": torch.bfloat16, "quant_type": "nf4"}
layer = bitsandbytes.nn.Linear4bit(4096, 4096, compress_statistics=False, **four)
# Half a byte a number, a scale a block, and a table of 16.
say("NF4", weights(layer, torch.bfloat16), NUMBERS // 2 + 4 * NUMBERS // WEIGHT_BLOCK + 512)
layer = bitsandbytes.nn.Linear4bit(4096, 4096, compress_statistics=True, **four)
scales = NUMBERS // WEIGHT_BLOCK
small = 3072  # tables and the mean of the scales
say("NF4, quantized twice", weights(layer, torch.bfloat16), NUMBERS // 2 + scales + 4 * scales // 256 + small)
layer = bitsandbytes.nn.Linear8bitLt(4096, 4096, bias=False, has_fp16_weights=False, threshold=6.0)
say("LLM.int8", weights(layer, torch.float16), NUMBERS + 4 * 4096)
