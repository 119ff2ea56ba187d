"""What is told of a process: one JSON document, written anew after each optimizer step."""

from __future__ import annotations

import contextlib
import json
import os
import sys
import threading
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch

from vramfit_torch import about
from vramfit_torch.allocator import Device
from vramfit_torch.clock import Split


@dataclass
class Progress:
    """The names are those of src/probe/progress.rs."""

    pid: int
    rank: int | None
    torch: str
    cuda: str
    cudnn: str = ""
    steps: int = 0
    waiting: bool = False
    devices: list[Device] = field(default_factory=list)
    weights: int = 0
    gradients: int = 0
    optimizer_state: int = 0
    activations: int = 0
    out_of_memory: list[int] = field(default_factory=list)
    step_seconds: list[float] = field(default_factory=list)
    optimizer_seconds: list[float] = field(default_factory=list)
    step_times: list[Split] = field(default_factory=list)
    optimizer_times: list[Split] = field(default_factory=list)

    def write(self, folder: Path) -> None:
        """Writes it so that a reader never sees half of it."""
        # Several threads may train.
        unfinished = folder / f"{self.pid}-{threading.get_ident()}.part"
        unfinished.write_text(json.dumps(asdict(self)))
        unfinished.rename(folder / f"{self.pid}.json")


def of_this_process() -> Progress:
    """Nothing done yet."""
    return Progress(
        pid=os.getpid(),
        rank=about.rank(),
        torch=about.version(),
        cuda=torch.version.cuda or "none",
    )


def wait_to_be_ended(folder: Path, by: int) -> None:
    """Waits until process `by` ends this one, and ends by itself if that has given up or is no
    more."""
    for stream in (sys.stdout, sys.stderr):
        # It may be closed, or nobody may read it any more.
        with contextlib.suppress(Exception):
            stream.flush()
    while folder.exists():
        time.sleep(0.5)
        try:
            os.kill(by, 0)
        except OSError:
            break
    os._exit(1)
