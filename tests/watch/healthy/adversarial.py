"""Trains, then looks for adversarial examples: in evaluation mode, with graphs that are used."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(784, 1024), nn.ReLU(), nn.Linear(1024, 10))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(20):
    x = torch.randn(256, 784, device="cuda")
    y = torch.randint(0, 10, (256,), device="cuda")
    loss = nn.functional.cross_entropy(model(x), y)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
model.eval()
for step in range(20):
    x = torch.randn(256, 784, device="cuda", requires_grad=True)
    y = torch.randint(0, 10, (256,), device="cuda")
    (slope,) = torch.autograd.grad(nn.functional.cross_entropy(model(x), y), x)
    with torch.no_grad():
        model(x + 0.1 * slope.sign())
