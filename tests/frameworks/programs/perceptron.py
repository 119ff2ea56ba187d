"""A perceptron, as a program (`perceptron.py 64`) and as a function for `vramfit plan --workload`."""

import sys

import torch
from torch import nn


def batch(n: int) -> torch.Tensor:
    return torch.randn(n, 1024)


def loss(model: nn.Module, batch: torch.Tensor) -> torch.Tensor:
    return model(batch).square().mean()


def workload() -> dict[str, object]:
    layers = [layer for _ in range(8) for layer in (nn.Linear(1024, 1024), nn.GELU())]
    return {"model": nn.Sequential(*layers), "batch": batch, "loss": loss}


if __name__ == "__main__":
    model = workload()["model"].cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for _ in range(100):
        optimizer.zero_grad()
        loss(model, batch(int(sys.argv[1])).cuda()).backward()
        optimizer.step()
