"""Measuring a point: trains some steps and reads the allocator at their borders."""

from __future__ import annotations

import functools
import statistics
import traceback
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch

from vramfit_torch import clock
from vramfit_torch.allocator import says_out_of_memory
from vramfit_torch.clock import Took

from . import checkpointing
from .definition import Definition
from .faults import PointFault, Raised, in_words, users_place, users_traceback
from .placing import DEVICE, place
from .training import Border, Recipe, Trainer

# Optimizer state comes with the first step and is seen in full in the second.
FEWEST_STEPS = 2
# Most steps of which a virtual GPU's time is the quietest, and the most that those beyond the first
# may take, in seconds of wall time.
MOST_TIMED = 3
MOST_TIMED_SECONDS = 0.1


@dataclass
class Measured:
    """What became of a point, and the training that holds its memory."""

    outcome: dict[str, Any]
    trainer: Trainer | None = None
    # Takes the checkpointing back from the model, where that can be done.
    undo: Callable[[], Any] | None = None


class Parts:
    """Live bytes at the borders. Differences leave out what both sides hold, so that cuBLAS's
    workspaces, which appear in the midst of the first step, are counted in no part but the rest."""

    def __init__(self, weights: int) -> None:
        self.weights = weights
        self.gradients = 0
        self.optimizer_state = 0
        self.activations = 0
        self._last = 0
        self._before_micro_step = 0

    def read(self, border: Border, first: bool) -> None:
        """Takes in what is live at a border of the first or a later step."""
        clock.pause()
        live = torch.cuda.memory_allocated(DEVICE)
        if border is Border.AFTER_ZERO_GRAD and not first:
            self.gradients = self._last - live
        elif border is Border.AFTER_OPTIMIZER and first:
            self.optimizer_state = live - self._last
        elif border is Border.BEFORE_MICRO_STEP:
            self._before_micro_step = live
        elif border is Border.AFTER_FORWARD and not first:
            self.activations = max(self.activations, live - self._before_micro_step)
        self._last = live
        clock.resume()

    def memory(self, allocator: dict[str, int]) -> dict[str, int]:
        """By the names of the protocol; what only shows from outside is zero."""
        named = {
            "weights": max(self.weights, 0),
            "gradients": max(self.gradients, 0),
            "optimizer_state": max(self.optimizer_state, 0),
            "activations": max(self.activations, 0),
        }
        peak = allocator["allocated_bytes.all.peak"]
        return {
            "context": 0,
            **named,
            "workspace": max(peak - sum(named.values()), 0),
            "allocated_peak": peak,
            "reserved_peak": allocator["reserved_bytes.all.peak"],
            "device_peak": 0,
        }


def measure(definition: Definition, recipe: Recipe, steps: int) -> Measured:
    """Tries a point. All that goes wrong inside becomes an outcome."""
    measured = Measured({})
    ooms = _count("num_ooms")
    try:
        measured.outcome = {"ran": _train(definition, recipe, steps, measured)}
        if _count("num_ooms") > ooms:
            measured.outcome = out_of_memory("CUDA out of memory, which the workload caught itself")
    except BaseException as error:
        measured.outcome = outcome(error, _count("num_ooms") > ooms)
        release_frames(error)
    return measured


def outcome(error: BaseException, ooms: bool) -> dict[str, Any]:
    """What a failure means for a point; `ooms` tells that the allocator found no memory."""
    original = error.error if isinstance(error, Raised) else error
    text = str(original)
    if ooms or isinstance(original, torch.cuda.OutOfMemoryError) or says_out_of_memory(text):
        return out_of_memory(text)
    if isinstance(error, PointFault):
        return {"failed": {"message": error.message, "traceback": error.traceback}}
    if not isinstance(error, Raised):
        return {"failed": {"message": in_words(error), "traceback": None}}
    place = users_place(original)
    message = f"{error.doing} failed: {in_words(original)}{f' ({place})' if place else ''}"
    return {"failed": {"message": message, "traceback": users_traceback(original)}}


def out_of_memory(message: str) -> dict[str, Any]:
    """The outcome of a point that found no memory."""
    return {"out-of-memory": {"message": " ".join(message.split())}}


def release_frames(error: BaseException | None) -> None:
    """Lets go of what the frames of a failure hold, tensors among it."""
    while error is not None:
        traceback.clear_frames(error.__traceback__)
        error.__traceback__ = None
        error = error.__cause__ or error.__context__


def _train(
    definition: Definition, recipe: Recipe, steps: int, measured: Measured
) -> dict[str, Any]:
    _check(recipe, steps)
    torch.backends.cuda.matmul.allow_tf32 = recipe.precision == "tf32"
    measured.undo = checkpointing.switch_on(definition, recipe.checkpointing)
    retries = _count("num_alloc_retries")
    torch.cuda.reset_peak_memory_stats(DEVICE)
    place(definition.model)
    parts = Parts(torch.cuda.memory_allocated(DEVICE))
    trainer = measured.trainer = Trainer(definition, recipe)
    took = []
    for step in range(steps):
        took.append(trainer.step(functools.partial(parts.read, first=step == 0)))
        if step == 0:
            trainer.evaluate()
    allocator = torch.cuda.memory_stats(DEVICE)
    of_step = _of_step(trainer, took[1:])
    return {
        "memory": parts.memory(allocator),
        "allocator_retries": allocator["num_alloc_retries"] - retries,
        "step_seconds": of_step.seconds,
        "step_time": asdict(of_step.split) if of_step.split else None,
    }


def _of_step(trainer: Trainer, took: list[Took]) -> Took:
    """What a step takes. On a virtual GPU all of it but PyTorch's dispatch is the same each time, and
    that takes longer the busier the machine is: the quietest counts, some more are run where that
    is quick."""
    if took[0].split is None:
        return Took(statistics.median(it.wall for it in took))
    spent = 0.0
    while len(took) < MOST_TIMED and spent + took[0].wall < MOST_TIMED_SECONDS:
        took.append(trainer.step(lambda _: None))
        spent += took[-1].wall
    return min(took, key=lambda it: it.seconds)


def _check(recipe: Recipe, steps: int) -> None:
    if recipe.micro_batch < 1 or recipe.accumulation < 1 or recipe.remainder == 0:
        raise PointFault("a micro-batch of 0 samples, or none at all")
    if steps < FEWEST_STEPS:
        raise PointFault(f"{steps} steps, where at least {FEWEST_STEPS} are needed")


def _count(name: str) -> int:
    return int(torch.cuda.memory_stats(DEVICE).get(name, 0))
