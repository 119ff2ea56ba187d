"""Where points are tried one after another, each as a fresh process would try it."""

from __future__ import annotations

import gc
import random
import sys
import time
import weakref
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.nn.modules.batchnorm import _BatchNorm

from . import checkpointing, measuring, placing, surveying
from .definition import Definition, define
from .faults import PointFault, Raised, Refusal, in_words, one_line
from .training import Recipe, Trainer
from .user_code import Function

# A function that takes longer, most likely because it loads weights, is not called for each point.
LONG_SECONDS = 2.0


@dataclass
class Kept:
    """What the user's function returned, to be used again."""

    definition: Definition
    sequence: int | None


class Bench:
    """Builds what the user's function defines, and measures it."""

    def __init__(self, function: Function) -> None:
        self._function = function
        self._build_seconds = 0.0
        self._kept: Kept | None = None
        self._trainer: Trainer | None = None
        self._is_empty = True
        # Models whose checkpointing cannot be undone; the user's code may return one again.
        self._altered: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        self._models: weakref.WeakSet[nn.Module] = weakref.WeakSet()
        gc.collect()
        placing.empty()
        # What the user's file itself put on the device stays there.
        self._left_by_import = torch.cuda.memory_allocated(placing.DEVICE)

    def build(self, workload: Mapping[str, Any]) -> dict[str, Any] | None:
        """Calls the user's function for the first time. What is to be said of what it returns, or
        nothing if the device has no room for it."""
        sequence = workload["sequence"]
        self._is_empty = False
        _seed()
        try:
            definition = self._define(sequence)
        except torch.cuda.OutOfMemoryError as error:
            measuring.release_frames(error)
            return None
        self._kept = Kept(definition, sequence)
        return {
            "model": type(definition.model).__name__,
            "parameters": sum(p.numel() for p in definition.model.parameters()),
            "own_optimizer": definition.optimizer is not None,
            "batch_norm": any(isinstance(m, _BatchNorm) for m in definition.model.modules()),
            "checkpointing": checkpointing.is_possible(definition),
        }

    def measure(self, request: Mapping[str, Any]) -> dict[str, Any]:
        """The outcome of a point, whose memory stays until the next one."""
        recipe = self._begin(request)
        try:
            definition = self._definition(request["workload"]["sequence"])
        except torch.cuda.OutOfMemoryError as error:
            measuring.release_frames(error)
            return measuring.out_of_memory(str(error))
        self._tidy()
        measured = measuring.measure(definition, recipe, request["steps"])
        self._trainer = measured.trainer
        if measured.undo is not None:
            measured.undo()
        else:
            self._altered.add(definition.model)
        return measured.outcome

    def survey(self, request: Mapping[str, Any]) -> tuple[list[dict[str, Any]], str | None]:
        """What each block costs; or nothing, and why not."""
        recipe = self._begin(request)
        try:
            definition = self._definition(request["workload"]["sequence"])
            return surveying.survey(definition, recipe), None
        except (PointFault, Raised, RuntimeError) as error:
            return [], _reason(error)

    def _begin(self, request: Mapping[str, Any]) -> Recipe:
        """Starts afresh, with what the request asks for."""
        self.release()
        self._is_empty = False
        _seed()
        return Recipe.of_request(request["workload"], request["point"])

    def _definition(self, sequence: int | None) -> Definition:
        kept = self._kept
        if kept and kept.sequence == sequence and kept.definition.model not in self._altered:
            return kept.definition
        self._kept = kept = None
        self._collect_strays()
        definition = self._define(sequence)
        if definition.model in self._altered:
            raise Refusal(
                "the function returns the same model again, whose checkpointing cannot be undone; "
                "a fresh worker is needed"
            )
        if self._build_seconds > LONG_SECONDS:
            self._kept = Kept(definition, sequence)
        return definition

    def _define(self, sequence: int | None) -> Definition:
        begun = time.perf_counter()
        with placing.building():
            definition = define(self._function, sequence)
        self._build_seconds = time.perf_counter() - begun
        self._models.add(definition.model)
        return definition

    def release(self) -> None:
        """Leaves the device as a fresh process would find it."""
        if self._is_empty:
            return
        if self._kept and self._trainer and self._build_seconds <= LONG_SECONDS:
            self._kept = None
        self._trainer = None
        self._collect_strays()
        for model in list(self._models):
            placing.take_away(model)
        self._tidy()
        if self._kept and self._left() > 0:
            # The model holds tensors that do not move with it.
            self._kept = None
            self._tidy()
        if self._left() > 0:
            raise Refusal(
                f"{self._left()} bytes of the point before cannot be released; "
                "a fresh worker is needed"
            )
        self._is_empty = True

    def _collect_strays(self) -> None:
        """Has Python look for garbage where a model is left that nobody should hold. It looks
        through all that was ever imported, which takes longer than some points."""
        kept = self._kept and self._kept.definition.model
        if any(model is not kept for model in self._models):
            gc.collect()

    def _tidy(self) -> None:
        """Gives back device memory, and looks for garbage where some is left."""
        placing.empty()
        if self._left() > 0:
            gc.collect()
            placing.empty()

    def _left(self) -> int:
        return torch.cuda.memory_allocated(placing.DEVICE) - self._left_by_import


def _reason(error: BaseException) -> str:
    text = error.message if isinstance(error, PointFault) else in_words(error)
    if isinstance(error, Raised):
        text = f"{error.doing} failed: {in_words(error.error)}"
    measuring.release_frames(error)
    return one_line(text)


def _seed() -> None:
    """What is random is the same for each point."""
    random.seed(0)
    torch.manual_seed(0)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed(0)
