"""Trains one of torchvision's classification or segmentation models from a loader with workers."""

import argparse
import json

import torch
import torch.nn.functional as F
import torchvision
from torch.utils.data import DataLoader
from torchvision.transforms import v2 as transforms

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="resnet18")
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--image", type=int, default=224)
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--channels-last", action="store_true")
parser.add_argument("--workers", type=int, default=0)
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()


def main() -> None:
    torch.manual_seed(0)
    extra = {"weights_backbone": None} if "resnet50" in args.model and "_" in args.model else {}
    model = torchvision.models.get_model(args.model, weights=None, num_classes=10, **extra).cuda()
    layout = torch.channels_last if args.channels_last else torch.contiguous_format
    model = model.to(memory_format=layout).train()
    data = torchvision.datasets.FakeData(
        args.batch_size * args.steps,
        (3, args.image, args.image),
        10,
        transforms.Compose(
            [
                transforms.ToImage(),
                transforms.RandomHorizontalFlip(),
                transforms.ToDtype(torch.float32, scale=True),
            ]
        ),
    )
    loader = DataLoader(data, args.batch_size, num_workers=args.workers, pin_memory=True)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9, weight_decay=1e-4)
    correct = micro_batches = 0
    for images, labels in loader:
        images = images.cuda(non_blocking=True).to(memory_format=layout)
        labels = labels.cuda(non_blocking=True)
        with torch.autocast("cuda", dtype=torch.bfloat16, enabled=args.bf16):
            output = model(images)
            if isinstance(output, dict):  # Segmentation: a class for each pixel.
                output = output["out"]
                labels = labels[:, None, None].expand(-1, *output.shape[2:])
            if not isinstance(output, torch.Tensor):  # GoogLeNet and Inception have more heads.
                output = output.logits
            loss = F.cross_entropy(output, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        correct += (output.argmax(1) == labels).sum().item()
        micro_batches += 1
        print(f"loss {loss.item():.3f}")
    print(
        json.dumps(
            {
                "steps": micro_batches,
                "micro_batches": micro_batches,
                "allocated": torch.cuda.max_memory_allocated(),
                "reserved": torch.cuda.max_memory_reserved(),
            }
        )
    )


if __name__ == "__main__":
    main()
