"""Results whose size depends on values.

Their kernels count first, read the count back and allocate as much. The count is computed before, and
the virtual GPU is told to let the kernel read it. Where the values are not known, neither is the
count: then it is the highest that is possible, or the lowest, and the interval is noted.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

from .computing import Kernel, Operator, is_capturing, is_small
from .known import alias, known
from .notes import notes
from .places import users_place
from .reading import told_count

Bounds = tuple[int, int]

_TAKE_LOWEST = os.environ.get("VRAMFIT_UNKNOWN_SIZES") == "lowest"
# Told by `nms`, whose kernel finds the boxes to keep by `nonzero`.
_forced: list[int] = []


def counted(operator: Operator) -> Kernel:
    """`nonzero` and `unique`, in all their forms."""

    def kernel(keys: Any, *args: Any, **kwargs: Any) -> Any:
        notes.calls += 1
        values = args[0]
        if is_capturing():
            return operator.call(keys, args, kwargs)
        is_known = not _forced and is_small(values) and known.holds(values)
        if _forced:
            count = _forced.pop()
        elif is_known:
            count = _count(operator, args, kwargs)
        else:
            count = _choose(operator, _bounds(operator, args))
        try:
            with told_count(count):
                out = operator.call(keys, args, kwargs)
        except Exception as error:
            args = values = kwargs = None
            raise error.with_traceback(None)
        results = operator.results(args, kwargs, out)
        if is_known:
            operator.complete(args, kwargs, out, results)
        else:
            operator.settle(results, is_known=False)
            _stand_in(operator, values, results)
        return out

    return kernel


def coalesced(operator: Operator) -> Kernel:
    """A sparse tensor's entries of the same place put together."""

    def kernel(keys: Any, sparse: Tensor) -> Any:
        notes.calls += 1
        indices = sparse._indices()
        entries = indices.shape[1]
        if entries == 0 or is_capturing():
            return operator.call(keys, (sparse,), {})
        if is_small(indices) and known.holds(indices):
            count = torch.unique(alias(indices), dim=1).shape[1]
        else:
            count = _choose(operator, (1, entries))
        with told_count(count):
            return operator.call(keys, (sparse,), {})

    return kernel


def nms(operator: Operator) -> Kernel:
    """torchvision's suppression of boxes that overlap others."""

    def kernel(keys: Any, boxes: Tensor, scores: Tensor, threshold: float) -> Any:
        notes.calls += 1
        args = (boxes, scores, threshold)
        if boxes.shape[0] == 0:
            return operator.call(keys, args, {})
        is_known = is_small(boxes) and known.holds(boxes) and known.holds(scores)
        kept = operator.on_host(args, {}) if is_known else None
        if kept is None:
            count = _choose(operator, (1, boxes.shape[0]))
            kept = torch.arange(count)
        _forced.append(kept.numel())
        try:
            out = operator.call(keys, args, {})
        finally:
            _forced.clear()
        if out.shape == kept.shape:
            alias(out).copy_(kept)
        else:
            notes.failed("nms", f"{tuple(out.shape)} by CUDA, {tuple(kept.shape)} expected")
        operator.settle([out], is_known)
        return out

    return kernel


def _count(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """How many results there are, by the CPU."""
    with torch.no_grad():
        if operator.base == "nonzero":
            return int(torch.count_nonzero(alias(args[0])))
        unique = operator.on_host(args, kwargs)[0]
        return unique.shape[_dimension(operator, args) or 0]


def _bounds(operator: Operator, args: tuple[Any, ...]) -> Bounds:
    """Fewest and most results."""
    if operator.base == "nonzero":
        return 0, args[0].numel()
    dimension = _dimension(operator, args)
    most = args[0].numel() if dimension is None else args[0].shape[dimension]
    return min(1, most), most


def _dimension(operator: Operator, args: tuple[Any, ...]) -> int | None:
    """The dimension along which `unique` compares slices; none where it compares elements."""
    if operator.base in ("unique_dim", "unique_dim_consecutive"):
        return args[1]
    return args[3] if operator.base == "unique_consecutive" and len(args) > 3 else None


def _choose(operator: Operator, bounds: Bounds) -> int:
    count = bounds[0] if _TAKE_LOWEST else bounds[1]
    notes.size(operator.base, users_place(), bounds, count)
    return count


def _stand_in(operator: Operator, values: Tensor, results: list[Tensor]) -> None:
    """Results that may be used as if they were true: indices that exist."""
    notes.stand_ins += 1
    for result in results:
        if operator.base == "nonzero" and result.numel() > 0:
            first = torch.arange(result.shape[0])
            alias(result).copy_(torch.stack(torch.unravel_index(first, values.shape), dim=1))
        else:
            alias(result).zero_()
