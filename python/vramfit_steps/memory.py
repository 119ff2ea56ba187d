"""Whose bytes are whose, as the program's own tensors tell, in bytes on one device.

A storage that several tensors share counts once.
"""

from __future__ import annotations

import gc
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import torch
from torch import nn


def weights() -> int:
    """Parameters and buffers of all modules there are."""
    # `type` rather than `isinstance`: objects that pretend to be of another class may do anything
    # when they are asked.
    modules = [it for it in gc.get_objects() if issubclass(type(it), nn.Module)]
    own = (
        tensor
        for module in modules
        for tensors in (module.__dict__.get("_parameters"), module.__dict__.get("_buffers"))
        for tensor in (tensors or {}).values()
    )
    return held(own)


def gradients(optimizers: Iterable[torch.optim.Optimizer]) -> int:
    """Gradients of what the optimizers train."""
    return held(parameter.grad for parameter in _parameters(optimizers))


def state(optimizers: Iterable[torch.optim.Optimizer]) -> int:
    """What the optimizers keep between steps."""
    return held(tensor for optimizer in optimizers for tensor in _tensors(optimizer.state))


def trains_on_gpu(optimizer: torch.optim.Optimizer) -> bool:
    """Whether one of its parameters is on a GPU."""
    return any(parameter.is_cuda for parameter in _parameters([optimizer]))


def held(tensors: Iterable[Any]) -> int:
    """Bytes of the CUDA storages behind tensors; what is none is passed over."""
    storages: dict[int, int] = {}
    for tensor in tensors:
        local = _local(tensor)
        if local is not None and local.is_cuda:
            storage = local.untyped_storage()
            storages[storage.data_ptr()] = storage.nbytes()
    return sum(storages.values())


def _local(tensor: Any) -> torch.Tensor | None:
    if not issubclass(type(tensor), torch.Tensor):
        return None
    # What this rank has of a tensor that several share (FSDP, tensor parallelism).
    to_local = getattr(tensor, "to_local", None)
    local = tensor if to_local is None else to_local()
    return local if issubclass(type(local), torch.Tensor) else None


def _parameters(optimizers: Iterable[torch.optim.Optimizer]) -> Iterator[torch.Tensor]:
    for optimizer in optimizers:
        for group in optimizer.param_groups:
            yield from group["params"]


def _tensors(value: Any) -> Iterator[torch.Tensor]:
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, Mapping):
        for item in value.values():
            yield from _tensors(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from _tensors(item)
