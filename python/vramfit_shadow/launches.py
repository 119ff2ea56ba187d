"""Kernels that are no operator's of PyTorch: those that Triton compiles, and a library's own.

PyTorch counts no version of what Triton's kernels write. Each launch makes the tensors unknown that
it may have written. Nor do their names tell what they read and write: the virtual GPU is told. A module of Triton or Inductor is looked at only once the program has imported
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
from .library import require

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
    library = require()
    if hasattr(run, "__wrapped__"):
        return

    @functools.wraps(run)
    def watched(kernel: Any, *args: Any, **kwargs: Any) -> Any:
        # Looking at a launch takes none of the program's time.
        library.pause()
        try:
            known.catch_up()
            library.expect_bytes(_touched(kernel, args, kwargs))
        finally:
            library.resume()
        try:
            result = run(kernel, *args, **kwargs)
        finally:
            library.expect_bytes(0)
        for value in written(kernel, args, kwargs):
            if isinstance(value, Tensor) and value.is_cuda:
                known.forget(value)
        return result

    kernels.run = watched


def _touched(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> int:
    """Bytes of the tensors that a launch is given, each once, but twice what Inductor says is read and
    written."""
    names = getattr(getattr(kernel, "fn", None), "arg_names", ())
    total = 0
    for index, value in enumerate((*args, *kwargs.values())):
        if isinstance(value, Tensor) and value.is_cuda:
            twice = index < len(names) and names[index].startswith("in_out_ptr")
            total += _size(value) * (2 if twice else 1)
    return total


def _size(tensor: Tensor) -> int:
    """Bytes of the elements that lie in places of their own."""
    size = tensor.element_size()
    for length, stride in zip(tensor.shape, tensor.stride(), strict=True):
        size *= length if stride else 1
    return size


def _of_triton(_: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterable[Any]:
    # A pointer may be read or written, the signature does not tell: all may have been written.
    return () if kwargs.get("warmup") else (*args, *kwargs.values())


def _of_inductor(kernel: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Iterable[Any]:
    # Inductor names what it only reads `in_ptr0`, `in_ptr1` and so on, but for what it mutates.
    for name, value in (*zip(kernel.fn.arg_names, args, strict=False), *kwargs.items()):
        if not name.startswith("in_ptr") or name in kernel.mutated_arg_names:
            yield value
