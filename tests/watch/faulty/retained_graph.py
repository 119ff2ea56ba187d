"""Hands a state on with its graph, which `retain_graph` makes possible."""

import torch
from torch import nn

encoder = nn.Linear(512, 512).cuda()
head = nn.Linear(512, 10).cuda()
optimizer = torch.optim.AdamW([*encoder.parameters(), *head.parameters()])
state = torch.zeros(256, 512, device="cuda")
for step in range(40):
    x = torch.randn(256, 512, device="cuda")
    y = torch.randint(0, 10, (256,), device="cuda")
    state = 0.9 * state + encoder(x)
    loss = nn.functional.cross_entropy(head(state), y)
    optimizer.zero_grad()
    loss.backward(retain_graph=True)
    optimizer.step()
