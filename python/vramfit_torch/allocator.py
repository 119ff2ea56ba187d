"""PyTorch's allocator: its peaks over the whole run, and in which words there is no memory."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass

import torch

# In which PyTorch, CUDA and its libraries say so. Where cuDNN finds no engine for lack of memory,
# the allocator has counted that.
OUT_OF_MEMORY = (
    "CUDA out of memory",
    # With `backend:cudaMallocAsync`.
    "would exceed allowed memory. (out of memory)",
    "CUDA error: out of memory",
    "CUBLAS_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_ALLOC_FAILED",
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED",
    "CUSOLVER_STATUS_ALLOC_FAILED",
    "CUFFT_ALLOC_FAILED",
)


def says_out_of_memory(text: str) -> bool:
    """Whether a message tells of missing memory."""
    return any(words in text for words in OUT_OF_MEMORY)


@dataclass
class Device:
    """PyTorch's own statistics of one device, in bytes, of the whole run."""

    index: int
    allocated_peak: int = 0
    reserved_peak: int = 0
    retries: int = 0


def observe_out_of_memory(observer: Callable[[int, int, int, int], None]) -> None:
    """Has `observer` told of each request that finds no memory: device, requested, total and free
    bytes. Only PyTorch's own allocator can; with another (`backend:cudaMallocAsync`) nothing tells
    but the error that the program gets."""
    if torch.cuda.get_allocator_backend() == "native":
        torch._C._cuda_attach_out_of_memory_observer(observer)  # type: ignore[attr-defined]


_devices: dict[int, Device] = {}


@functools.cache
def keep_peaks() -> None:
    """Remembers peaks from now on that the program has PyTorch forget."""
    reset = torch._C._cuda_resetPeakMemoryStats

    def note_then_reset(index: int) -> None:
        _note(index)
        reset(index)

    torch._C._cuda_resetPeakMemoryStats = note_then_reset


def devices() -> list[Device]:
    """The devices that were used so far."""
    if torch.cuda.is_initialized():
        for index in range(torch.cuda.device_count()):
            _note(index)
    return [it for _, it in sorted(_devices.items()) if it.reserved_peak or it.retries]


def _note(index: int) -> None:
    stats = torch._C._cuda_memoryStats(index)
    device = _devices.setdefault(index, Device(index))
    device.allocated_peak = max(device.allocated_peak, stats["allocated_bytes"]["all"]["peak"])
    device.reserved_peak = max(device.reserved_peak, stats["reserved_bytes"]["all"]["peak"])
    device.retries = max(device.retries, stats["num_alloc_retries"])
