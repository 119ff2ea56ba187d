"""Activation checkpointing of a model that vramfit did not write."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

from torch import nn
from torch.utils.checkpoint import checkpoint

from .definition import Definition
from .faults import PointFault, users

NO_BLOCKS = (
    "the model has no repeated blocks to checkpoint; `checkpoint` can name modules or be a function"
)
CONTAINERS = (nn.ModuleList, nn.Sequential, nn.ModuleDict)
# Methods by which models of Hugging Face (by the newer name and the older), then of diffusers,
# switch their own checkpointing.
SWITCHES = (
    ("activation_checkpointing_enable", "activation_checkpointing_disable"),
    ("gradient_checkpointing_enable", "gradient_checkpointing_disable"),
    ("enable_gradient_checkpointing", "disable_gradient_checkpointing"),
)

Action = Callable[[], Any]


def is_possible(definition: Definition) -> bool:
    """Whether checkpointing can be switched on in full."""
    model = definition.model
    return bool(definition.checkpoint or _switch(model) or _blocks(model))


def switch_on(definition: Definition, wanted: str) -> Action | None:
    """Switches checkpointing on as `wanted`: none, full or every-n. Gives what undoes it, if
    anything does."""
    model, own = definition.model, definition.checkpoint
    if wanted == "none":
        return _nothing
    every = int(wanted.partition("-")[2]) if wanted.startswith("every-") else 1
    if callable(own):
        if every > 1:
            raise PointFault(
                f"`checkpoint` is a function, which cannot do {wanted}; a list of modules can"
            )
        with users("`checkpoint`"):
            own(model)
        return None
    switch = _switch(model)
    if own is None and every == 1 and switch is not None:
        on, off = switch
        with users("the model's own checkpointing"):
            on()
        return off
    return _wrap([model.get_submodule(name) for name in own] if own else _blocks(model), every)


def _nothing() -> None:
    return None


def _wrap(blocks: list[nn.Module], every: int) -> Action:
    """Wraps the first of each `every` blocks in a row."""
    if not blocks:
        raise PointFault(NO_BLOCKS)
    undo = [_wrap_one(block) for block in blocks[::every]]
    return lambda: [one() for one in undo]


def _wrap_one(block: nn.Module) -> Action:
    own = vars(block).get("forward")
    block.forward = functools.partial(checkpoint, block.forward, use_reentrant=False)
    if own is not None:
        return functools.partial(setattr, block, "forward", own)
    return functools.partial(delattr, block, "forward")


def _switch(model: nn.Module) -> tuple[Action, Action | None] | None:
    """What switches the model's own checkpointing on, and off again."""
    if not getattr(model, "supports_gradient_checkpointing", True):
        return None
    for name, opposite in SWITCHES:
        method = getattr(model, name, None)
        if callable(method):
            return functools.partial(_without_reentry, method), getattr(model, opposite, None)
    timm = getattr(model, "set_grad_checkpointing", None)
    if callable(timm):
        return functools.partial(timm, True), functools.partial(timm, False)
    return None


def _without_reentry(method: Callable[..., Any]) -> None:
    try:
        method({"use_reentrant": False})
    except TypeError:
        method()


def _blocks(model: nn.Module) -> list[nn.Module]:
    """The repeated blocks: the children of the container with the most parameters whose children
    are all of one class, and all others of that class in such containers."""
    rows = list(_rows(model))
    if not rows:
        return []
    most = max(rows, key=lambda row: sum(p.numel() for block in row for p in block.parameters()))
    kind = type(most[0])
    blocks: list[nn.Module] = []
    for row in rows:
        inside = {id(module) for block in blocks for module in block.modules()}
        if type(row[0]) is kind and id(row[0]) not in inside:
            blocks.extend(row)
    return blocks


def _rows(model: nn.Module) -> Iterator[list[nn.Module]]:
    for module in model.modules():
        row = list(module.children()) if isinstance(module, CONTAINERS) else []
        alike = len(row) > 1 and all(type(child) is type(row[0]) for child in row)
        # A layer without parts saves its input either way.
        if alike and next(row[0].children(), None) is not None:
            yield row
