"""Trains a small convolutional net with a Lightning `Trainer`."""

import argparse
import json

import lightning as L
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=16)
parser.add_argument("--accum", type=int, default=1)
parser.add_argument("--precision", default="32-true")
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()


class Classifier(L.LightningModule):
    def __init__(self) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        channels = 3
        for width in (64, 128, 256, 256):
            layers += [
                nn.Conv2d(channels, width, 3, stride=2, padding=1, bias=False),
                nn.BatchNorm2d(width),
                nn.ReLU(inplace=True),
            ]
            channels = width
        self.net = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(256, 10))
        self.micro_batches = 0

    def training_step(self, batch: list[Tensor], index: int) -> Tensor:
        images, labels = batch
        logits = self.net(images)
        loss = F.cross_entropy(logits, labels)
        self.log("loss", loss, prog_bar=True)
        self.log("accuracy", (logits.argmax(1) == labels).float().mean())
        self.micro_batches += 1
        return loss

    def validation_step(self, batch: list[Tensor], index: int) -> None:
        images, labels = batch
        self.log("val_loss", F.cross_entropy(self.net(images), labels))

    def configure_optimizers(self):
        optimizer = torch.optim.AdamW(self.parameters(), lr=1e-3)
        schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, args.steps)
        return {"optimizer": optimizer, "lr_scheduler": {"scheduler": schedule, "interval": "step"}}


L.seed_everything(0)
samples = args.batch_size * args.accum * args.steps
data = TensorDataset(torch.randn(samples, 3, 64, 64), torch.randint(10, (samples,)))
model = Classifier()
trainer = L.Trainer(
    max_epochs=1,
    precision=args.precision,
    accumulate_grad_batches=args.accum,
    gradient_clip_val=1.0,
    logger=False,
    enable_checkpointing=False,
    enable_progress_bar=False,
    enable_model_summary=False,
)
loader = DataLoader(data, args.batch_size, shuffle=True)
trainer.fit(model, loader, DataLoader(data, args.batch_size))
print(
    json.dumps(
        {
            "steps": trainer.global_step,
            "micro_batches": model.micro_batches,
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
    )
)
