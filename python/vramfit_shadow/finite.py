"""Stand-ins stay finite.

A stand-in is 0 where the true value would not be, and a logarithm or a quotient of it is infinite.
Programs stop at such a loss, which no real GPU would have given them. Infinities that the program
itself brings in (a mask of minus infinity) stay.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from .host import alias, one_thread


def finite_so_far(args: Sequence[Any], kwargs: dict[str, Any], results: list[Tensor]) -> bool:
    """Whether an operator with floating-point results is given nothing infinite. Asked before it is
    computed, since it may overwrite what it is given."""
    if not any(it.is_floating_point() for it in results):
        return False
    with torch.no_grad(), one_thread():
        return _all_finite(args) and _all_finite(tuple(kwargs.values()))


def keep_finite(results: list[Tensor], stand_in: int) -> None:
    """Puts the stand-in wherever a result is not finite."""
    with torch.no_grad(), one_thread():
        for result in results:
            if result.is_floating_point() and not _all_finite((result,)):
                on_host = alias(result)
                on_host[~torch.isfinite(on_host)] = stand_in


def _all_finite(values: Sequence[Any]) -> bool:
    for value in values:
        if isinstance(value, Tensor):
            on_host = alias(value) if value.is_cuda else value
            if value.is_floating_point() and not bool(torch.isfinite(on_host).all()):
                return False
        elif isinstance(value, float):
            if not math.isfinite(value):
                return False
        elif isinstance(value, (list, tuple)) and not _all_finite(value):
            return False
    return True
