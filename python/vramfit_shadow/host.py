"""The memory of a tensor of the virtual GPU as the host sees it: it can be read and written."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Iterator
from contextlib import contextmanager

import torch
from torch import Tensor


def alias(tensor: Tensor) -> Tensor:
    """A tensor of the CPU over the same memory."""
    return _over(tensor.data_ptr(), tensor.dtype, tensor.size(), tensor.stride())


# It owns nothing, so one over memory that is gone does no harm; a training step uses them again.
@functools.lru_cache(4096)
def _over(
    address: int, dtype: torch.dtype, size: tuple[int, ...], stride: tuple[int, ...]
) -> Tensor:
    over = torch.empty(0, dtype=dtype, device="cpu")
    if 0 in size:
        return over.new_empty(size)
    span = 1 + sum((n - 1) * step for n, step in zip(size, stride, strict=True))
    storage = torch._C._construct_storage_from_data_pointer(
        address, over.device, span * dtype.itemsize
    )
    return over.set_(storage, 0, size, stride)


def write(tensor: Tensor, value: Tensor) -> None:
    """Writes a value of the same shape."""
    same = value.dtype == tensor.dtype and value.stride() == tensor.stride()
    if same and value.is_contiguous():
        # Less ado than a copy by PyTorch.
        ctypes.memmove(tensor.data_ptr(), value.data_ptr(), value.nbytes)
    else:
        alias(tensor).copy_(value)


def fill(tensor: Tensor, number: int) -> None:
    """Writes the same number everywhere."""
    if number == 0 and tensor.is_contiguous():
        ctypes.memset(tensor.data_ptr(), 0, tensor.nbytes)
    else:
        alias(tensor).fill_(number)


@contextmanager
def one_thread() -> Iterator[None]:
    """In this block PyTorch computes on the calling thread alone: for what is small, waking others
    costs more than it saves, and on a busy machine a hundred times more."""
    threads = torch.get_num_threads()
    if threads > 1:
        torch.set_num_threads(1)
    try:
        yield
    finally:
        if threads > 1:
            torch.set_num_threads(threads)
