"""Results whose size depends on values.

Their kernels count first, read the count back and allocate as much. The count is computed before,
and the virtual GPU is told to let the kernel read it. Where the values are not known, neither is
the count: then it is the highest that is possible, or the lowest, and the interval is noted.
"""

from __future__ import annotations

import os
from typing import Any

import torch
from torch import Tensor

from vramfit_torch.places import users_place

from .computing import Kernel, Operator, is_capturing, is_small
from .host import alias, fill, one_thread, write
from .known import known
from .notes import notes
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
            count = _guess(operator, args, kwargs)
        try:
            with told_count(count):
                out = operator.call(keys, args, kwargs)
        except Exception as error:
            args, kwargs = (), {}
            del values
            raise error.with_traceback(None)
        results = operator.results(args, kwargs, out)
        if is_known:
            operator.complete(args, kwargs, out, results)
        else:
            operator.settle(results, is_known=False)
            _stand_in(operator, args, out, results)
        return out

    return kernel


def coalesced(operator: Operator) -> Kernel:
    """A sparse tensor's entries of the same place put together."""

    def kernel(keys: Any, sparse: Tensor) -> Any:
        notes.calls += 1
        indices = sparse._indices()
        if indices.shape[1] == 0 or is_capturing():
            return operator.call(keys, (sparse,), {})
        with told_count(_places(operator, indices)):
            return operator.call(keys, (sparse,), {})

    return kernel


def pooled(operator: Operator) -> Kernel:
    """A softmax over one dimension of a sparse tensor: a sum for each place in the others."""

    def kernel(keys: Any, sparse: Tensor, dim: int, *others: Any) -> Any:
        notes.calls += 1
        args = (sparse, dim, *others)
        indices = sparse._indices()
        dimension = dim % sparse.dim()
        if indices.shape[1] == 0 or dimension >= indices.shape[0] or is_capturing():
            return operator.call(keys, args, {})
        rest = [row for row in range(indices.shape[0]) if row != dimension]
        count = _places(operator, indices, rest) if rest else 1
        with told_count(count):
            return operator.call(keys, args, {})

    return kernel


def _places(operator: Operator, indices: Tensor, rows: list[int] | None = None) -> int:
    """How many different places the indices of a sparse tensor name, in these dimensions."""
    if is_small(indices) and known.holds(indices):
        with one_thread():
            host = alias(indices)
            return torch.unique(host if rows is None else host[rows], dim=1).shape[1]
    return _choose(operator, (1, indices.shape[1]))


def nms(operator: Operator) -> Kernel:
    """torchvision's suppression of boxes that overlap others."""

    def kernel(keys: Any, boxes: Tensor, scores: Tensor, threshold: float) -> Any:
        notes.calls += 1
        args = (boxes, scores, threshold)
        if boxes.shape[0] == 0:
            return operator.call(keys, args, {})
        is_known = is_small(boxes) and known.holds(boxes) and known.holds(scores)
        with torch.no_grad(), one_thread():
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
            write(out, kept)
        else:
            notes.failed("nms", f"{tuple(out.shape)} by CUDA, {tuple(kept.shape)} expected")
        operator.settle([out], is_known)
        return out

    return kernel


def _count(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """How many results there are, by the CPU."""
    with torch.no_grad(), one_thread():
        if operator.base == "nonzero":
            return int(torch.count_nonzero(alias(args[0])))
        unique = operator.on_host(args, kwargs)[0]
        return unique.shape[_dimension(operator, args) or 0]


def _guess(operator: Operator, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """How many results to go on with."""
    values = args[0]
    if operator.base == "nonzero":
        return _choose(operator, (0, values.numel()))
    dimension = _dimension(operator, args)
    most = values.numel() if dimension is None else values.shape[dimension]
    # That all values differ is possible but not likely: programs loop over what they find.
    stand_ins = _count(operator, args, kwargs) if is_small(values) else most
    return _choose(operator, (min(1, most), most), stand_ins)


def _dimension(operator: Operator, args: tuple[Any, ...]) -> int | None:
    """The dimension along which `unique` compares slices; none where it compares elements."""
    if operator.base in ("unique_dim", "unique_dim_consecutive"):
        return args[1]
    # unique_consecutive(self, return_inverse, return_counts, dim)
    return next(iter(args[3:]), None) if operator.base == "unique_consecutive" else None


def _choose(operator: Operator, bounds: Bounds, likely: int | None = None) -> int:
    lowest, highest = bounds
    count = lowest if _TAKE_LOWEST else highest if likely is None else likely
    notes.size(operator.base, users_place(), bounds, count)
    return count


def _stand_in(
    operator: Operator, args: tuple[Any, ...], out: Any, results: list[Tensor]
) -> None:
    """Results that may be used as if they were true: indices that exist, counts that add up."""
    notes.stand_ins += 1
    with torch.no_grad(), one_thread():
        for result in results:
            if operator.base == "nonzero" and result.numel() > 0:
                first = torch.arange(result.shape[0])
                write(result, torch.stack(torch.unravel_index(first, args[0].shape), dim=1))
            else:
                fill(result, 0)
        if operator.base != "nonzero":
            dimension = _dimension(operator, args)
            total = args[0].numel() if dimension is None else args[0].shape[dimension]
            _partition(total, out[0].shape[dimension or 0], *out[1:])


def _partition(
    total: int, found: int, inverse: Tensor, counts: Tensor | None = None
) -> None:
    """Which of `found` results each of `total` values is, and how often each was there, where that
    is asked for: the first as often as leaves one for each of the others."""
    first = total - found
    if inverse.numel() == total and is_small(inverse):
        write(inverse, (torch.arange(total) - first).clamp(min=0).reshape(inverse.shape))
    if counts is not None and 0 < found == counts.numel() and is_small(counts):
        alias(counts).fill_(1)[0] += first
