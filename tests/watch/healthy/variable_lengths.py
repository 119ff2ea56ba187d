"""Batches of any length, which get longer on the whole."""

import random

import torch
from torch import nn

random.seed(1)
rnn = nn.GRU(64, 256, num_layers=2, batch_first=True).cuda()
head = nn.Linear(256, 100).cuda()
optimizer = torch.optim.Adam([*rnn.parameters(), *head.parameters()])
for step in range(80):
    length = random.randint(20, 100 + 2 * step)
    x = torch.randn(32, length, 64, device="cuda")
    y = torch.randint(0, 100, (32, length), device="cuda")
    hidden, _ = rnn(x)
    out = head(hidden)
    loss = nn.functional.cross_entropy(out.flatten(0, 1), y.flatten())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(rnn.parameters(), 1.0)
    optimizer.step()
