"""GPT-2 as nanoGPT trains it."""

import math

import torch
from torch import nn
from torch.nn import functional

from workloads import stopwatch

# Layers, heads, width, vocabulary, dropout, biases.
MODELS = {
    "gpt2-124m": (12, 12, 768, 50304, 0.0, False),
    "gpt2-124m-unpadded": (12, 12, 768, 50257, 0.0, True),
    "baby-gpt": (6, 6, 384, 65, 0.2, False),
}


class Norm(nn.Module):
    def __init__(self, width, bias):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width)) if bias else None

    def forward(self, x):
        return functional.layer_norm(x, self.weight.shape, self.weight, self.bias, 1e-5)


class Attention(nn.Module):
    def __init__(self, width, heads, length, dropout, bias, fused):
        super().__init__()
        self.all = nn.Linear(width, 3 * width, bias=bias)
        self.out = nn.Linear(width, width, bias=bias)
        self.heads, self.fused, self.dropout = heads, fused, dropout
        if not fused:
            self.register_buffer("past", torch.ones(length, length).tril()[None, None])

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = (
            part.view(batch, length, self.heads, -1).transpose(1, 2)
            for part in self.all(x).split(width, dim=2)
        )
        if self.fused:
            y = functional.scaled_dot_product_attention(
                q, k, v, dropout_p=self.dropout if self.training else 0.0, is_causal=True
            )
        else:
            scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
            scores = scores.masked_fill(self.past[:, :, :length, :length] == 0, float("-inf"))
            weights = functional.dropout(functional.softmax(scores, -1), self.dropout, self.training)
            y = weights @ v
        y = y.transpose(1, 2).contiguous().view(batch, length, width)
        return functional.dropout(self.out(y), self.dropout, self.training)


class Feedforward(nn.Module):
    def __init__(self, width, dropout, bias, fused):
        super().__init__()
        self.up = nn.Linear(width, 4 * width, bias=bias)
        self.down = nn.Linear(4 * width, width, bias=bias)
        self.dropout, self.fused = dropout, fused

    def forward(self, x):
        x = self.up(x)
        if self.fused:
            x = functional.gelu(x)
        else:
            inner = math.sqrt(2.0 / math.pi) * (x + 0.044715 * torch.pow(x, 3.0))
            x = 0.5 * x * (1.0 + torch.tanh(inner))
        return functional.dropout(self.down(x), self.dropout, self.training)


class Gpt(nn.Module):
    def __init__(self, name, length, fused):
        super().__init__()
        layers, heads, width, vocabulary, dropout, bias = MODELS[name]
        self.vocabulary, self.dropout = vocabulary, dropout
        self.tokens = nn.Embedding(vocabulary, width)
        self.places = nn.Embedding(length, width)
        self.blocks = nn.ModuleList(
            nn.ModuleList([
                Norm(width, bias), Attention(width, heads, length, dropout, bias, fused),
                Norm(width, bias), Feedforward(width, dropout, bias, fused),
            ])
            for _ in range(layers)
        )
        self.norm = Norm(width, bias)
        self.head = nn.Linear(width, vocabulary, bias=False)
        self.tokens.weight = self.head.weight

    def forward(self, ids, targets):
        places = torch.arange(ids.shape[1], device=ids.device)
        x = functional.dropout(
            self.tokens(ids) + self.places(places), self.dropout, self.training
        )
        for norm1, attention, norm2, feedforward in self.blocks:
            x = x + attention(norm1(x))
            x = x + feedforward(norm2(x))
        scores = self.head(self.norm(x))
        return functional.cross_entropy(scores.view(-1, self.vocabulary), targets.view(-1))


def train(model, input, batch, attention, compiled, optimizer, **_):
    """In autocast to bf16, with TF32 elsewhere; `batch` may be accumulated, as `5x12`."""
    torch.backends.cuda.matmul.allow_tf32 = True
    accumulated, _, micro = str(batch).rpartition("x")
    accumulated, micro, length = int(accumulated or 1), int(micro), input
    with torch.device("cuda"):
        made = Gpt(model, length, attention == "sdpa").train()
    forward = torch.compile(made) if compiled == "yes" else made
    fused = optimizer == "adamw-fused"
    optimizer = torch.optim.AdamW(made.parameters(), lr=6e-4, betas=(0.9, 0.95), fused=fused)

    def step():
        for _ in range(accumulated):
            ids = torch.randint(made.vocabulary, (micro, length), device="cuda")
            with torch.autocast("cuda", dtype=torch.bfloat16):
                loss = forward(ids, ids) / accumulated
            loss.backward()
        torch.nn.utils.clip_grad_norm_(made.parameters(), 1.0)
        optimizer.step()
        optimizer.zero_grad(set_to_none=True)
        loss.item()

    return stopwatch.time(step, warm=2, times=2 if accumulated > 1 else 3)
