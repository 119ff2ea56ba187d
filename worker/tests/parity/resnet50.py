"""torchvision's resnet50 in training; prints what PyTorch's allocator saw as JSON."""

import torch
import torchvision

import common

args = common.arguments()
model = torchvision.models.resnet50()
model.cuda()
model.train()
if args.checkpoint == "full":
    from torch.utils.checkpoint import checkpoint
    from torchvision.models.resnet import Bottleneck

    forward = Bottleneck.forward
    Bottleneck.forward = lambda self, x: checkpoint(forward, self, x, use_reentrant=False)


def batch():
    images = torch.randn(args.batch, 3, 224, 224, device="cuda")
    return images, torch.randint(1000, (args.batch,), device="cuda")


common.train(
    args, model, batch,
    lambda model, inputs: torch.nn.functional.cross_entropy(model(inputs[0]), inputs[1]),
)
