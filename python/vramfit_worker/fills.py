"""Random fills of large CPU tensors, which only take time where a virtual GPU computes nothing."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

import torch
from torch.nn import init
from torch.overrides import TorchFunctionMode

# Filling less than this takes no time worth saving.
LARGE = 1 << 18

# What PyTorch fills weights with: none are whole numbers, which might be looked up.
OF_WEIGHTS = frozenset({torch.Tensor.normal_, torch.Tensor.uniform_, torch.Tensor.erfinv_})
OF_BATCHES = frozenset({torch.Tensor.normal_, torch.Tensor.uniform_, torch.Tensor.random_})
# What PyTorch's layers call on their weights. Each asks a mode as a whole, before it comes to the
# fill inside it, of which the mode would then not be told.
INITIALISERS = frozenset({init.normal_, init.uniform_, init.kaiming_uniform_})


def left_out() -> AbstractContextManager[Any]:
    """Leaves large fills in place out, and with them the time they take and the memory of the host
    that they would touch. For weights: nothing depends on their values."""
    return _LeaveOut()


def repeated() -> AbstractContextManager[Any]:
    """Fills large tensors with one block of random values over and over, which takes a copy's time.
    For batches: their values may be compared, counted or looked up."""
    return _Repeat()


class _LeaveOut(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in OF_WEIGHTS or func in INITIALISERS:
            tensor = args[0] if args else kwargs["tensor"]
            if _is_large(tensor):
                return tensor
        return func(*args, **kwargs)


class _Repeat(TorchFunctionMode):
    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if func in OF_BATCHES:
            return _fill(args[0], lambda part: func(part, *args[1:], **kwargs))
        new = NEW.get(func)
        tensor = None if new is None or "out" in kwargs else new(*args, **kwargs)
        return func(*args, **kwargs) if tensor is None else tensor


def _randn(*size: Any, generator: torch.Generator | None = None, **how: Any) -> Any:
    return _new(size, how, lambda part: part.normal_(generator=generator))


def _rand(*size: Any, generator: torch.Generator | None = None, **how: Any) -> Any:
    return _new(size, how, lambda part: part.uniform_(generator=generator))


def _randint(*bounds: Any, generator: torch.Generator | None = None, **how: Any) -> Any:
    """`randint(high, size)` or `randint(low, high, size)`; each may be given by its name."""
    *bounds, size = (*bounds, how.pop("size")) if "size" in how else bounds
    bounds += [how.pop(name) for name in ("low", "high") if name in how]
    low, high = (0, *bounds)[-2:]
    if not (isinstance(low, int) and isinstance(high, int)):
        return None
    how.setdefault("dtype", torch.int64)
    return _new((size,), how, lambda part: part.random_(low, high, generator=generator))


NEW: dict[Any, Callable[..., torch.Tensor | None]] = {
    torch.randn: _randn,
    torch.rand: _rand,
    torch.randint: _randint,
}


def _new(
    size: tuple[Any, ...], how: dict[str, Any], fill: Callable[[torch.Tensor], Any]
) -> torch.Tensor | None:
    """A large new tensor; nothing where it would be small."""
    size = (how.pop("size"),) if not size and "size" in how else size
    sizes = size[0] if len(size) == 1 and isinstance(size[0], Sequence) else size
    if math.prod(sizes) < LARGE:
        return None
    requires_grad = how.pop("requires_grad", False)
    return _fill(torch.empty(sizes, **how), fill).requires_grad_(requires_grad)


def _fill(tensor: torch.Tensor, fill: Callable[[torch.Tensor], Any]) -> torch.Tensor:
    if not _is_large(tensor) or not tensor.is_contiguous() or tensor.requires_grad:
        return fill(tensor)
    values = tensor.detach().view(-1)
    fill(values[:LARGE])
    filled = LARGE
    while filled < values.numel():
        more = min(filled, values.numel() - filled)
        values[filled : filled + more] = values[:more]
        filled += more
    return tensor


def _is_large(tensor: torch.Tensor) -> bool:
    return tensor.numel() >= LARGE and tensor.device.type == "cpu"
