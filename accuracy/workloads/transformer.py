"""A language model of the CS336 course, from plain operations, trained with the course's AdamW."""

import math

import torch
from torch import einsum, nn


class Linear(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))

    def forward(self, x):
        return einsum("bsd,od->bso", x, self.weight)


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        dtype = x.dtype
        x = x.to(torch.float32)
        scale = torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5)
        x = x * scale
        return (self.weight * x).to(dtype)


def rotated(x, table):
    pairs = x.unflatten(-1, (-1, 2))
    x1, x2 = pairs.movedim(-1, 0).unbind(0)
    cos, sin = table[:, : x.size(-2), :].unbind(0)
    turned1 = cos * x1 - sin * x2
    turned2 = sin * x1 + cos * x2
    return torch.concat((turned1, turned2), dim=-1)


def softmax(x):
    shifted = x - torch.max(x, dim=-1, keepdim=True)[0]
    powers = torch.exp(shifted)
    return powers / torch.sum(powers, dim=-1, keepdim=True)


def attention(q, k, v, mask):
    scores = einsum("bhqd,bhkd->bhqk", q, k) / math.sqrt(k.shape[-1])
    scores = torch.where(mask, scores, float("-inf"))
    weights = softmax(scores)
    return einsum("bhqk,bhkd->bhqd", weights, v)


class SelfAttention(nn.Module):
    def __init__(self, width, heads, table):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (Linear(width, width) for _ in range(4))
        self.table = table

    def split(self, x):
        return x.unflatten(-1, (self.heads, -1)).transpose(1, 2)

    def forward(self, x):
        q, k, v = self.q(x), self.k(x), self.v(x)
        q, k, v = self.split(q), self.split(k), self.split(v)
        q, k = rotated(q, self.table()), rotated(k, self.table())
        places = torch.arange(x.size(1), device=x.device)
        mask = places[:, None] >= places[None, :]
        output = attention(q, k, v, mask[None, None])
        output = output.transpose(1, 2).flatten(2).contiguous()
        return self.out(output)


class SwiGlu(nn.Module):
    def __init__(self, width, inner):
        super().__init__()
        self.w1, self.w2, self.w3 = Linear(width, inner), Linear(inner, width), Linear(width, inner)

    def forward(self, x):
        return self.w2(silu(self.w1(x)) * self.w3(x))


def silu(x):
    return x * torch.sigmoid(x)


class Block(nn.Module):
    def __init__(self, width, heads, inner, table):
        super().__init__()
        self.attention = SelfAttention(width, heads, table)
        self.ffn = SwiGlu(width, inner)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)

    def forward(self, x):
        attended = self.attention(self.norm1(x))
        x = x + attended
        fed = self.ffn(self.norm2(x))
        return x + fed


class Model(nn.Module):
    def __init__(self, vocabulary, length, width, layers, heads, inner):
        super().__init__()
        self.embedding = nn.Parameter(torch.empty(vocabulary, width))
        half = width // heads // 2
        self.register_buffer("table", torch.zeros(2, length, half), persistent=False)
        self.layers = nn.ModuleList(
            Block(width, heads, inner, lambda: self.table) for _ in range(layers)
        )
        self.norm = RmsNorm(width)
        self.head = Linear(width, vocabulary)

    def forward(self, ids):
        # The embedded tokens keep their name, and so stay while nothing else holds them.
        embedded = self.embedding[ids, :]
        x = embedded
        for layer in self.layers:
            x = layer(x)
        x = self.norm(x)
        return self.head(x)


def log_softmax(x):
    highest = torch.max(x, dim=-1, keepdim=True)[0]
    x = x - highest
    return x - torch.log(torch.sum(torch.exp(x), dim=-1, keepdim=True))


def cross_entropy(logits, targets):
    negative = -log_softmax(logits)
    return torch.mean(torch.gather(negative, -1, targets.unsqueeze(-1)))


class AdamW(torch.optim.Optimizer):
    """One parameter after the other; the old moments live until the new ones take their place."""

    def __init__(self, parameters):
        values = {"lr": 1e-3, "betas": (0.9, 0.999), "eps": 1e-8, "decay": 0.01}
        super().__init__(parameters, values)

    def step(self):
        for group in self.param_groups:
            beta1, beta2 = group["betas"]
            for p in group["params"]:
                if p.grad is None:
                    continue
                state = self.state[p]
                t = state.get("t", 1)
                m = state.get("m", torch.zeros_like(p.data))
                v = state.get("v", torch.zeros_like(p.data))
                p.data -= group["lr"] * group["decay"] * p.data
                m_next = beta1 * m + (1 - beta1) * p.grad.data
                v_next = beta2 * v + (1 - beta2) * torch.square(p.grad.data)
                rate = group["lr"] * math.sqrt(1 - beta2**t) / (1 - beta1**t)
                p.data -= rate * m_next / (torch.sqrt(v_next) + group["eps"])
                state["t"], state["m"], state["v"] = t + 1, m_next, v_next


SIZES = {"medium": (1024, 24, 16, 4096), "small": (768, 12, 12, 3072)}


def build(size, vocabulary, length):
    width, layers, heads, inner = SIZES[size]
    with torch.device("meta"):
        model = Model(vocabulary, length, width, layers, heads, inner)
    return model.to_empty(device="cuda")


def figures():
    stats = torch.cuda.memory_stats()
    return {
        "requested peak": stats["requested_bytes.all.peak"],
        "reserved peak": stats["reserved_bytes.all.peak"],
    }


def tokens(vocabulary, *shape):
    return torch.randint(0, vocabulary, shape, dtype=torch.long, device="cuda")


def train(size, vocabulary, batch, length, autocast, zeroed=True):
    """The sixth training step."""
    model = build(size, vocabulary, length)
    optimizer = AdamW(model.parameters())
    inputs, last = tokens(vocabulary, 5, batch, length), tokens(vocabulary, 1, batch, length)
    targets, wanted = tokens(vocabulary, 5, batch, length), tokens(vocabulary, 1, batch, length)

    def loss_of(ids, target):
        with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
            output = model(ids)
            return output, cross_entropy(output, target)

    for step in range(5):
        output, loss = loss_of(inputs[step], targets[step])
        loss.backward()
        optimizer.step()
        if zeroed:
            optimizer.zero_grad()
    del output, loss
    torch.cuda.reset_peak_memory_stats()
    output, loss = loss_of(last[0], wanted[0])
    loss.backward()
    optimizer.step()
    return figures()


@torch.inference_mode()
def infer(size, vocabulary, batch, length, autocast):
    """The sixth forward pass, without a graph."""
    model = build(size, vocabulary, length)
    optimizer = AdamW(model.parameters())
    inputs, last = tokens(vocabulary, 5, batch, length), tokens(vocabulary, 1, batch, length)
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        for step in range(5):
            model(inputs[step])
    torch.cuda.reset_peak_memory_stats()
    with torch.autocast("cuda", torch.bfloat16, enabled=autocast):
        model(last[0])
    del optimizer
    return figures()
