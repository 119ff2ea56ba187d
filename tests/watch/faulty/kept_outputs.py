"""Keeps the outputs of each step for a score at the end."""

import torch
from torch import nn


def main() -> None:
    model = nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 1000)).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    outputs = []
    for _ in range(50):
        x = torch.randn(512, 256, device="cuda")
        y = torch.randint(0, 1000, (512,), device="cuda")
        out = model(x)
        loss = nn.functional.cross_entropy(out, y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        outputs.append(out)
    print(torch.cat(outputs).argmax(1).unique().numel())


main()
