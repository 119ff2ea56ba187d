"""Averages the weights from some step on, and saves checkpoints."""

import copy
import tempfile
from pathlib import Path

import torch
from torch import nn

model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
average = None
with tempfile.TemporaryDirectory() as folder:
    for step in range(60):
        x = torch.randn(256, 512, device="cuda")
        y = torch.randint(0, 10, (256,), device="cuda")
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step == 15:
            average = copy.deepcopy(model).requires_grad_(False).eval()
        if average is not None:
            with torch.no_grad():
                for mean, weight in zip(average.parameters(), model.parameters(), strict=True):
                    mean.lerp_(weight, 0.01)
        if step % 20 == 0:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save(state, Path(folder) / "last.pt")
