"""One training step, in the order in which PyTorch users write it."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from vramfit_torch.clock import Stamp, Took

from .definition import Definition
from .faults import PointFault, users
from .placing import DEVICE, batching, on_device
from .user_code import of_type

# Equal micro-steps that are really run: the first makes the gradients, the second adds to them, and
# from the third on nothing happens that did not happen in the second.
MICRO_STEPS_RUN = 2
DTYPES = {"bf16": torch.bfloat16, "fp16": torch.float16}
LEARNING_RATE = 1e-3


class Border(enum.Enum):
    """Where a step stands when memory is read."""

    AFTER_ZERO_GRAD = enum.auto()
    BEFORE_MICRO_STEP = enum.auto()
    AFTER_FORWARD = enum.auto()
    BEFORE_OPTIMIZER = enum.auto()
    AFTER_OPTIMIZER = enum.auto()


@dataclass(frozen=True)
class Recipe:
    """How a point trains; see `Point` and `Workload` in vramfit's own sources."""

    precision: str
    checkpointing: str | Mapping[str, Any]
    micro_batch: int
    accumulation: int
    remainder: int | None
    optimizer: str | None
    implementation: str
    clipping: float | None

    @classmethod
    def of_request(cls, workload: Mapping[str, Any], point: Mapping[str, Any]) -> Recipe:
        """From the JSON of a request."""
        return cls(
            precision=point["setting"]["precision"],
            checkpointing=point["setting"]["checkpointing"],
            micro_batch=point["micro_batch"],
            accumulation=point["accumulation"],
            remainder=point["remainder"],
            optimizer=workload["optimizer"],
            implementation=workload["optimizer_implementation"],
            clipping=workload["gradient_clipping"],
        )

    @property
    def samples(self) -> int:
        """Samples in one optimizer step."""
        return self.micro_batch * self.accumulation + (self.remainder or 0)


class Trainer:
    """A model in training."""

    def __init__(self, definition: Definition, recipe: Recipe) -> None:
        self.definition = definition
        self.recipe = recipe
        self.model = definition.model.train()
        self.parameters = [p for p in self.model.parameters() if p.requires_grad]
        self.optimizer = make_optimizer(definition, recipe, self.parameters)
        self.scaler = None
        if recipe.precision == "fp16":
            # A scale of 1 takes the same memory and never makes a gradient infinite, for which the
            # step, and with it the optimizer's state, would be left out.
            self.scaler = torch.amp.GradScaler("cuda", init_scale=1.0)
        # Names of a training loop that outlive one turn of it.
        self.batch: Any = None
        self.loss: Any = None

    def step(self, at: Callable[[Border], None]) -> Took:
        """One optimizer step, and what it takes, micro-steps that are left out counted as long as
        the last one run."""
        start = now()
        with users("`zero_grad` of the optimizer"):
            self.optimizer.zero_grad()
        at(Border.AFTER_ZERO_GRAD)
        run = min(self.recipe.accumulation, MICRO_STEPS_RUN)
        left_out = Took()
        for _ in range(run):
            micro_start = now()
            self._micro_step(self.recipe.micro_batch, at)
            left_out = micro_start.until(now()) * (self.recipe.accumulation - run)
        if self.recipe.remainder:
            self._micro_step(self.recipe.remainder, at)
        at(Border.BEFORE_OPTIMIZER)
        self._update()
        at(Border.AFTER_OPTIMIZER)
        return start.until(now()) + left_out

    def evaluate(self) -> None:
        """One evaluation batch, where the workload has one."""
        batch = self.definition.eval_batch
        if batch is None:
            return
        self.model.eval()
        try:
            if callable(batch) and not isinstance(batch, (torch.Tensor, Mapping)):
                with users("`eval_batch()`"), batching():
                    batch = batch()
            batch = on_device(batch)
            with torch.no_grad(), self._autocast():
                loss_of(self.definition, batch)
        finally:
            self.model.train()

    def _micro_step(self, samples: int, at: Callable[[Border], None]) -> None:
        at(Border.BEFORE_MICRO_STEP)
        self.forward(samples)
        share = samples / self.recipe.samples
        if share != 1.0:
            self.loss = self.loss * share
        at(Border.AFTER_FORWARD)
        with users("the backward pass"):
            (self.scaler.scale(self.loss) if self.scaler else self.loss).backward()

    def forward(self, samples: int) -> None:
        """The loss of a new batch."""
        with users(f"`batch({samples})`"), batching():
            batch = self.definition.batch(samples)
        if batch is None:
            raise PointFault(f"`batch({samples})` returned nothing")
        self.batch = on_device(batch)
        del batch
        with self._autocast():
            self.loss = checked(loss_of(self.definition, self.batch))

    def _update(self) -> None:
        with users("the optimizer's step"):
            if self.recipe.clipping is not None:
                if self.scaler:
                    self.scaler.unscale_(self.optimizer)
                torch.nn.utils.clip_grad_norm_(self.parameters, self.recipe.clipping)
            if self.scaler:
                self.scaler.step(self.optimizer)
                self.scaler.update()
            else:
                self.optimizer.step()

    def _autocast(self) -> AbstractContextManager[Any]:
        dtype = DTYPES.get(self.recipe.precision)
        return torch.autocast("cuda", dtype=dtype) if dtype else nullcontext()


def loss_of(definition: Definition, batch: Any) -> Any:
    """What the user's code makes of a batch."""
    model = definition.model
    if definition.loss is not None:
        with users("`loss`"):
            return definition.loss(model, batch)
    with users("the model"):
        if isinstance(batch, Mapping):
            output = model(**batch)
        elif isinstance(batch, (list, tuple)):
            output = model(*batch)
        else:
            output = model(batch)
    if isinstance(output, torch.Tensor):
        return output
    loss = output.get("loss") if isinstance(output, Mapping) else getattr(output, "loss", None)
    if loss is None:
        raise PointFault(
            f"the model returned {of_type(output)} without a loss; `loss` can be a function"
        )
    return loss


def make_optimizer(
    definition: Definition, recipe: Recipe, parameters: list[nn.Parameter]
) -> torch.optim.Optimizer:
    """The optimizer that the request names, or else the user's own, or else AdamW."""
    if recipe.optimizer is None and definition.optimizer is not None:
        with users("`optimizer`"):
            optimizer = definition.optimizer(parameters)
        if not isinstance(optimizer, torch.optim.Optimizer):
            raise PointFault(
                f"`optimizer` returned {of_type(optimizer)}, not a torch.optim.Optimizer"
            )
        return optimizer
    how: dict[str, Any] = {"foreach": {}, "fused": {"fused": True}, "for-loop": {"foreach": False}}[
        recipe.implementation
    ]
    if recipe.optimizer == "sgd":
        return torch.optim.SGD(parameters, lr=LEARNING_RATE, **how)
    if recipe.optimizer == "sgd-momentum":
        return torch.optim.SGD(parameters, lr=LEARNING_RATE, momentum=0.9, **how)
    if recipe.optimizer == "adam":
        return torch.optim.Adam(parameters, lr=LEARNING_RATE, **how)
    return torch.optim.AdamW(parameters, lr=LEARNING_RATE, **how)


def now() -> Stamp:
    """The time once the device has done all it was given."""
    torch.cuda.synchronize(DEVICE)
    return Stamp.now()


def checked(loss: Any) -> torch.Tensor:
    """A loss that a gradient can be made of."""
    if not isinstance(loss, torch.Tensor):
        raise PointFault(f"`loss` returned {of_type(loss)}, not a tensor")
    if loss.numel() != 1:
        raise PointFault(f"`loss` returned a tensor of shape {list(loss.shape)}, not one number")
    if not loss.requires_grad:
        raise PointFault("`loss` returned a tensor that depends on no parameter")
    return loss
