"""Compares accumulated gradients with those of all samples at once, on the CPU.

gradients.py PYTORCH ACCELERATE LIGHTNING: what `vramfit export` wrote for each.
"""

from __future__ import annotations

import sys
from types import ModuleType

import torch
from train import load

SAMPLES, FEATURES = 35, 5
INPUTS = torch.randn(SAMPLES, FEATURES, generator=torch.Generator().manual_seed(1))
TARGETS = (INPUTS.sum(1) > 0).long()


class Numbered(torch.utils.data.Dataset):
    def __len__(self) -> int:
        return SAMPLES

    def __getitem__(self, index: int) -> torch.Tensor:
        return torch.tensor([index])


def make_loader(planned: ModuleType) -> torch.utils.data.DataLoader:
    """The planned loader on the CPU, with a smaller last micro-batch where it knows one size."""
    more = {} if hasattr(planned, "SIZES") else {"drop_last": False}
    return planned.make_loader(
        Numbered(), num_workers=0, persistent_workers=False, pin_memory=False, **more
    )


def make_model() -> torch.nn.Module:
    torch.manual_seed(2)
    return torch.nn.Sequential(
        torch.nn.Linear(FEATURES, 7), torch.nn.Tanh(), torch.nn.Linear(7, 2)
    ).double()


def compute_loss(model: torch.nn.Module, batch: torch.Tensor) -> torch.Tensor:
    seen.extend(batch[:, 0].tolist())
    outputs = model(INPUTS[batch[:, 0]].double())
    return torch.nn.functional.cross_entropy(outputs, TARGETS[batch[:, 0]])


# Samples since the last step, and how many each step had.
seen: list[int] = []
steps: list[int] = []


def compare(model: torch.nn.Module) -> None:
    """The gradients in hand are those of the samples since the last step."""
    found = [parameter.grad.clone() for parameter in model.parameters()]
    indices = torch.tensor(seen)
    loss = torch.nn.functional.cross_entropy(model(INPUTS[indices].double()), TARGETS[indices])
    expected = torch.autograd.grad(loss, list(model.parameters()))
    for one, other in zip(found, expected, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    steps.append(len(seen))
    seen.clear()


class Compared(torch.optim.SGD):
    """Compares the gradients when it is asked to step."""

    def __init__(self, model: torch.nn.Module) -> None:
        super().__init__(model.parameters(), lr=0.1)
        self.model = model

    def step(self, closure: object = None) -> object:
        loss = None if closure is None else closure()
        compare(self.model)
        return loss if closure is not None else super().step()


def pytorch(path: str) -> None:
    planned = load(path)
    model = make_model()
    optimizer = Compared(model)
    for micro_batches in planned.optimizer_steps(make_loader(planned)):
        planned.train_step(model, optimizer, micro_batches, compute_loss)


def accelerate(path: str) -> None:
    planned = load(path)
    accelerator = planned.make_accelerator(cpu=True)
    model = make_model()
    optimizer, loader = Compared(model), make_loader(planned)
    model, optimizer, loader = planned.prepare(accelerator, model, optimizer, loader)
    for micro_batches in planned.optimizer_steps(loader):
        planned.train_step(accelerator, model, optimizer, micro_batches, compute_loss)


def lightning(path: str) -> None:
    planned = load(path)

    class Module(planned.L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = make_model()

        def training_step(self, batch: torch.Tensor, batch_idx: int) -> torch.Tensor:
            loss = compute_loss(self.model, batch)
            return loss * planned.weight(batch, batch_idx, self.trainer)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return Compared(self.model)

    trainer = planned.make_trainer(
        accelerator="cpu", max_epochs=1, logger=False, enable_checkpointing=False,
        enable_progress_bar=False, enable_model_summary=False,
    )
    trainer.fit(Module(), make_loader(planned))


if __name__ == "__main__":
    for train, path in zip((pytorch, accelerate, lightning), sys.argv[1:], strict=True):
        train(path)
        print(train.__name__, *steps)
        steps.clear()
