"""Triton kernels of Liger beside PyTorch's own: peaks of cross entropy in bytes, as JSON."""

import json

import torch
from liger_kernel.transformers import LigerCrossEntropyLoss, LigerFusedLinearCrossEntropyLoss, LigerRMSNorm
from torch import nn

TOKENS, WIDTH, WORDS = 2048, 1024, 32000
classes = torch.randint(0, WORDS, (TOKENS,), device="cuda")


def peak(run):
    run()  # what is compiled and kept is there from now on
    torch.cuda.synchronize()
    before = torch.cuda.memory_allocated()
    torch.cuda.reset_peak_memory_stats()
    run()
    return torch.cuda.max_memory_allocated() - before


def of_logits(loss):
    logits = torch.randn(TOKENS, WORDS, device="cuda", requires_grad=True)

    def run():
        logits.grad = None
        loss(logits, classes).backward()

    return peak(run)


def of_states(loss):
    states = torch.randn(TOKENS, WIDTH, device="cuda", requires_grad=True)
    head = nn.Linear(WIDTH, WORDS, bias=False).cuda()

    def run():
        states.grad = head.weight.grad = None
        loss(head, states).backward()

    return peak(run)


fused = LigerFusedLinearCrossEntropyLoss()
answer = {
    "logits": 4 * TOKENS * WORDS,
    "liger": of_logits(LigerCrossEntropyLoss()),
    "pytorch": of_logits(nn.functional.cross_entropy),
    "fused": of_states(lambda head, states: fused(head.weight, states, classes)),
    "unfused": of_states(lambda head, states: nn.functional.cross_entropy(head(states), classes)),
}
norm = LigerRMSNorm(WIDTH).cuda()
norm(torch.randn(TOKENS, WIDTH, device="cuda", requires_grad=True)).sum().backward()
print(json.dumps(answer))
