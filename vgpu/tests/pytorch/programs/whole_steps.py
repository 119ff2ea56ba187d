"""Trains a model for two steps: whole_steps.py resnet50|vit|gpt2|llama|lstm|compiled"""

import sys

import torch
import torch.nn.functional as F
from torch import nn

DEVICE = "cuda"


class Attention(nn.Module):
    """Of grouped heads, with rotated places."""

    def __init__(self, width, heads, groups):
        super().__init__()
        self.heads, self.groups, self.size = heads, groups, width // heads
        self.query = nn.Linear(width, width, bias=False)
        self.key_value = nn.Linear(width, 2 * groups * self.size, bias=False)
        self.out = nn.Linear(width, width, bias=False)

    def rotate(self, x):
        length = x.shape[-2]
        angles = torch.arange(length, device=x.device)[:, None] / 10000 ** (
            torch.arange(0, self.size, 2, device=x.device) / self.size
        )
        cosines, sines = (torch.cat([it, it], -1).to(x.dtype) for it in (angles.cos(), angles.sin()))
        left, right = x.chunk(2, -1)
        return x * cosines + torch.cat([-right, left], -1) * sines

    def forward(self, x):
        query = self.query(x).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        parts = self.key_value(x).chunk(2, -1)
        key, value = (it.unflatten(-1, (self.groups, -1)).transpose(1, 2) for it in parts)
        query, key = self.rotate(query), self.rotate(key)
        key, value = (it.repeat_interleave(self.heads // self.groups, 1) for it in (key, value))
        seen = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        return self.out(seen.transpose(1, 2).flatten(2))


class LlamaBlock(nn.Module):
    def __init__(self, width, heads, groups):
        super().__init__()
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.attention = Attention(width, heads, groups)
        self.gate, self.up = (nn.Linear(width, 3 * width, bias=False) for _ in range(2))
        self.down = nn.Linear(3 * width, width, bias=False)

    def forward(self, x):
        x = x + self.attention(self.norms[0](x))
        y = self.norms[1](x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(5000, 256)
        self.lstm = nn.LSTM(256, 512, 2, batch_first=True, dropout=0.1)
        self.head = nn.Linear(512, 5000)

    def forward(self, tokens):
        return self.head(self.lstm(self.embedding(tokens))[0])


def tokens(classes, *shape):
    return torch.randint(0, classes, shape, device=DEVICE)


def train(model, optimizer, dtype, inputs, targets):
    scaler = torch.amp.GradScaler(enabled=dtype == torch.float16)
    for _ in range(2):
        with torch.autocast(DEVICE, dtype, enabled=dtype != torch.float32):
            loss = F.cross_entropy(model(inputs).flatten(0, -2), targets.flatten())
        optimizer.zero_grad()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()


def images(model, optimizer):
    x = torch.empty(8, 3, 224, 224, device=DEVICE).to(memory_format=torch.channels_last)
    train(model, optimizer, torch.float16, x, tokens(1000, 8))


name = sys.argv[1]
if name == "resnet50":
    import torchvision

    model = torchvision.models.resnet50().to(DEVICE, memory_format=torch.channels_last)
    images(model, torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=1e-4))
elif name == "vit":
    import torchvision

    model = torchvision.models.vit_b_16().to(DEVICE)
    images(model, torch.optim.AdamW(model.parameters(), fused=True))
elif name == "gpt2":
    from plain_gpt2 import Decoder

    model = Decoder(layers=4).to(DEVICE)
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(2):
        with torch.autocast(DEVICE, torch.bfloat16):
            loss = model(tokens(50257, 2, 512))
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
elif name == "llama":
    blocks = [LlamaBlock(768, 12, 4) for _ in range(4)]
    layers = [nn.Embedding(32000, 768), *blocks, nn.RMSNorm(768), nn.Linear(768, 32000, bias=False)]
    model = nn.Sequential(*layers).to(DEVICE, torch.bfloat16)
    x = tokens(32000, 2, 512)
    train(model, torch.optim.AdamW(model.parameters()), torch.float32, x, x)
elif name == "lstm":
    model = Recurrent().to(DEVICE)
    x = tokens(5000, 16, 64)
    train(model, torch.optim.Adam(model.parameters()), torch.float32, x, x)
elif name == "compiled":
    layers = [nn.Linear(256, 1024), nn.GELU(), nn.LayerNorm(1024), nn.Linear(1024, 256)]
    model = torch.compile(nn.Sequential(*layers).to(DEVICE))
    x = torch.empty(8192, 256, device=DEVICE)
    train(model, torch.optim.AdamW(model.parameters()), torch.bfloat16, x, tokens(256, 8192))
