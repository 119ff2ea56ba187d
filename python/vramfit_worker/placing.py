"""The model and its batches onto the device, and the device empty again."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import nn

from . import fills

DEVICE = torch.device("cuda", 0)


def building() -> AbstractContextManager[Any]:
    """Where the user's function is called. A virtual GPU computes nothing, so that no value of a
    weight matters. (On the device itself nothing is built: what a model computes to decide how it
    is built, such as rates of stochastic depth, must come out right.)"""
    return fills.left_out() if _is_virtual() else nullcontext()


def batching() -> AbstractContextManager[Any]:
    """Where the user's batches are made."""
    return fills.repeated() if _is_virtual() else nullcontext()


@functools.cache
def _is_virtual() -> bool:
    return torch.cuda.get_device_name(DEVICE).endswith("(virtual)")


def place(model: nn.Module, device: torch.device = DEVICE) -> None:
    """Moves the model to the device; one without values gets some."""
    if any(tensor.is_meta for tensor in _tensors(model)):
        model.to_empty(device=device)
        with torch.no_grad():
            for tensor in _tensors(model):
                _fill(tensor)
    else:
        model.to(device)


def take_away(model: nn.Module) -> None:
    """Moves the model to the CPU, without gradients, so that its next point finds it as its first
    one did."""
    model.zero_grad(set_to_none=True)
    if _is_virtual():
        # Its values are none, and copying them would count as reading them.
        model.to_empty(device="cpu")
    else:
        model.to("cpu")


def on_device(batch: Any, device: torch.device = DEVICE) -> Any:
    """A batch, whatever it is made of, on the device."""
    if callable(getattr(batch, "to", None)):
        return batch.to(device)
    return over_parts(batch, lambda part: on_device(part, device))


def over_parts(batch: Any, change: Callable[[Any], Any]) -> Any:
    """A batch with each of its parts changed; what has no parts stays."""
    if isinstance(batch, (list, tuple)):
        parts = [change(part) for part in batch]
        return type(batch)(*parts) if hasattr(batch, "_fields") else type(batch)(parts)
    if isinstance(batch, Mapping):
        return {key: change(part) for key, part in batch.items()}
    if dataclasses.is_dataclass(batch) and not isinstance(batch, type):
        names = [field.name for field in dataclasses.fields(batch)]
        return dataclasses.replace(batch, **{n: change(getattr(batch, n)) for n in names})
    return batch


def empty() -> None:
    """Gives back all device memory that is not in use."""
    torch.cuda.synchronize()
    clear_workspaces = getattr(torch._C, "_cuda_clearCublasWorkspaces", None)
    if clear_workspaces is not None:
        clear_workspaces()
    torch.cuda.empty_cache()


def _tensors(model: nn.Module) -> Iterator[torch.Tensor]:
    return itertools.chain(model.parameters(), model.buffers())


def _fill(tensor: torch.Tensor) -> None:
    if tensor.is_floating_point() and tensor.requires_grad:
        tensor.normal_(0.0, 0.02)
    else:
        tensor.zero_()
