"""Computes with values that nothing knows, where a stand-in of 0 would give an infinite result."""

import torch

unknown = torch.empty(1 << 20, device="cuda").sum()
zero = torch.zeros(1, device="cuda")
infinite = torch.tensor([-float("inf"), 1.0], device="cuda")
for name, value in {
    "logarithm": unknown.log(),
    "quotient": 1 / unknown,
    "in place": (unknown + 0).log_(),
    "not a number": unknown / (unknown * 0),
    "brought in by a number": unknown.masked_fill(unknown == 0, -float("inf")),
    "brought in by a tensor": infinite + unknown,
    "known": zero.log(),
}.items():
    print(name, value.tolist(), sep="\t")
