"""What vramfit's virtual GPU asks of a Python program that runs on it.

No kernel is executed there, so a value that a program reads back may be any. This package really
computes small tensors, on the CPU and over the same memory (shadow execution), and keeps account of
what it cannot know. It also notes which line of the program ran out of memory.

    after_torch -> overriding: kernels of ours for the chosen operators
        |             |-> computing: the CUDA kernel, then its small results on the CPU
        |             |-> sizes: results as large as their values say
        |             |-> reading: what comes back to the host     known: which tensors are true
        |             '-> launches: what Triton's and libraries' kernels write
        '-> watch: out of memory, PyTorch's peaks              -> notes: handed over at the end

It needs PyTorch and the standard library, touches nothing of the program, and leaves the program's
random numbers and the allocator's peaks as they are without it.
"""

from __future__ import annotations

import os
import sys

from . import library
from .notes import notes


def after_torch() -> None:
    """Begins; called when `import torch` is done. A failure is said and never the program's."""
    if library.find() is None:
        return
    import torch

    from . import watch

    notes.torch = str(torch.__version__)
    try:
        watch.begin()
        notes.absent = _begin_shadow()
    except Exception as error:
        notes.absent = f"{type(error).__name__}: {error}"
        print(f"vramfit: no shadow execution: {notes.absent}", file=sys.stderr)


def after_torchvision() -> None:
    """Adds torchvision's operators; called when `import torchvision` is done."""
    if library.find() is None or notes.absent is not None:
        return
    from . import overriding

    overriding.override_torchvision()


def after_triton() -> None:
    """Watches launches; called when a module that makes some is imported."""
    if library.find() is None or notes.absent is not None:
        return
    from . import launches

    launches.watch_imported()


def report_now() -> None:
    """Has the report written already: the process is about to be ended from outside."""
    if library.find() is None:
        return
    from . import watch

    watch.hand_over()
    library.require().report()


def _begin_shadow() -> str | None:
    """Starts computing; a reason if that is not to be."""
    if os.environ.get("VRAMFIT_SHADOW") == "off":
        return "switched off"
    import torch

    if not hasattr(torch.library, "get_kernel"):
        return f"PyTorch {torch.__version__} has no torch.library.get_kernel"
    from . import launches, overriding

    overriding.override_all()
    launches.watch_custom()
    launches.watch_imported()
    return None
