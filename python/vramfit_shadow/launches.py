"""Kernels that are no operator's of PyTorch: those that Triton compiles, and a library's own.

PyTorch counts no version of what Triton's kernels write. Each launch makes the tensors unknown that
it may have written. A module of Triton or Inductor is looked at only once the program has imported
it.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from .known import known

TRITON = "triton.runtime.jit"
INDUCTOR = "torch._inductor.runtime.triton_heuristics"


def watch_custom() -> None:
    """Watches operators of `torch.library.custom_op`, which count by this function what they write,
    before they do so."""
    count = torch.autograd.graph.increment_version

    @functools.wraps(count)
    def watched(tensor: Tensor | Iterable[Tensor]) -> None:
        written = (tensor,) if isinstance(tensor, Tensor) else tuple(tensor)
        for it in written:
            known.forget(it)
        count(written)

    torch.autograd.graph.increment_version = watched


def watch_imported() -> None:
    """Watches the launches of what is imported by now."""
    if TRITON in sys.modules:
        _wrap(sys.modules[TRITON].JITFunction, _of_triton)
    if INDUCTOR in sys.modules:
        _wrap(sys.modules[INDUCTOR].CachingAutotuner, _of_inductor)


def _wrap(
    kernels: Any, written: Callable[[Any, tuple[Any, ...], dict[str, Any]], Iterable[Any]]
) -> None:
    run = kernels.run
    if hasattr(run, "__wrapped__"):
        return

    @functools.wraps(run)
    def watched(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        known.catch_up()
        result = run(kernel, *args, **kwargs)
        for value in written(kernel, args, kwargs):
            if isinstance(value, Tensor) and value.is_cuda:
                known.forget(value)
        return result

    kernels.run = watched


def _of_triton(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterable[Any]:
    # A pointer may be read or written, the signature does not tell: all may have been written.
    return () if kwargs.get("warmup") else (*args, *kwargs.values())


def _of_inductor(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterable[Any]:
    # Inductor names what it only reads `in_ptr0`, `in_ptr1` and so on, but for what it mutates.
    for name, value in (*zip(kernel.fn.arg_names, args, strict=False), *kwargs.items()):
        if not name.startswith("in_ptr") or name in kernel.mutated_arg_names:
            yield value
