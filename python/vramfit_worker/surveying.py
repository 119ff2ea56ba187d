"""What each block of a model leaves for the backward pass, and how long it takes."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch.utils._pytree import tree_map

from . import checkpointing
from .definition import Definition
from .faults import PointFault
from .placing import DEVICE, place
from .training import Recipe, Trainer, now


@dataclass
class BlockCost:
    """By the names of the protocol."""

    saved: int
    output: int
    seconds: float


def survey(definition: Definition, recipe: Recipe) -> list[dict[str, Any]]:
    """Runs each block by itself in one forward pass. Otherwise all are checkpointed, so that no
    more than one block at a time is whole in memory."""
    found = checkpointing.blocks(definition)
    # Of each block, one entry each time that it runs.
    costs: list[list[BlockCost]] = [[] for _ in found]
    place(definition.model)
    undo = [
        checkpointing.replace_forward(block, functools.partial(_run, cost))
        for block, cost in zip(found, costs, strict=True)
    ]
    try:
        trainer = Trainer(definition, recipe)
        trainer.forward(recipe.micro_batch)
    finally:
        for one in undo:
            one()
    if any(len(cost) != 1 for cost in costs):
        raise PointFault("the model does not run each of its blocks once in a forward pass")
    return [asdict(cost) for (cost,) in costs]


def _run(
    costs: list[BlockCost], forward: Callable[..., Any], *args: Any, **kwargs: Any
) -> Any:
    kwargs = checkpointing.without_cache(kwargs)
    # The first time, libraries choose and load kernels.
    forward(*args, **kwargs)
    # Cast copies of weights are the block's own: it must make them, and they must go with it.
    torch.clear_autocast_cache()
    before, start = _live(), now()
    output = forward(*args, **kwargs)
    seconds, after = start.until(now()).device_seconds(), _live()
    output = tree_map(_detached, output)
    torch.clear_autocast_cache()
    left = _live()
    del output
    costs.append(BlockCost(max(after - left, 0), max(left - before, 0), seconds))
    return checkpointing.checkpointed(forward, *args, **kwargs)


def _detached(part: Any) -> Any:
    return part.detach() if isinstance(part, torch.Tensor) else part


def _live() -> int:
    return torch.cuda.memory_allocated(DEVICE)
