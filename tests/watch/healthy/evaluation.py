"""Evaluates after each epoch as it should be done."""

import torch
from torch import nn

model = nn.Sequential(nn.Linear(1024, 2048), nn.GELU(), nn.Dropout(0.1), nn.Linear(2048, 10)).cuda()
optimizer = torch.optim.AdamW(model.parameters())


@torch.no_grad()
def evaluate() -> float:
    model.eval()
    outputs, labels = [], []
    for _ in range(10):
        outputs.append(model(torch.randn(512, 1024, device="cuda")))
        labels.append(torch.randint(0, 10, (512,), device="cuda"))
    model.train()
    return (torch.cat(outputs).argmax(1) == torch.cat(labels)).float().mean().item()


for epoch in range(4):
    for _ in range(15):
        x = torch.randn(512, 1024, device="cuda")
        y = torch.randint(0, 10, (512,), device="cuda")
        loss = nn.functional.cross_entropy(model(x), y)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        optimizer.step()
    print(epoch, evaluate())
