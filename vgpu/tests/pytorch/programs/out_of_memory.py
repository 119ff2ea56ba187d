"""Runs out of memory on a card of 4 GB: twice caught at one line, then in the backward pass, which ends it."""

import torch
from torch import nn

model = nn.Linear(4096, 4096, device="cuda")


def attempt(samples):
    return model(torch.empty(samples, 4096, device="cuda"))


for _ in range(2):
    try:
        attempt(150_000)
    except torch.OutOfMemoryError as error:
        print(error)
torch.cuda.empty_cache()
torch.cuda.reset_peak_memory_stats()
x = torch.empty(350_000_000, device="cuda", requires_grad=True)
loss = x.exp().sum()
loss.backward()
