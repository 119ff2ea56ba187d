"""Values that come back to the host: true ones, and with their line those that are stand-ins."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor

from vramfit_torch.places import users_place

from .computing import Kernel, Operator, is_capturing, is_small
from .host import alias, one_thread
from .known import known
from .library import require
from .notes import notes

_library = require()


class _Thread(threading.local):
    """Whether the calling thread is in a kernel whose read-backs are accounted for already."""

    within = False


_thread = _Thread()


@contextmanager
def told_count(count: int) -> Iterator[None]:
    """In this block a kernel that reads back its number of results reads `count`."""
    _thread.within = True
    _library.expect_count(count)
    try:
        yield
    finally:
        _thread.within = False
        if _library.drop_count() and count:
            notes.failed("count", f"{count} was not asked for")


def item(operator: Operator) -> Kernel:
    """`Tensor.item()` and all that comes to it: `bool(tensor)`, `if tensor:`."""

    def kernel(keys: Any, tensor: Tensor) -> Any:
        if _thread.within:
            return operator.call(keys, (tensor,), {})
        with _accounted(tensor):
            return operator.call(keys, (tensor,), {})

    return kernel


def equal(operator: Operator) -> Kernel:
    """`torch.equal`, which compares within its kernel and reads the answer back there."""

    def kernel(keys: Any, first: Tensor, second: Tensor) -> bool:
        notes.calls += 1
        is_known = known.holds(first) and known.holds(second)
        _thread.within = True
        _library.account(1)
        try:
            operator.call(keys, (first, second), {})
        finally:
            _library.account(0)
            _thread.within = False
        if is_small(first) and is_small(second):
            notes.computed += 1
            answer = operator.on_host((first, second), {})
        else:
            notes.stand_ins += 1
            answer = False
        # Of different sizes, they are different whatever they hold.
        if not is_known and first.shape == second.shape:
            notes.read(users_place(), "bool", 1)
        return answer

    return kernel


def copy(operator: Operator) -> Kernel:
    """Copies: within the device, to it, and back from it."""

    def kernel(keys: Any, *args: Any, **kwargs: Any) -> Any:
        notes.calls += 1
        values = operator.boxed(args)
        target, source = values[0], values[1]
        try:
            if target.is_cuda or not source.is_cuda:
                out = operator.call(keys, values, kwargs)
            else:
                with _accounted(source):
                    out = operator.call(keys, values, kwargs)
        except Exception as error:
            args, values = (), ()
            del target, source
            raise error.with_traceback(None)
        if is_small(target) and not is_capturing():
            _bring(operator, target, source)
        return out

    return kernel


def _bring(operator: Operator, target: Tensor, source: Tensor) -> None:
    """What the copy's kernel would have done, where it converts, broadcasts or is large."""
    on_host = alias(target) if target.is_cuda else target.detach()
    with torch.no_grad(), one_thread():
        if is_small(source):
            on_host.copy_(alias(source) if source.is_cuda else source)
            notes.computed += 1
        else:
            on_host.zero_()
            notes.stand_ins += 1
    if target.is_cuda:
        operator.settle([target], is_small(source) and known.holds(source))


def _arrived(source: Tensor) -> bool:
    """Whether it came as it is from the host or from other ranks: that is no operator's doing."""
    size = source.numel() * source.element_size()
    return source.is_contiguous() and bool(_library.is_known(source.data_ptr(), size))


@contextmanager
def _accounted(source: Tensor) -> Iterator[None]:
    """In this block `source` is read back, and it is noted here if it is not known."""
    if not known.holds(source) and not _arrived(source):
        element = str(source.dtype).removeprefix("torch.")
        notes.read(users_place(), element, source.numel() * source.element_size())
    _library.account(1)
    try:
        yield
    finally:
        _library.account(0)
