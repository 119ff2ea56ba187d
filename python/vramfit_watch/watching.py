"""Puts it together for one process, and a forked child's anew."""

from __future__ import annotations

import atexit
import os
from typing import Any, NoReturn

import torch

from vramfit_torch import about, allocator, ending

from . import loading
from .graphs import Graphs
from .kept import Kept
from .lines import Lines, harmless, say_once
from .memory import Memory
from .passes import Passes
from .steps import Steps


class Watching:
    """What is watched of one process."""

    def __init__(self, lines: Lines, stacks: bool) -> None:
        self.lines = lines
        memory = Memory()
        self.passes = Passes(lines, memory)
        self.kept = Kept(lines, stacks)
        self.graphs = Graphs()
        waited = loading.begin()
        self.steps = Steps(lines, memory, self.graphs, waited, self.passes, self.kept)

    def begin_in_child(self) -> None:
        """A forked child has its parent's notes."""
        for part in (self.lines, self.passes, self.graphs, self.kept, self.steps):
            part.begin()

    @harmless
    def greet(self) -> None:
        """PyTorch is loaded."""
        version = about.version()
        self.lines.write("torch", pid=self.lines.pid, rank=about.rank(), version=version)

    def attach(self) -> None:
        """CUDA is ready, and nothing is allocated yet."""
        try:
            allocator.observe_out_of_memory(self.out_of_memory)
        except Exception as error:
            # PyTorch would end the program for it.
            say_once(f"running out of memory is not told: {type(error).__name__}: {error}")
        self.kept.start()

    @harmless
    def out_of_memory(self, device: int, requested: int, total: int, free: int) -> None:
        """The allocator has found no memory, whatever the program makes of it."""
        self.steps.end()
        self.passes.settle()
        self.kept.tell()
        self.lines.write("out-of-memory", pid=self.lines.pid, requested=requested)

    @harmless
    def end(self) -> None:
        """The process ends."""
        if torch.cuda.is_initialized() and not torch.cuda._is_in_bad_fork():
            self.steps.end()
            self.passes.settle()
            self.kept.tell()


def begin(folder: str) -> None:
    """Watches from now on."""
    if not hasattr(torch._C, "_cuda_memoryStats"):
        # A PyTorch for the CPU alone.
        return
    lines = Lines(folder, float(os.environ["VRAMFIT_WATCH_SINCE"]))
    watching = Watching(lines, os.environ.get("VRAMFIT_WATCH_STACKS") == "on")
    watching.steps.watch()
    watching.passes.watch()
    watching.graphs.watch()
    # What makes PyTorch load CUDA must not happen now, only once the program does so.
    torch.cuda._lazy_call(watching.attach)
    os.register_at_fork(after_in_child=watching.begin_in_child)
    _at_the_end(watching)
    watching.greet()


def _at_the_end(watching: Watching) -> None:
    def end() -> None:
        watching.end()
        ending.remember_interrupt()

    atexit.register(end)
    leave: Any = os._exit

    # Forked children of `multiprocessing` end so, without the interpreter's end.
    def told(status: int) -> NoReturn:
        watching.end()
        leave(status)

    os._exit = told
