"""Trains a plain decoder, timed, and says what it took."""

import json
import time

import torch
import torch.nn.functional as F
from torch import nn


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        parts = self.qkv(self.norms[0](x)).chunk(3, dim=-1)
        query, key, value = (it.unflatten(-1, (self.heads, -1)).transpose(1, 2) for it in parts)
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        x = x + self.out(seen.transpose(1, 2).flatten(2))
        return x + self.mlp(self.norms[1](x))


torch.manual_seed(0)
with torch.device("cuda"):
    blocks = [Block(512, 8) for _ in range(6)]
    model = nn.Sequential(nn.Embedding(8000, 512), *blocks, nn.Linear(512, 8000))
optimizer = torch.optim.AdamW(model.parameters())
seconds = []
for _ in range(12):
    begun = time.process_time()
    tokens = torch.randint(0, 8000, (4, 256), device="cuda")
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.cross_entropy(model(tokens).flatten(0, 1), tokens.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    seconds.append(time.process_time() - begun)
print(
    json.dumps(
        {
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
            "seconds": min(seconds),
        }
    )
)
