"""Decodes each sample in the training process, while the GPU waits."""

import time

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class Images(Dataset[tuple[torch.Tensor, int]]):
    def __len__(self) -> int:
        return 320

    def __getitem__(self, index: int) -> tuple[torch.Tensor, int]:
        time.sleep(0.01)  # a file is read and decoded
        return torch.full((3, 64, 64), index / 320), index % 10


model = nn.Sequential(nn.Conv2d(3, 32, 3), nn.ReLU(), nn.Flatten(), nn.Linear(32 * 62 * 62, 10))
model.cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for x, y in DataLoader(Images(), batch_size=8, shuffle=True):
    loss = nn.functional.cross_entropy(model(x.cuda()), y.cuda())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
