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
from typing import Any

import torch

# cuDNN 8.9.7 is 8907, 9.1.0 is 90100.
FIRST_OF_CUDNN_9 = 90_000


@dataclass
class Device:
    """PyTorch's own statistics of one device, in bytes, of the whole run."""

    index: int
    allocated_peak: int = 0
    reserved_peak: int = 0
    retries: int = 0


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

    def write(self, folder: Path) -> None:
        """Writes it so that a reader never sees half of it."""
        # Several threads may train.
        unfinished = folder / f"{self.pid}-{threading.get_ident()}.part"
        unfinished.write_text(json.dumps(asdict(self)))
        unfinished.rename(folder / f"{self.pid}.json")

    def note_peaks(self) -> None:
        """Takes in the peaks so far, of devices that are in use."""
        if not torch.cuda.is_initialized():
            return
        known = {device.index: device for device in self.devices}
        for index in range(torch.cuda.device_count()):
            self._note(index, known)

    def note_peaks_of(self, index: int) -> None:
        """Takes in the peaks of one device, which are about to be forgotten."""
        self._note(index, {device.index: device for device in self.devices})

    def _note(self, index: int, known: dict[int, Device]) -> None:
        stats: dict[str, Any] = torch._C._cuda_memoryStats(index)
        reserved = stats["reserved_bytes"]["all"]["peak"]
        if not reserved and index not in known:
            return
        device = known.get(index)
        if device is None:
            device = Device(index)
            self.devices.append(device)
        allocated = stats["allocated_bytes"]["all"]["peak"]
        device.allocated_peak = max(device.allocated_peak, allocated)
        device.reserved_peak = max(device.reserved_peak, reserved)
        device.retries = max(device.retries, stats["num_alloc_retries"])


def of_this_process() -> Progress:
    """Nothing done yet."""
    rank = os.environ.get("RANK", "")
    return Progress(
        pid=os.getpid(),
        rank=int(rank) if rank.isdecimal() else None,
        torch=torch.__version__.partition("+")[0],
        cuda=torch.version.cuda or "none",
    )


def cudnn() -> str:
    """cuDNN's version, e.g. `9.19.0`."""
    version = torch.backends.cudnn.version()
    if version is None:
        return "none"
    major, rest = divmod(version, 10_000 if version >= FIRST_OF_CUDNN_9 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


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
