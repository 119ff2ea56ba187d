"""Fine-tuning language models with low-rank adapters on queries and values, as Lit-GPT does it.

Weights are bf16.
"""

from dataclasses import dataclass

import torch
from torch import nn
from torch.nn import functional

RANK, SCALE, DROPOUT = 8, 2.0, 0.05


@dataclass(frozen=True)
class Shape:
    """What tells one model from another."""

    layers: int
    width: int
    heads: int
    inner: int
    vocabulary: int
    rotary: float
    parallel: bool
    shared_norm: bool
    biases: bool
    head_bias: bool


SHAPES = {
    "phi-1.5": Shape(24, 2048, 32, 8192, 51200, 0.5, True, True, True, True),
    "stablelm-3b": Shape(16, 4096, 32, 16384, 50688, 0.25, True, False, True, False),
    "llama2-7b": Shape(32, 4096, 32, 11008, 32000, 1.0, False, False, False, False),
}


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        dtype = x.dtype
        x = x.float()
        squares = torch.mean(x * x, dim=-1, keepdim=True)
        x = x * torch.rsqrt(squares + 1e-5)
        return (self.weight * x).to(dtype=dtype)


class AdaptedQkv(nn.Module):
    """One product for queries, keys and values; the adapter adds to the first and the last."""

    def __init__(self, shape):
        super().__init__()
        width = shape.width
        self.linear = nn.Linear(width, 3 * width, bias=shape.biases)
        self.a = nn.Parameter(torch.empty(2 * RANK, width))
        self.b = nn.Parameter(torch.empty(2 * width, RANK))
        self.dropout = nn.Dropout(DROPOUT)
        size = width // shape.heads
        places = torch.arange(3 * width, device="cpu").view(shape.heads, 3, size)[:, [0, 2]]
        self.places = places.reshape(-1).tolist()

    def forward(self, x):
        plain = self.linear(x)
        after_a = functional.linear(self.dropout(x), self.a)
        after_b = functional.conv1d(
            after_a.transpose(-2, -1), self.b.unsqueeze(-1), groups=2
        ).transpose(-2, -1)
        return plain + self.padded(after_b) * SCALE

    def padded(self, x):
        x = x.transpose(0, 1)
        result = x.new_zeros((*x.shape[:-1], self.linear.out_features))
        result = result.view(-1, self.linear.out_features)
        places = torch.tensor(self.places, device=result.device)
        result = result.index_copy(1, places, x.reshape(-1, len(self.places)))
        return result.view((*x.shape[:-1], self.linear.out_features)).transpose(0, 1)


def rotated(x, cos, sin):
    half = x.size(-1) // 2
    turned = torch.cat((-x[..., half:], x[..., :half]), dim=-1)
    return ((x * cos) + (turned * sin)).type_as(x)


class Attention(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.heads, self.size = shape.heads, shape.width // shape.heads
        self.rotary = int(shape.rotary * self.size)
        self.qkv = AdaptedQkv(shape)
        self.out = nn.Linear(shape.width, shape.width, bias=shape.biases)

    def forward(self, x, cos, sin):
        batch, length, width = x.size()
        qkv = self.qkv(x)
        qkv = qkv.view(batch, length, self.heads, 3, self.size).permute(0, 2, 3, 1, 4)
        q, k, v = qkv.split((1, 1, 1), dim=2)
        q, k, v = (part.reshape(batch, -1, length, self.size) for part in (q, k, v))
        q_turned = rotated(q[..., : self.rotary], cos, sin)
        k_turned = rotated(k[..., : self.rotary], cos, sin)
        q = torch.cat((q_turned, q[..., self.rotary :]), dim=-1)
        k = torch.cat((k_turned, k[..., self.rotary :]), dim=-1)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        y = y.transpose(1, 2).reshape(batch, length, width)
        return self.out(y)


class PlainMlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.up = nn.Linear(shape.width, shape.inner)
        self.down = nn.Linear(shape.inner, shape.width)

    def forward(self, x):
        x = self.up(x)
        x = functional.gelu(x)
        return self.down(x)


class GatedMlp(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.gate = nn.Linear(shape.width, shape.inner, bias=False)
        self.up = nn.Linear(shape.width, shape.inner, bias=False)
        self.down = nn.Linear(shape.inner, shape.width, bias=False)

    def forward(self, x):
        gate, up = self.gate(x), self.up(x)
        return self.down(functional.silu(gate) * up)


class Block(nn.Module):
    def __init__(self, shape):
        super().__init__()
        norm = nn.LayerNorm if shape.biases else RmsNorm
        self.parallel = shape.parallel
        self.norm1 = norm(shape.width)
        self.norm2 = None if shape.shared_norm else norm(shape.width)
        self.attention = Attention(shape)
        self.mlp = PlainMlp(shape) if shape.biases else GatedMlp(shape)

    def forward(self, x, cos, sin):
        first = self.norm1(x)
        attended = self.attention(first, cos, sin)
        if self.parallel:
            second = first if self.norm2 is None else self.norm2(x)
            return self.mlp(second) + attended + x
        x = attended + x
        return self.mlp(self.norm2(x)) + x


class Model(nn.Module):
    def __init__(self, shape):
        super().__init__()
        self.embedding = nn.Embedding(shape.vocabulary, shape.width)
        self.blocks = nn.ModuleList(Block(shape) for _ in range(shape.layers))
        self.norm = nn.LayerNorm(shape.width) if shape.biases else RmsNorm(shape.width)
        self.head = nn.Linear(shape.width, shape.vocabulary, bias=shape.head_bias)

    def forward(self, ids, cos, sin):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x, cos, sin)
        x = self.norm(x)
        # In chunks, which Fabric casts to fp32 on their way out.
        chunks = [self.head(part) for part in x.split(128, dim=1)]
        return [chunk.float() for chunk in chunks]


def loss_of(chunks, targets):
    targets = targets.split(chunks[0].size(1), dim=1)
    losses = [
        functional.cross_entropy(
            chunk.reshape(-1, chunk.size(-1)), target.reshape(-1), ignore_index=-1, reduction="none"
        )
        for chunk, target in zip(chunks, targets)
    ]
    return torch.cat(losses).sum() / max(1, sum(target.numel() for target in targets))


def lora(model, batch, length):
    """The first step, with the longest sequence, and the optimizer's step after others."""
    shape = SHAPES[model]
    with torch.device("meta"):
        net = Model(shape).to(torch.bfloat16)
    net.to_empty(device="cuda")
    net.train()
    for name, parameter in net.named_parameters():
        parameter.requires_grad = name.endswith((".qkv.a", ".qkv.b"))
    optimizer = torch.optim.AdamW([p for p in net.parameters() if p.requires_grad], lr=3e-4)
    turned = int(shape.rotary * shape.width // shape.heads)
    cos, sin = (torch.zeros(length, turned, device="cuda") for _ in range(2))
    peak = 0
    for _ in range(2):
        ids = torch.zeros(batch, length, dtype=torch.long).cuda()
        targets = torch.zeros(batch, length, dtype=torch.long).cuda()
        logits = net(ids, cos, sin)
        logits[-1] = logits[-1][..., :-1, :]
        loss = loss_of(logits, targets[..., 1:])
        (loss / 32).backward()
        # Later sequences are shorter, so the first step has the peak.
        peak = peak or torch.cuda.max_memory_allocated()
    optimizer.step()
    return {"allocated peak": peak}
