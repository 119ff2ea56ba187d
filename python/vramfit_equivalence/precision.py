"""In which floating-point formats a device computes, and how a model is made to."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

# Gradients of a loss divided by many tokens are below the smallest number of fp16 otherwise. Loss scaling
# by a power of two is exact, and divided out again.
FP16_SCALE = 2.0**10
# Ampere, the first with bf16 and tf32.
AMPERE = 8


@dataclass(frozen=True)
class Precision:
    """A way to compute: the weights' type, and autocast's where there is any."""

    name: str
    weights: torch.dtype
    autocast: torch.dtype | None = None

    @property
    def epsilon(self) -> float:
        """The distance from 1 to the next number of the coarsest type that takes part."""
        if self.name == "tf32":
            # Ten bits of mantissa, as fp16.
            return torch.finfo(torch.float16).eps
        return torch.finfo(self.autocast or self.weights).eps

    def convert(self, value: Any) -> Any:
        """A module, or a tensor of numbers that have fractions, in the weights' type."""
        if isinstance(value, nn.Module):
            return value.to(self.weights)
        return value.to(self.weights) if value.is_floating_point() else value

    def computing(self, device: torch.device) -> AbstractContextManager[Any]:
        """Where the forward pass runs."""
        if device.type == "cuda":
            torch.backends.cuda.matmul.allow_tf32 = self.name == "tf32"
            torch.backends.cudnn.allow_tf32 = self.name == "tf32"
        if self.autocast is None:
            return nullcontext()
        return torch.autocast(device.type, dtype=self.autocast)


FP64 = Precision("fp64", torch.float64)
FP32 = Precision("fp32", torch.float32)
TF32 = Precision("tf32", torch.float32)
BF16 = Precision("bf16", torch.float32, torch.bfloat16)
FP16 = Precision("fp16", torch.float32, torch.float16)
PURE_BF16 = Precision("pure-bf16", torch.bfloat16)

NAMED = {it.name: it for it in (FP64, FP32, TF32, BF16, FP16, PURE_BF16)}


def offered(device: torch.device) -> list[Precision]:
    """What training runs in on this device, emulated on a CPU as far as that has to be."""
    if device.type == "cpu":
        return [FP32, BF16, FP16]
    if torch.cuda.get_device_capability(device)[0] < AMPERE:
        return [FP32, FP16]
    return [FP32, TF32, BF16, FP16]
