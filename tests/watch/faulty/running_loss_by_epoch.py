"""Sums the loss of each step together with its graph, anew in each epoch."""

import torch
from torch import nn


def main() -> None:
    model = nn.Sequential(nn.Linear(256, 512), nn.ReLU(), nn.Linear(512, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    for epoch in range(4):
        total = 0
        for _ in range(20):
            x = torch.randn(64, 256, device="cuda")
            y = torch.randint(0, 10, (64,), device="cuda")
            loss = nn.functional.cross_entropy(model(x), y)
            optimizer.zero_grad()
            (loss / 2).backward()
            optimizer.step()
            total = total + loss
        print(epoch, float(total) / 20)


main()
