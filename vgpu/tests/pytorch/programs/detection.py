"""Trains torchvision's Faster R-CNN, whose number of boxes depends on what it sees."""

import json

import torch
import torchvision

model = torchvision.models.detection.fasterrcnn_resnet50_fpn(weights=None, weights_backbone=None)
model.cuda().train()
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for _ in range(2):
    images = [torch.rand(3, 300, 400, device="cuda") for _ in range(2)]
    boxes = torch.tensor([[10.0, 10, 100, 100], [50, 60, 200, 300]], device="cuda")
    labels = torch.tensor([1, 2], device="cuda")
    losses = model(images, [{"boxes": boxes, "labels": labels} for _ in images])
    optimizer.zero_grad()
    sum(losses.values()).backward()
    optimizer.step()
print(json.dumps({"allocated": torch.cuda.max_memory_allocated()}))
