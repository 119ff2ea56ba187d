"""Fills a buffer of transitions on the GPU, which is full after a while."""

import collections

import torch
from torch import nn

policy = nn.Sequential(nn.Linear(64, 512), nn.ReLU(), nn.Linear(512, 8)).cuda()
optimizer = torch.optim.Adam(policy.parameters())
buffer: collections.deque[torch.Tensor] = collections.deque(maxlen=30)
for step in range(80):
    buffer.append(torch.randn(1024, 64, device="cuda"))
    states = torch.stack([buffer[step % len(buffer)], buffer[-1]]).flatten(0, 1)
    loss = policy(states).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
