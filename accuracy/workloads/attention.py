"""Attention by its formula, softmax(Q Kᵀ / √d) V, of a single head without a mask, in fp32.

Five answers to one exercise, which differ in how softmax is written and in what is alive when
memory is read.
"""

import math

import torch
from torch import einsum

BATCH = 8


def by_hand(scores):
    """Softmax with the maximum taken off, from elementwise operations."""
    shifted = scores - torch.max(scores, dim=-1, keepdim=True)[0]
    powers = torch.exp(shifted)
    return powers / torch.sum(powers, dim=-1, keepdim=True)


def attention(softmax):
    def forward(q, k, v):
        scores = einsum("bqd,bkd->bqk", q, k) / math.sqrt(q.shape[-1])
        return einsum("bqk,bkd->bqd", softmax(scores), v)

    return forward


SOFTMAX = {"by hand": by_hand, "torch": lambda scores: torch.softmax(scores, dim=-1)}


def inputs(length, width, requires_grad=True):
    shape = (BATCH, length, width)
    return [torch.randn(shape, device="cuda", requires_grad=requires_grad) for _ in range(3)]


def forward_peak(length, width, softmax):
    """The peak of the forward pass and what its graph holds, in the midst of training."""
    forward = attention(SOFTMAX[softmax])
    with torch.no_grad():
        forward(*inputs(length, width, requires_grad=False))
    tensors = inputs(length, width)
    for step in range(8):
        if step >= 5:
            for tensor in tensors:
                tensor.grad.zero_()
            torch.cuda.reset_peak_memory_stats()
            base = torch.cuda.memory_allocated()
        output = forward(*tensors)
        output = output.sum()
        if step >= 5:
            figures = {
                "allocated peak": torch.cuda.max_memory_allocated(),
                "allocated by the graph": torch.cuda.memory_allocated() - base,
            }
        output.backward()
    return figures


def retained(length, width, softmax):
    """Memory after forward passes alone, then the peak of repeated backward passes."""
    def forward(q, k, v):
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(q.shape[-1])
        weights = SOFTMAX[softmax](scores)
        return torch.matmul(weights, v), weights

    tensors = inputs(length, width)
    for _ in range(2):
        output, _ = forward(*tensors)
        loss = output.sum()
        loss.backward()
        for tensor in tensors:
            tensor.grad = None
    torch.cuda.reset_peak_memory_stats()
    for _ in range(3):
        output, _ = forward(*tensors)
    before = torch.cuda.memory_allocated()
    output, _ = forward(*tensors)
    loss = output.sum()
    for _ in range(3):
        loss.backward(retain_graph=True)
    return {"allocated": before, "allocated peak": torch.cuda.max_memory_allocated()}


def after_forward(length, width, softmax):
    """Memory after a forward pass, beside the output's gradient and the output of a step before."""
    forward = attention(SOFTMAX[softmax])
    tensors = inputs(length, width)
    gradient = torch.randn_like(tensors[0])
    for _ in range(2):
        before = forward(*tensors)
        before.backward(gradient)
    for tensor in tensors:
        tensor.grad = None
    output = forward(*tensors)
    allocated = torch.cuda.memory_allocated()
    del before, output
    return {"allocated": allocated}


def after_forwards(length, width, softmax):
    """Memory after several forward passes, each output alive until the next takes its name."""
    forward = attention(SOFTMAX[softmax])
    tensors = inputs(length, width)
    for _ in range(2):
        output = forward(*tensors)
        loss = output.sum()
        loss.backward()
    for tensor in tensors:
        tensor.grad = None
    for _ in range(3):
        output = forward(*tensors)
    allocated = torch.cuda.memory_allocated()
    del loss, output
    return {"allocated": allocated}


def copied(length, width, softmax):
    """The inputs are copies of tensors on the CPU, where their gradients go."""
    forward = attention(SOFTMAX[softmax])
    tensors = [
        torch.randn(BATCH, length, width, requires_grad=True).cuda() for _ in range(3)
    ]
    for _ in range(3):
        output = forward(*tensors)
        before = torch.cuda.memory_allocated()
        output.sum().backward()
    return {"allocated": before}
