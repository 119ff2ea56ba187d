"""What happens to the program besides operators: out of memory, its end, PyTorch's peaks."""

from __future__ import annotations

import atexit
import contextlib
import os
import sys
import threading
from typing import NoReturn

import torch

from vramfit_torch import allocator, ending
from vramfit_torch.places import users_place_of, users_places

from . import library
from .notes import MOST_LISTED, notes

# Lines kept for each request that found no memory.
DEPTH = 8
# Seconds that autograd's threads may take to come to rest at the program's end.
PATIENCE = 10


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
    allocator.observe_out_of_memory(_note_out_of_memory)
    allocator.keep_peaks()


def _note_out_of_memory(device: int, requested: int, total: int, free: int) -> None:
    key = (device, requested, users_places(DEPTH))
    if key in notes.out_of_memory or len(notes.out_of_memory) < MOST_LISTED:
        notes.out_of_memory[key] = notes.out_of_memory.get(key, 0) + 1


def _note_end() -> None:
    # The interpreter leaves here the exception that it prints because nobody caught it.
    error = getattr(sys, "last_value", None)
    if isinstance(error, BaseException):
        text = str(error)
        raised = isinstance(error, torch.OutOfMemoryError)
        place = users_place_of(getattr(sys, "last_traceback", None))
        notes.ended_by = {
            "exception": type(error).__name__,
            "message": text.partition("\n")[0],
            "out_of_memory": raised or allocator.says_out_of_memory(text),
            "place": None if place is None else place._asdict(),
        }


def _end() -> None:
    # A child that was forked from a process with CUDA has its parent's notes, and no report of its own.
    if torch.cuda._is_in_bad_fork():
        return
    _note_end()
    if torch.cuda.is_initialized():
        # Beside this thread: one that hangs must not keep the program from ending.
        finishing = threading.Thread(target=_let_autograd_finish, daemon=True)
        finishing.start()
        finishing.join(PATIENCE)
    hand_over()
    if torch.cuda.is_initialized() and ending.by_interrupt():
        # The signal leaves the virtual GPU no time for it.
        library.require().report()
    ending.remember_interrupt()


def _let_autograd_finish() -> None:
    """Waits until autograd's threads have let go of Python's objects, such as an exception that one
    of them raised: a thread that drops one while the interpreter is being finalized takes the
    process down."""
    with contextlib.suppress(Exception):
        engine = torch.autograd.Variable._execution_engine
        used = (it for it in range(torch.cuda.device_count()) if torch.cuda.memory_reserved(it))
        for device in used:
            # A backward pass over nothing: it takes no memory, and comes after all that the
            # device's thread still has to do. Asked of the engine itself: `torch.autograd` imports
            # the symbolic shapes and SymPy first, which takes longer than many a program.
            nothing = torch.empty(0, device=f"cuda:{device}", requires_grad=True)
            gradient = torch.empty(0, device=nothing.device)
            engine.run_backward(
                (nothing.view_as(nothing),),
                (gradient,),
                False,
                False,
                (),
                allow_unreachable=True,
                accumulate_grad=True,
            )


def hand_over() -> None:
    """Gives the notes to the virtual GPU as they are now."""
    notes.allocators = allocator.devices()
    notes.hand_over(library.require())
