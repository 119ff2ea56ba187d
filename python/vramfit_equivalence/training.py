"""A small language model, trained with each setting side by side."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch.nn import functional
from torch.utils.flop_counter import FlopCounterMode

from . import grammar
from .models import LanguageModel
from .precision import NAMED, PURE_BF16, Precision, offered

# Samples in one optimizer step, of so many characters each.
BATCH = 16
LENGTH = 32
WIDTH = 32
SENTENCES = 4000
VALIDATION_SAMPLES = 128
LEARNING_RATE = 1e-2
# Optimizer steps over which the learning rate rises.
WARM_UP = 10


@dataclass(frozen=True)
class Setting:
    """How it is trained; each comes to the same samples in an optimizer step."""

    precision: str
    micro_batch: int
    checkpointed: bool = False

    @property
    def accumulation(self) -> int:
        """Micro-batches in an optimizer step."""
        return BATCH // self.micro_batch

    @property
    def computes(self) -> Precision:
        """Its precision."""
        return NAMED[self.precision]

    def to_json(self) -> dict[str, Any]:
        """As the other side reads it."""
        return asdict(self) | {"accumulation": self.accumulation}


def settings(device: torch.device) -> list[Setting]:
    """Each precision with each accumulation; then what trades time for memory, and what is not to be
    done."""
    plain = [
        Setting(precision.name, micro_batch)
        for precision in offered(device)
        for micro_batch in (BATCH, BATCH // 4)
    ]
    names = [precision.name for precision in offered(device)]
    extra = [Setting("fp32", BATCH, checkpointed=True)]
    if "bf16" in names:
        extra.append(Setting(PURE_BF16.name, BATCH))
    return plain + extra


@dataclass
class Run:
    """A setting in training."""

    setting: Setting
    device: torch.device
    seed: int
    losses: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)
    skipped: int = 0

    def __post_init__(self) -> None:
        torch.manual_seed(self.seed)
        model = LanguageModel(
            len(grammar.ALPHABET),
            length=LENGTH,
            width=WIDTH,
            checkpointed=self.setting.checkpointed,
        )
        self.model = self.setting.computes.convert(model).to(self.device)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=LEARNING_RATE)
        self.scaler = None
        if self.setting.precision == "fp16":
            self.scaler = torch.amp.GradScaler(self.device.type)

    def step(self, batch: tuple[torch.Tensor, torch.Tensor]) -> float:
        """One optimizer step; its loss, the mean over the batch."""
        rate = min(1.0, (len(self.losses) + 1) / WARM_UP)
        for group in self.optimizer.param_groups:
            group["lr"] = LEARNING_RATE * rate
        begun = self._now()
        self.optimizer.zero_grad()
        total = torch.zeros((), device=self.device)
        for inputs, labels in zip(*(it.split(self.setting.micro_batch) for it in batch), strict=True):
            with self.setting.computes.computing(self.device):
                loss = self._loss(inputs, labels) / self.setting.accumulation
            (self.scaler.scale(loss) if self.scaler else loss).backward()
            total += loss.detach()
        if self.scaler:
            before = self.scaler.get_scale()
            self.scaler.step(self.optimizer)
            self.scaler.update()
            self.skipped += self.scaler.get_scale() < before
        else:
            self.optimizer.step()
        self.seconds.append(self._now() - begun)
        self.losses.append(float(total))
        return self.losses[-1]

    def validate(self, batch: tuple[torch.Tensor, torch.Tensor]) -> dict[str, float]:
        """Loss and accuracy of what was not trained on, computed as it was trained."""
        inputs, labels = (it.to(self.device) for it in batch)
        self.model.eval()
        with torch.no_grad(), self.setting.computes.computing(self.device):
            logits = self.model(inputs).float()
        self.model.train()
        return {
            "loss": float(functional.cross_entropy(logits.flatten(0, 1), labels.flatten())),
            "accuracy": float((logits.argmax(-1) == labels).double().mean()),
        }

    def flops(self, batch: tuple[torch.Tensor, torch.Tensor]) -> int:
        """Floating-point operations of the forward and backward passes of one optimizer step, with those
        that are done twice, in products of matrices and attention, as PyTorch counts them."""
        inputs, labels = (it[: self.setting.micro_batch].to(self.device) for it in batch)
        with FlopCounterMode(display=False) as counter:
            self._loss(inputs, labels).backward()
        self.optimizer.zero_grad()
        return counter.get_total_flops() * self.setting.accumulation

    def _loss(self, inputs: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
        logits = self.model(inputs).flatten(0, 1)
        return functional.cross_entropy(logits.float(), labels.flatten())

    def _now(self) -> float:
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)
        return time.perf_counter()


def batches(corpus: torch.Tensor, seed: int) -> Callable[[], tuple[torch.Tensor, torch.Tensor]]:
    """Makes the batches of one optimizer step after the other, the same for whoever has this seed."""
    generator = torch.Generator().manual_seed(seed)

    def batch(samples: int = BATCH) -> tuple[torch.Tensor, torch.Tensor]:
        begins = torch.randint(len(corpus) - LENGTH, (samples,), generator=generator)
        return grammar.windows(corpus, LENGTH, begins)

    return batch


def train(
    device: torch.device, steps: int, seed: int, progress: Callable[[int, int], None]
) -> dict[str, Any]:
    """Trains all settings on the same batches, a step of each in turn: what else the machine does
    meanwhile is borne by all alike."""
    corpus = grammar.Corpus.of(SENTENCES, seed)
    validation = batches(corpus.validation, seed)(VALIDATION_SAMPLES)
    next_batch = batches(corpus.train, seed)
    runs = [Run(setting, device, seed) for setting in settings(device)]
    first = next_batch()
    flops = [run.flops(first) for run in runs]
    for step in range(steps):
        batch = tuple(it.to(device) for it in next_batch())
        # Whoever comes first finds the batch in no cache.
        for index in range(len(runs)):
            runs[(index + step) % len(runs)].step(batch)
        progress(step + 1, steps)
    return {
        "steps": steps,
        "batch": BATCH,
        "length": LENGTH,
        "parameters": sum(it.numel() for it in runs[0].model.parameters()),
        "entropy": grammar.entropy(),
        "runs": [
            {
                "setting": run.setting.to_json(),
                "losses": run.losses,
                "seconds": run.seconds,
                "flops": counted,
                "skipped": run.skipped,
                "validation": run.validate(validation),
            }
            for run, counted in zip(runs, flops, strict=True)
        ],
    }
