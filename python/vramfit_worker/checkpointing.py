"""Activation checkpointing of a model that vramfit did not write."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
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

# Under which names layers of transformers get a cache of keys and values to add to, which a layer
# that runs twice would add to twice. Their own checkpointing takes it from them too.
CACHES = ("past_key_values", "past_key_value", "layer_past")

Action = Callable[[], Any]


def is_possible(definition: Definition) -> bool:
    """Whether checkpointing can be switched on in full."""
    model = definition.model
    return bool(definition.checkpoint or _switch(model) or _blocks(model))


def switch_on(definition: Definition, wanted: str | Mapping[str, Any]) -> Action | None:
    """Switches checkpointing on as `wanted`, in the words of the protocol: none, full, every n-th
    block or those that are listed. Gives what undoes it, if anything does."""
    model, own = definition.model, definition.checkpoint
    if wanted == "none":
        return _nothing
    if wanted == "full" and callable(own):
        with users("`checkpoint`"):
            own(model)
        return None
    switch = _switch(model)
    if wanted == "full" and own is None and switch is not None:
        on, off = switch
        with users("the model's own checkpointing"):
            on()
        return off
    undo = [replace_forward(block, checkpointed) for block in _chosen(blocks(definition), wanted)]
    return lambda: [one() for one in undo]


def blocks(definition: Definition) -> list[nn.Module]:
    """The blocks that can be checkpointed one by one, in the order of the model."""
    model, own = definition.model, definition.checkpoint
    if callable(own):
        raise PointFault(
            "`checkpoint` is a function, which does all or nothing; a list of modules can be done "
            "in part"
        )
    found = [model.get_submodule(name) for name in own] if own else _blocks(model)
    if not found:
        raise PointFault(NO_BLOCKS)
    return found


def replace_forward(block: nn.Module, run: Callable[..., Any]) -> Action:
    """Has `run` called with the block's own forward and its arguments. Gives what undoes it."""
    own = vars(block).get("forward")
    block.forward = functools.partial(run, block.forward)
    if own is not None:
        return functools.partial(setattr, block, "forward", own)
    return functools.partial(delattr, block, "forward")


def checkpointed(forward: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Runs a block whose activations are computed again in the backward pass."""
    return checkpoint(forward, *args, use_reentrant=False, **without_cache(kwargs))


def without_cache(kwargs: dict[str, Any]) -> dict[str, Any]:
    """Arguments of a block that may run twice."""
    none = {name: None for name in CACHES if name in kwargs}
    return kwargs | none | ({"use_cache": False} if "use_cache" in kwargs else {})


def _chosen(found: list[nn.Module], wanted: str | Mapping[str, Any]) -> list[nn.Module]:
    if isinstance(wanted, str):
        return found
    if "every" in wanted:
        return found[:: wanted["every"]]
    last = max(wanted["blocks"], default=0)
    if last >= len(found):
        raise PointFault(
            f"block {last} is to be checkpointed, and the model has {len(found)}, from 0"
        )
    return [found[index] for index in wanted["blocks"]]


def _nothing() -> None:
    return None


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
