"""The gradient of a whole batch beside that of its micro-batches."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Generic, TypeVar

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm
from torch.nn.modules.dropout import _DropoutNd

from vramfit_worker.faults import PointFault

from .precision import FP16_SCALE, Precision

BatchT = TypeVar("BatchT")
# How many parameters are named, those that differ most.
NAMED_PARAMETERS = 3
# Of a parameter with more numbers, as many are compared, evenly spread: models have billions.
COMPARED = 1 << 16


@dataclass(frozen=True)
class Problem(Generic[BatchT]):
    """A model, a batch, and how its gradient is accumulated."""

    model: nn.Module
    batch: BatchT
    # The batch in micro-batches, and another order of the same samples.
    parts: Callable[[BatchT], Sequence[BatchT]]
    reordered: Callable[[BatchT], BatchT]
    # The loss of a whole batch; what a micro-batch adds to it: from model, micro-batch, whole batch.
    whole: Callable[[nn.Module, BatchT], torch.Tensor]
    part: Callable[[nn.Module, BatchT, BatchT], torch.Tensor]


@dataclass(frozen=True)
class Fit:
    """By which factors the micro-batches' gradients would come nearest to the whole batch's."""

    factors: list[float]
    # What is left then, relative.
    left: float


@dataclass(frozen=True)
class Measured:
    """What came out in one precision. All differences are norms, relative to the full gradient's."""

    precision: str
    epsilon: float
    # Of accumulated and full gradient.
    difference: float
    # What reordering the samples makes of the full gradient: the noise of rounding.
    reordering: float
    # What another seed makes of it: dropout and the like.
    seed: float
    fit: Fit
    # As the first, with batch norm on its running statistics, if the model has any.
    frozen: float | None = None
    # Parameters that make up most of the difference, each with its own, relative to its gradient.
    parameters: list[tuple[str, float]] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """As the other side reads it."""
        return asdict(self)


class Gradients(Generic[BatchT]):
    """Gradients of one problem, each from the same weights and, unless said otherwise, one seed."""

    def __init__(self, problem: Problem[BatchT], precision: Precision, device: torch.device) -> None:
        self.problem = problem
        self.precision = precision
        self.device = device
        self.scale = FP16_SCALE if precision.autocast is torch.float16 else 1.0
        self.model = problem.model
        # Passes move running statistics along.
        self.buffers = [(it, it.detach().clone()) for it in self.model.buffers()]

    def measure(self) -> Measured:
        """All that is asked of a problem."""
        problem = self.problem
        full = self.full(problem.batch)
        if not 0 < float(full.norm()) < math.inf:
            raise PointFault("the gradient of the full batch is zero, or not finite")
        parts = problem.parts(problem.batch)
        each = torch.stack([self.part(part, index) for index, part in enumerate(parts)])
        accumulated = each.sum(0)
        return Measured(
            precision=self.precision.name,
            epsilon=self.precision.epsilon,
            difference=relative(accumulated, full),
            reordering=relative(self.full(problem.reordered(problem.batch)), full),
            seed=relative(self.full(problem.batch, seed=1), full),
            fit=fitted(each, full),
            frozen=self._frozen(parts),
            parameters=self._parameters(accumulated, full),
        )

    def full(self, batch: BatchT, seed: int = 0) -> torch.Tensor:
        """The gradient of a batch in one pass, as one vector of fp64 on the CPU."""
        return self._gradient(lambda: self.problem.whole(self.model, batch), seed)

    def part(self, part: BatchT, index: int) -> torch.Tensor:
        """What a micro-batch adds. Each has random numbers of its own, as in training."""
        return self._gradient(
            lambda: self.problem.part(self.model, part, self.problem.batch), seed=index
        )

    def _gradient(self, loss: Callable[[], torch.Tensor], seed: int) -> torch.Tensor:
        torch.manual_seed(seed)
        with torch.no_grad():
            for buffer, value in self.buffers:
                buffer.copy_(value)
        self.model.zero_grad(set_to_none=True)
        with self.precision.computing(self.device):
            value = loss()
        (value * self.scale).backward()
        return torch.cat(
            [
                _compared(_gradient_of(parameter)).to("cpu", torch.float64) / self.scale
                for _, parameter in trained(self.model)
            ]
        )

    def _frozen(self, parts: Sequence[BatchT]) -> float | None:
        norms = batch_norms(self.model).values()
        if not norms:
            return None
        for module in norms:
            module.eval()
        each = [self.part(part, index) for index, part in enumerate(parts)]
        full = self.full(self.problem.batch)
        for module in norms:
            module.train()
        return relative(torch.stack(each).sum(0), full)

    def _parameters(self, one: torch.Tensor, other: torch.Tensor) -> list[tuple[str, float]]:
        names = [name for name, _ in trained(self.model)]
        sizes = [len(_compared(parameter)) for _, parameter in trained(self.model)]
        pairs = zip(names, one.split(sizes), other.split(sizes), strict=True)
        most = sorted(pairs, key=lambda it: -float((it[1] - it[2]).norm()))[:NAMED_PARAMETERS]
        return [(name, relative(its, the)) for name, its, the in most if the.norm() > 0]


def trained(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """The parameters that have a gradient, with their names."""
    return [(name, it) for name, it in model.named_parameters() if it.requires_grad]


def batch_norms(model: nn.Module) -> dict[str, nn.Module]:
    """Modules that normalize by the statistics of the batch they see, and could do so by running ones,
    by name."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, _BatchNorm) and module.training and module.track_running_stats
    }


def dropouts(model: nn.Module) -> dict[str, nn.Module]:
    """Modules that leave out at random, by name."""
    return {
        name: module
        for name, module in model.named_modules()
        if isinstance(module, (_DropoutNd, nn.RReLU)) and module.training
    }


def relative(one: torch.Tensor, other: torch.Tensor) -> float:
    """‖one − other‖ / ‖other‖."""
    return float((one - other).norm() / other.norm())


def fitted(each: torch.Tensor, full: torch.Tensor) -> Fit:
    """By which factors the rows of `each` come nearest to `full`."""
    factors = torch.linalg.lstsq(each.T, full[:, None]).solution[:, 0]
    return Fit(factors.tolist(), relative(each.T @ factors, full))


def _gradient_of(parameter: nn.Parameter) -> torch.Tensor:
    # One that the loss does not depend on has none.
    return torch.zeros_like(parameter) if parameter.grad is None else parameter.grad


def _compared(tensor: torch.Tensor) -> torch.Tensor:
    return tensor.detach().flatten()[:: -(-tensor.numel() // COMPARED)]
