"""Keeps features of each step on the GPU, without their graphs."""

import torch
from torch import nn

body = nn.Sequential(nn.Linear(256, 1024), nn.ReLU()).cuda()
head = nn.Linear(1024, 10).cuda()
optimizer = torch.optim.AdamW([*body.parameters(), *head.parameters()])
bank = []
for step in range(50):
    x = torch.randn(256, 256, device="cuda")
    y = torch.randint(0, 10, (256,), device="cuda")
    features = body(x)
    loss = nn.functional.cross_entropy(head(features), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    bank.append(features.detach())
