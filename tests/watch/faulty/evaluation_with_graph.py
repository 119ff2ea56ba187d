"""Evaluates after each epoch in evaluation mode, but with graphs."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        layers = [nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(8)]
        self.body = nn.Sequential(*layers)
        self.head = nn.Linear(1024, 10)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.head(self.body(x))


def evaluate(model: nn.Module) -> float:
    model.eval()
    correct = torch.zeros((), device="cuda")
    for _ in range(8):
        x = torch.randn(4096, 1024, device="cuda")
        y = torch.randint(0, 10, (4096,), device="cuda")
        correct += (model(x).argmax(1) == y).sum()
    return correct.item() / (8 * 4096)


model = Net().cuda()
optimizer = torch.optim.AdamW(model.parameters())
for epoch in range(3):
    model.train()
    for _ in range(12):
        x = torch.randn(1024, 1024, device="cuda")
        y = torch.randint(0, 10, (1024,), device="cuda")
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(epoch, evaluate(model))
