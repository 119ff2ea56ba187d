"""The allocator's numbers, and its peaks since they were last asked for.

PyTorch keeps one peak, since the program last had it forgotten. Peaks of single steps need it
forgotten each time, so what the program would have been told is kept here and told to it.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch

# Statistics: by name, by pool, by what is told of it.
Statistics = dict[str, Any]
# By the name of a statistic and its pool.
Peaks = dict[tuple[str, str], int]


@dataclass
class Since:
    """What has gathered since somebody last asked."""

    peak: int = 0
    retries: int = 0


@dataclass
class Held:
    """What a process's device holds."""

    allocated: int
    allocated_peak: int
    reserved: int
    retries: int


class Memory:
    """The allocator's numbers of all devices of this process."""

    def __init__(self) -> None:
        self._statistics: Callable[[int], Statistics] = torch._C._cuda_memoryStats
        self._reset: Callable[[int], None] = torch._C._cuda_resetPeakMemoryStats
        # What the program has not had forgotten, by device.
        self._kept: dict[int, Peaks] = {}
        # By device and who asks.
        self._since: dict[tuple[int, str], Since] = {}
        self._retries: dict[int, int] = {}
        self._tell_the_program("_cuda_memoryStats", "_cuda_resetPeakMemoryStats")
        # As `torch.accelerator` asks, where there is such a thing.
        self._tell_the_program("_accelerator_getDeviceStats", "_accelerator_resetPeakStats")

    def held(self, asking: str) -> Held:
        """What the current device holds, and held since the same one asked before."""
        device = torch._C._cuda_getDevice()
        statistics = self._note(device)
        since = self._since.pop((device, asking), Since())
        return Held(
            allocated=statistics["allocated_bytes"]["all"]["current"],
            allocated_peak=since.peak,
            reserved=statistics["reserved_bytes"]["all"]["current"],
            retries=since.retries,
        )

    def _note(self, device: int) -> Statistics:
        statistics = self._statistics(device)
        kept = self._kept.setdefault(device, {})
        for key, numbers in _with_peaks(statistics):
            kept[key] = max(kept.get(key, 0), numbers["peak"])
        self._reset(device)
        peak = statistics["allocated_bytes"]["all"]["peak"]
        retries = statistics["num_alloc_retries"]
        more = max(retries - self._retries.get(device, 0), 0)
        self._retries[device] = retries
        for asking in ("step", "pass"):
            since = self._since.setdefault((device, asking), Since())
            since.peak = max(since.peak, peak)
            since.retries += more
        return statistics

    def _tell_the_program(self, ask: str, reset: str) -> None:
        """Puts what is kept into what the program asks for, until it has it forgotten."""
        asked, resets = getattr(torch._C, ask, None), getattr(torch._C, reset, None)
        if asked is None or resets is None:
            return

        @functools.wraps(asked)
        def told(device: int) -> Statistics:
            statistics = asked(device)
            kept = self._kept.get(device)
            if kept:
                for key, numbers in _with_peaks(statistics):
                    numbers["peak"] = max(numbers["peak"], kept.get(key, 0))
            return statistics

        @functools.wraps(resets)
        def forgotten(device: int) -> None:
            if torch.cuda.is_initialized() and self._kept:
                self._note(device)
            self._kept.pop(device, None)
            resets(device)

        setattr(torch._C, ask, told)
        setattr(torch._C, reset, forgotten)


def _with_peaks(statistics: Statistics) -> list[tuple[tuple[str, str], dict[str, int]]]:
    return [
        ((name, pool), numbers)
        for name, pools in statistics.items()
        if isinstance(pools, dict)
        for pool, numbers in (pools.items() if "peak" not in pools else [("", pools)])
        if isinstance(numbers, dict) and "peak" in numbers
    ]
