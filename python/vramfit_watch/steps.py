"""Optimizer steps."""

from __future__ import annotations

import gc
from typing import Any

import torch
from torch.optim import optimizer as optim

from vramfit_torch.clock import Stamp

from .graphs import Graphs
from .kept import Kept
from .lines import Lines, harmless
from .loading import Loading
from .memory import Memory
from .pace import Pace
from .passes import Passes

# An optimizer that is so many steps behind is not waited for any more: it may be used no longer, or
# seldom.
PATIENCE = 24


class Steps:
    """Those of one process."""

    def __init__(
        self,
        lines: Lines,
        memory: Memory,
        graphs: Graphs,
        loading: Loading,
        passes: Passes,
        kept: Kept,
    ) -> None:
        self.lines = lines
        self.memory = memory
        self.graphs = graphs
        self.loading = loading
        self.passes = passes
        self.kept = kept
        self.begin()

    def begin(self) -> None:
        """None is known yet of this process."""
        # By id: an optimizer may refuse to be hashed.
        self.counts: dict[int, int] = {}
        self.step = 0
        self.pace = Pace()
        self.last: Stamp | None = None
        # When a step was made of which no line tells yet.
        self.untold: Stamp | None = None

    def watch(self) -> None:
        """Counts from now on."""
        optim.register_optimizer_step_post_hook(self.after_step)

    @harmless
    def after_step(self, optimizer: Any, *_: Any) -> None:
        """An optimizer has stepped. Of several, the one that is furthest behind counts."""
        if torch.compiler.is_compiling() or not torch.cuda.is_initialized():
            return
        counts = self.counts
        counts[id(optimizer)] = counts.get(id(optimizer), self.step) + 1
        if counts[id(optimizer)] > self.step + PATIENCE:
            self.counts = counts = {key: n for key, n in counts.items() if n > self.step}
        step = min(counts.values())
        if step <= self.step:
            return
        self.step = step
        self.passes.step = step
        self.passes.settle()
        now = Stamp.now()
        if self.pace.is_due():
            self._tell(now)
        else:
            self.untold = now
        self.kept.after_step(step)

    def end(self) -> None:
        """The process ends."""
        if self.untold is not None:
            self._tell(self.untold)

    def _tell(self, now: Stamp) -> None:
        seconds = None if self.last is None else round(self.last.until(now).seconds, 6)
        self.last, self.untold = now, None
        held = self.memory.held("step")
        self.lines.write(
            "step",
            pid=self.lines.pid,
            step=self.step,
            seconds=seconds,
            loader_seconds=round(self.loading.take(), 6),
            allocated=held.allocated,
            allocated_peak=held.allocated_peak,
            reserved=held.reserved,
            retries=held.retries,
            collected=[it["collections"] for it in gc.get_stats()][:3],
            graphs=self.graphs.count(),
        )
