"""Trains a small model for three steps and says what PyTorch says of its memory, as JSON.

usage: compiled.py eager|default|dynamic|max-autotune-no-cudagraphs|reduce-overhead|optimizer
"""

import json
import sys

import torch
from torch import nn

mode = sys.argv[1]
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 256)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
options = {"dynamic": {"dynamic": True}, "max-autotune-no-cudagraphs": {"mode": mode}, "reduce-overhead": {"mode": mode}}
compiled = model if mode in ("eager", "optimizer") else torch.compile(model, **options.get(mode, {}))
step = torch.compile(optimizer.step) if mode == "optimizer" else optimizer.step
rows = [64, 128, 8192] if mode == "dynamic" else [8192] * 4
peaks = []
for count in rows:
    torch.cuda.reset_peak_memory_stats()
    compiled(torch.randn(count, 256, device="cuda")).square().mean().backward()
    step()
    optimizer.zero_grad()
    peaks.append(torch.cuda.max_memory_allocated())

print(json.dumps({"peaks": peaks, "reserved": torch.cuda.max_memory_reserved()}))
