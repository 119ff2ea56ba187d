"""fp16 with a scaler, gradients of four micro-batches, a schedule."""

import torch
from torch import nn

model = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1),
    nn.BatchNorm2d(64),
    nn.ReLU(),
    nn.Conv2d(64, 64, 3, padding=1),
    nn.AdaptiveAvgPool2d(1),
    nn.Flatten(),
    nn.Linear(64, 10),
).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 40)
scaler = torch.amp.GradScaler("cuda")
losses = []
for step in range(40):
    optimizer.zero_grad()
    for _ in range(4):
        x = torch.randn(16, 3, 64, 64, device="cuda")
        y = torch.randint(0, 10, (16,), device="cuda")
        with torch.autocast("cuda", dtype=torch.float16):
            loss = nn.functional.cross_entropy(model(x), y) / 4
        scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    losses.append(loss.detach())
print(torch.stack(losses).mean().item())
