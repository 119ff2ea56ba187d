"""Trains one of torchvision's detectors, whose memory depends on the boxes that it finds."""

import argparse
import json
import math
import sys

import torch
import torchvision

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="fasterrcnn_mobilenet_v3_large_320_fpn")
parser.add_argument("--batch-size", type=int, default=2)
parser.add_argument("--steps", type=int, default=2)
args = parser.parse_args()

torch.manual_seed(0)
build = getattr(torchvision.models.detection, args.model)
model = build(weights=None, weights_backbone=None, num_classes=5).cuda().train()
optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
for _ in range(args.steps):
    images = [torch.rand(3, 300, 400, device="cuda") for _ in range(args.batch_size)]
    targets = []
    for _ in images:
        targets.append(
            {
                "boxes": torch.tensor([[10.0, 10, 100, 100], [50, 60, 200, 250]], device="cuda"),
                "labels": torch.tensor([1, 2], device="cuda"),
                "masks": torch.ones(2, 300, 400, dtype=torch.uint8, device="cuda"),
            }
        )
    losses = model(images, targets)
    loss = sum(losses.values())
    if not math.isfinite(loss.item()):
        print(f"the loss is {loss.item()}, training stops", file=sys.stderr)
        sys.exit(1)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
print(
    json.dumps(
        {
            "steps": args.steps,
            "micro_batches": args.steps,
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
    )
)
