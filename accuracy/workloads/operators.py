"""Single operators forward and backward, as Liger-Kernel measures them in plain PyTorch."""

import torch
from torch import nn
from torch.nn import functional

from workloads.measure import by_mode, peak_of

TYPES = {"bf16": torch.bfloat16, "fp32": torch.float32}


def leaf(*shape, dtype="fp32"):
    return torch.randn(*shape, device="cuda", dtype=TYPES[dtype], requires_grad=True)


def cross_entropy(rows, vocabulary):
    logits = leaf(rows, vocabulary)
    target = torch.randint(vocabulary, (rows, 1), device="cuda").squeeze(1)
    return peak_of(lambda: functional.cross_entropy(logits, target).backward())


def embedding(batch, length, width, vocabulary):
    """Two tables, of which one is used: the source makes one of each implementation."""
    table = nn.Embedding(vocabulary, width).cuda()
    other = nn.Embedding(vocabulary, width).cuda()
    ids = torch.randint(0, vocabulary, (batch, length), device="cuda")

    def step():
        output = table(ids)
        output.backward(torch.randn_like(output))

    figures = peak_of(step)
    del other
    return figures


class GatedMlp(nn.Module):
    """down(gelu(gate(x)) · up(x)), without biases."""

    def __init__(self, width, inner):
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.down = nn.Linear(inner, width, bias=False)

    def forward(self, x):
        return self.down(functional.gelu(self.gate(x), approximate="tanh") * self.up(x))


def gated_mlp(batch, length, width, inner, mode):
    x = leaf(batch, length, width, dtype="bf16")
    with torch.device("cuda"):
        layer = GatedMlp(width, inner).to(torch.bfloat16)
    return by_mode(lambda: layer(x), mode, [x, *layer.parameters()])


def rotate_half(x):
    half = x.shape[-1] // 2
    return torch.cat((-x[..., half:], x[..., :half]), dim=-1)


def frequencies(length, width):
    """The angles of rotary embedding, by the matrix product that transformers uses."""
    powers = torch.arange(0, width, 2, dtype=torch.int64).float() / width
    inverse = (1.0 / (10_000.0**powers)).cuda()
    positions = torch.arange(length, device="cuda", dtype=torch.long).unsqueeze(0)
    angles = inverse[None, :, None].float() @ positions[:, None, :].float()
    return inverse, positions, angles.transpose(1, 2)


def heads_of(length, queries, keys, width):
    q = leaf(1, length, queries, width, dtype="bf16")
    k = leaf(1, length, keys, width, dtype="bf16")
    return q, k


def rotary(length, hidden, queries, keys):
    """Rotary embedding of queries and keys, gradients by `autograd.grad`."""
    width = hidden // queries
    inverse, positions, angles = frequencies(length, width)
    q, k = (x.transpose(1, 2) for x in heads_of(length, queries, keys, width))
    gradients = torch.randn_like(q), torch.randn_like(k)
    both = torch.cat((angles, angles), dim=-1)
    cos, sin = both.cos().to(q.dtype), both.sin().to(q.dtype)
    del angles, both

    def step():
        c, s = cos.unsqueeze(1), sin.unsqueeze(1)
        outputs = (q * c) + (rotate_half(q) * s), (k * c) + (rotate_half(k) * s)
        torch.autograd.grad(outputs, (q, k), gradients, retain_graph=True)

    figures = peak_of(step, rest=0.01)
    del inverse, positions
    return figures


def complex_rotary(length, hidden, queries, keys):
    """The same with complex numbers, as Llama 4 does it."""
    width = hidden // queries
    inverse, positions, angles = frequencies(length, width)
    q, k = heads_of(length, queries, keys, width)
    gradients = torch.randn_like(q), torch.randn_like(k)
    turns = torch.polar(torch.ones_like(angles), angles)
    turns = turns * 1.0
    del angles

    def forward():
        q_numbers = torch.view_as_complex(q.float().reshape(*q.shape[:-1], -1, 2))
        k_numbers = torch.view_as_complex(k.float().reshape(*k.shape[:-1], -1, 2))
        q_out = torch.view_as_real(q_numbers * turns[:, :, None, :]).flatten(3)
        k_out = torch.view_as_real(k_numbers * turns[:, :, None, :]).flatten(3)
        return q_out.type_as(q), k_out.type_as(k)

    def step():
        outputs = forward()
        torch.autograd.grad(outputs, (q, k), gradients, retain_graph=True)

    figures = peak_of(step, rest=0.01)
    del inverse, positions
    return figures


def sparsemax_of(x):
    ordered, _ = torch.sort(x, dim=-1, descending=True)
    sums = torch.cumsum(ordered, dim=-1)
    ranks = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
    ranks = ranks.view([1] * (x.dim() - 1) + [x.shape[-1]])
    bound = 1 + ranks * ordered
    support = bound > sums
    size = support.sum(dim=-1, keepdim=True).clamp(min=1)
    total = (ordered * support).sum(dim=-1, keepdim=True)
    threshold = (total - 1) / size
    return torch.clamp(x - threshold, min=0)


def sparsemax(rows, vocabulary):
    x = torch.randn(rows, vocabulary, device="cuda")
    gradient = torch.randn_like(x)
    x.requires_grad_()
    return peak_of(lambda: sparsemax_of(x).backward(gradient, retain_graph=True))


def softmax(length, dtype):
    """Of a vector: the source's measurement of memory leaves out its other dimension."""
    x = leaf(length, dtype=dtype)

    def step():
        output = torch.softmax(x, dim=-1)
        output.backward(torch.ones_like(output), retain_graph=True)

    return peak_of(step)


def relu_squared(length):
    x = leaf(length, dtype="bf16")

    def step():
        rectified = functional.relu(x)
        output = torch.square(rectified)
        del rectified
        output.backward(torch.ones_like(output), retain_graph=True)

    return peak_of(step)


def convolved(maps, weight, bias, padding):
    return functional.conv2d(maps, weight, bias, stride=1, padding=padding)


def multi_token(length, dtype, sparse):
    """A convolution over attention's weights of 2 × 4 heads, 3 × 3, under a causal mask."""
    batch, channels, kernel = 2, 4, 3
    kind = {"device": "cuda", "dtype": TYPES[dtype]}
    other = torch.empty(channels, channels, kernel, kernel, **kind), torch.empty(channels, **kind)
    weight = nn.Parameter(torch.empty(channels, channels, kernel, kernel, **kind))
    bias = nn.Parameter(torch.empty(channels, **kind))
    x = torch.randn(batch, channels, length, length, **kind)
    gradient = torch.randn_like(x)
    x.requires_grad_()

    def forward():
        mask = torch.tril(torch.ones(length, length, dtype=torch.bool, device="cuda"))
        mask = mask.view(1, 1, length, length)
        low = torch.tensor(-1e9, **kind)
        zero = torch.tensor(0.0, **kind)
        masked = x.masked_fill(~mask, low)
        weights = sparse_weights(masked) if sparse else torch.softmax(masked, dim=-1)
        output = convolved(weights, weight, bias, kernel // 2)
        return output.masked_fill(~mask, zero)

    def step():
        output = forward()
        output.backward(gradient, retain_graph=True)

    figures = peak_of(step)
    del other
    return figures


def sparse_weights(z):
    """Sparsemax that knows masked places."""
    length = z.shape[-1]
    ordered, _ = torch.sort(z, dim=-1, descending=True)
    sums = torch.cumsum(ordered, dim=-1)
    ranks = torch.arange(1, length + 1, device=z.device, dtype=z.dtype).view(1, 1, 1, length)
    positive = ordered > -1e8
    condition = (1 + ranks * ordered > sums) & positive
    size = torch.sum(condition, dim=-1, keepdim=True)
    safe = torch.max(size, torch.ones_like(size))
    chosen = torch.gather(sums, dim=-1, index=safe.long() - 1)
    threshold = (chosen - 1) / safe.to(z.dtype)
    threshold = torch.where(size == 0, torch.full_like(threshold, float("inf")), threshold)
    return torch.clamp(z - threshold, min=0)


class NeighborhoodAttention(nn.Module):
    """Attention under a mask of neighbours, by its formula."""

    def __init__(self, hidden, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.out = (nn.Linear(hidden, hidden) for _ in range(4))

    def forward(self, x):
        batch, length, hidden = x.shape
        q, k, v = self.q(x), self.k(x), self.v(x)
        width = hidden // self.heads
        q = q.view(batch, length, self.heads, width).transpose(1, 2)
        k = k.view(batch, length, self.heads, width).transpose(1, 2)
        v = v.view(batch, length, self.heads, width).transpose(1, 2)
        scores = torch.matmul(q, k.transpose(-2, -1)) * width**-0.5
        # The source fills the mask's band with loops, which allocate nothing.
        mask = torch.zeros(length, length, device="cuda", dtype=torch.bool)
        scores = scores.masked_fill(~mask, float("-inf"))
        weights = torch.softmax(scores, dim=-1)
        output = torch.matmul(weights, v)
        output = output.transpose(1, 2).contiguous().view(batch, length, hidden)
        return self.out(output)


def neighborhood(batch, length, hidden, heads):
    """Two layers, of which one is used: the source makes one of each implementation."""
    with torch.device("cuda"):
        other = NeighborhoodAttention(hidden, heads)
        layer = NeighborhoodAttention(hidden, heads)
    x = leaf(batch, length, hidden)
    gradient = torch.randn_like(x)

    def step():
        output = layer(x)
        output.backward(gradient, retain_graph=True)

    figures = peak_of(step)
    del other
    return figures


def total_variation(rows, vocabulary):
    p = leaf(rows, vocabulary).softmax(dim=-1)
    q = torch.randn(rows, vocabulary, device="cuda").softmax(dim=-1)

    def step():
        distance = torch.abs(p - q) / 2.0
        loss = torch.sum(distance) / p.size(0)
        del distance
        loss.backward(retain_graph=True)

    return peak_of(step)


class AddRmsNorm(nn.Module):
    """RMS norm of a sum, in fp32."""

    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, x, residual):
        dtype = x.dtype
        x = x.to(torch.float32)
        residual = residual.to(torch.float32)
        x = x + residual
        residual = x
        variance = x.pow(2).mean(-1, keepdim=True)
        x = x * torch.rsqrt(variance + 1e-6)
        return self.weight * x.to(dtype), residual.to(dtype)


def add_rms_norm(rows, hidden):
    """Three layers, of which one is used, and of which one has two weights: the source makes one
    of each implementation.
    """
    layers = [AddRmsNorm(hidden).cuda() for _ in range(4)]
    x, r = (torch.randn(rows, hidden, device="cuda") for _ in range(2))
    gradients = torch.randn_like(x), torch.randn_like(r)
    x.requires_grad_()
    r.requires_grad_()

    def step():
        outputs = layers[1](x, r)
        torch.autograd.backward(outputs, gradients)

    return peak_of(step)


def rms_norm(rows, hidden):
    with torch.device("cuda"):
        layer = nn.RMSNorm(hidden, eps=1e-6).to(torch.bfloat16)
    x = leaf(rows, 1, hidden, dtype="bf16")

    def step():
        output = layer(x)
        output.sum().backward()

    return peak_of(step)


def swiglu(rows, inner):
    x = leaf(2048, rows // 2048, 2 * inner, dtype="bf16")

    def step():
        x.grad = None
        gate, up = torch.chunk(x, 2, -1)
        output = functional.silu(gate) * up
        output.sum().backward()

    return peak_of(step)
