"""A student learns from a frozen teacher in evaluation mode, whose passes are not under `no_grad`."""

import torch
from torch import nn


class Net(nn.Module):
    def __init__(self, width: int) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Linear(512, width), nn.ReLU(), nn.Linear(width, 100))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.body(x)


teacher, student = Net(2048).cuda(), Net(256).cuda()
teacher.eval()
optimizer = torch.optim.AdamW(student.parameters())
for step in range(60):
    x = torch.randn(512, 512, device="cuda")
    target = teacher(x).softmax(1).detach()
    loss = nn.functional.kl_div(student(x).log_softmax(1), target, reduction="batchmean")
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
