"""What happens to the program besides operators: out of memory, its end, PyTorch's peaks."""

from __future__ import annotations

import atexit
import contextlib
import os
import re
import sys
from typing import Any, NoReturn

import torch

from . import library
from .notes import MOST_LISTED, notes
from .places import users_place_of, users_places

# Lines kept for each request that found no memory.
DEPTH = 8
# How CUDA's libraries, which PyTorch does not ask for memory, say that there is none.
OUT_OF_MEMORY = re.compile(
    r"CUDA (error: )?out of memory|CUBLAS_STATUS_ALLOC_FAILED|CUDNN_STATUS_ALLOC_FAILED"
    r"|CUSOLVER_STATUS_ALLOC_FAILED|CUFFT_ALLOC_FAILED"
)


def begin() -> None:
    """Watches from now on, and hands the notes over when the interpreter ends."""
    # What makes PyTorch load CUDA must not happen now, only once the program does so.
    torch.cuda._lazy_call(_watch_allocator)
    atexit.register(_end)
    _wrap_leaving()


def _wrap_leaving() -> None:
    """Forked children of `multiprocessing` end so, without the interpreter's end."""
    leave = os._exit

    def told(status: int) -> NoReturn:
        with contextlib.suppress(Exception):
            _end()
            library.require().report()
        leave(status)

    os._exit = told


def _watch_allocator() -> None:
    try:
        _attach()
    except Exception as error:
        # PyTorch would end the program for it.
        notes.failed("watch", f"{type(error).__name__}: {error}")


def _attach() -> None:
    torch._C._cuda_attach_out_of_memory_observer(  # type: ignore[attr-defined]
        _note_out_of_memory
    )
    reset = torch._C._cuda_resetPeakMemoryStats

    def note_then_reset(device: int) -> None:
        _note_peaks(device)
        reset(device)

    torch._C._cuda_resetPeakMemoryStats = note_then_reset


def _note_out_of_memory(device: int, requested: int, total: int, free: int) -> None:
    key = (device, requested, users_places(DEPTH))
    if key in notes.out_of_memory or len(notes.out_of_memory) < MOST_LISTED:
        notes.out_of_memory[key] = notes.out_of_memory.get(key, 0) + 1


def _note_peaks(device: int) -> None:
    stats: dict[str, Any] = torch._C._cuda_memoryStats(device)
    seen = notes.allocators.setdefault(
        device, {"allocated_peak_bytes": 0, "reserved_peak_bytes": 0, "retries": 0}
    )
    for name, value in (
        ("allocated_peak_bytes", stats["allocated_bytes"]["all"]["peak"]),
        ("reserved_peak_bytes", stats["reserved_bytes"]["all"]["peak"]),
        ("retries", stats["num_alloc_retries"]),
    ):
        seen[name] = max(seen[name], value)


def _note_end() -> None:
    # The interpreter leaves here the exception that it prints because nobody caught it.
    error = getattr(sys, "last_value", None)
    if isinstance(error, BaseException):
        text = str(error)
        out_of_memory = isinstance(error, torch.OutOfMemoryError) or OUT_OF_MEMORY.search(text)
        place = users_place_of(getattr(sys, "last_traceback", None))
        notes.ended_by = {
            "exception": type(error).__name__,
            "message": text.partition("\n")[0],
            "out_of_memory": bool(out_of_memory),
            "place": None if place is None else place._asdict(),
        }


def _end() -> None:
    # A child that was forked from a process with CUDA has its parent's notes, and no report of its own.
    if torch.cuda._is_in_bad_fork():
        return
    _note_end()
    hand_over()


def hand_over() -> None:
    """Gives the notes to the virtual GPU as they are now."""
    if torch.cuda.is_initialized():
        for device in range(torch.cuda.device_count()):
            _note_peaks(device)
        for device in [it for it, peaks in notes.allocators.items() if not any(peaks.values())]:
            del notes.allocators[device]
    notes.hand_over(library.require())
