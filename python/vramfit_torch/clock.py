"""How long something takes: by the virtual GPU's clock where there is one, else by the wall's."""

from __future__ import annotations

import ctypes
import functools
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass

Function = Callable[[], None]


@dataclass(frozen=True)
class Split:
    """Seconds of virtual time; the names are those of `StepTime` in src/measurement.rs."""

    total: float = 0.0
    compute: float = 0.0
    memory: float = 0.0
    launch: float = 0.0
    transfer: float = 0.0
    host: float = 0.0
    dispatch: float = 0.0

    def __add__(self, other: Split) -> Split:
        return Split(*(a + b for a, b in zip(self._parts(), other._parts(), strict=True)))

    def __mul__(self, times: float) -> Split:
        return Split(*(part * times for part in self._parts()))

    def _parts(self) -> tuple[float, ...]:
        return tuple(asdict(self).values())


@dataclass(frozen=True)
class Took:
    """What something took: seconds of wall time, and of virtual time on a virtual GPU."""

    wall: float = 0.0
    split: Split | None = None

    def __add__(self, other: Took) -> Took:
        splits = [it.split for it in (self, other) if it.split is not None]
        split = functools.reduce(Split.__add__, splits) if splits else None
        return Took(self.wall + other.wall, split)

    def __mul__(self, times: float) -> Took:
        return Took(self.wall * times, self.split * times if self.split else None)

    @property
    def seconds(self) -> float:
        """Seconds of the training."""
        return self.split.total if self.split else self.wall

    def device_seconds(self) -> float:
        """Seconds in which the device worked, which are the same each time on a virtual GPU."""
        return self.split.total - self.split.host if self.split else self.wall


class _Clock:
    """The functions of the virtual GPU (vgpu/src/python.rs)."""

    def __init__(self, process: ctypes.PyDLL) -> None:
        self._read = process.vramfit_vgpu_clock
        self._read.argtypes = [ctypes.POINTER(ctypes.c_uint64 * 7)]
        self._read.restype = None
        self.pause: Function = process.vramfit_vgpu_pause
        self.pause.argtypes = []
        self.pause.restype = None
        self.resume: Function = process.vramfit_vgpu_resume
        self.resume.argtypes = []
        self.resume.restype = None

    def read(self) -> tuple[float, ...]:
        """Seconds: now, with any work, by what it waits for (four), at work on the host."""
        answer = (ctypes.c_uint64 * 7)()
        self._read(ctypes.byref(answer))
        return tuple(it / 1e9 for it in answer)


@functools.cache
def _find() -> _Clock | None:
    try:
        # Calls that keep the interpreter's lock: they are short.
        return _Clock(ctypes.PyDLL(None))
    except AttributeError:
        return None


def _nothing() -> None:
    pass


def pause() -> None:
    """From now on the calling thread's time is not the program's. Pauses nest."""
    (clock.pause if (clock := _find()) else _nothing)()


def resume() -> None:
    """It is again."""
    (clock.resume if (clock := _find()) else _nothing)()


@dataclass(frozen=True)
class Stamp:
    """A moment."""

    wall: float
    reading: tuple[float, ...] | None

    @classmethod
    def now(cls) -> Stamp:
        """This one. The device should have done all it was given."""
        clock = _find()
        return cls(time.perf_counter(), clock.read() if clock else None)

    def until(self, end: Stamp) -> Took:
        """From this moment to `end`."""
        wall = end.wall - self.wall
        if self.reading is None or end.reading is None:
            return Took(wall)
        spent = [max(b - a, 0.0) for a, b in zip(self.reading, end.reading, strict=True)]
        total, busy, compute, memory, launch, transfer, dispatch = spent
        host = max(total - busy, 0.0)
        return Took(wall, Split(total, compute, memory, launch, transfer, host, dispatch))
