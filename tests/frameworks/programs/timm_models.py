"""Trains one of timm's models as its `train.py` does: mixup, scaler, clipping, averaged weights."""

import argparse
import json

import timm
import timm.data
import timm.loss
import timm.optim
import timm.scheduler
import timm.utils
import torch

parser = argparse.ArgumentParser()
parser.add_argument("--model", default="resnet18")
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--image", type=int, default=224)
parser.add_argument("--opt", default="adamw")
parser.add_argument("--grad-checkpointing", action="store_true")
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()

timm.utils.random_seed(0)
model = timm.create_model(args.model, num_classes=100, drop_path_rate=0.1).cuda()
if args.grad_checkpointing:
    model.set_grad_checkpointing()
average = timm.utils.ModelEmaV3(model, decay=0.999)
optimizer = timm.optim.create_optimizer_v2(model, opt=args.opt, lr=1e-3, weight_decay=0.05)
schedule, _ = timm.scheduler.create_scheduler_v2(optimizer, num_epochs=2, warmup_epochs=1)
mixup = timm.data.Mixup(mixup_alpha=0.2, cutmix_alpha=1.0, num_classes=100)
criterion = timm.loss.SoftTargetCrossEntropy()
scaler = timm.utils.NativeScaler()
losses = timm.utils.AverageMeter()

model.train()
for step in range(args.steps):
    images = torch.randn(args.batch_size, 3, args.image, args.image).cuda(non_blocking=True)
    labels = torch.randint(100, (args.batch_size,)).cuda(non_blocking=True)
    images, targets = mixup(images, labels)
    with torch.autocast("cuda", dtype=torch.float16):
        loss = criterion(model(images), targets)
    optimizer.zero_grad()
    scaler(loss, optimizer, clip_grad=1.0, parameters=model.parameters())
    average.update(model, step=step)
    torch.cuda.synchronize()
    losses.update(loss.item(), args.batch_size)
    schedule.step_update(step)
states = [state for state in optimizer.state.values() if "step" in state]
print(
    json.dumps(
        {
            "steps": args.steps,
            "micro_batches": args.steps,
            # Those of the optimizer are fewer where the scaler skipped some.
            "optimizer_steps": int(states[0]["step"]) if states else args.steps,
            "scale": scaler.state_dict()["scale"],
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
    )
)
