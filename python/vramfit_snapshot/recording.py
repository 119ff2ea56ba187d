"""Records the allocator's history from before its first allocation, and writes it at the end."""

from __future__ import annotations

import atexit
import os
import pickle
import signal
import sys
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

import torch

from vramfit_torch import about, ending

# Events kept for each device, the last ones: PyTorch takes a few KB of host memory for each.
MOST_EVENTS = 200_000
# Where our own packages lie, whose frames say nothing of the program.
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


class Recording:
    """The history of one process."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        # The process in which it runs; a forked child has no CUDA of its own then.
        self.process: int | None = None

    def start(self) -> None:
        """Starts; called when CUDA is ready and nothing is allocated yet."""
        try:
            torch.cuda.memory._record_memory_history(
                "all", context="all", stacks="python", max_entries=MOST_EVENTS
            )
        except Exception as error:
            # PyTorch would end the program for it.
            _say(f"no snapshot: {type(error).__name__}: {error}")
            return
        self.process = os.getpid()
        self._outlive_termination()

    def finish(self) -> None:
        """Writes what there is, once."""
        if self.process != os.getpid():
            return
        self.process = None
        try:
            self._write()
        except Exception as error:
            _say(f"no snapshot: {type(error).__name__}: {error}")
        ending.remember_interrupt()

    def _write(self) -> None:
        snapshot = torch.cuda.memory._snapshot()
        _leave_us_out(snapshot)
        if any(len(trace) >= MOST_EVENTS for trace in snapshot["device_traces"]):
            _say(f"the snapshot holds the last {MOST_EVENTS} events of the run")
        rank = about.rank()
        name = f"{'' if rank is None else rank}.{os.getpid()}"
        unfinished = self.folder / f"{name}.part"
        with unfinished.open("wb") as file:
            pickle.dump(snapshot, file)
        unfinished.rename(self.folder / f"{name}.pickle")

    def _outlive_termination(self) -> None:
        """Launchers end ranks by SIGTERM, which Python does not turn into an exception."""
        if signal.getsignal(signal.SIGTERM) is not signal.SIG_DFL:
            return

        def ended(number: int, _: FrameType | None) -> None:
            self.finish()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)

        try:
            signal.signal(signal.SIGTERM, ended)
        except ValueError:
            # Only the main thread may; a program that begins with CUDA in another goes without.
            return


def begin(folder: str) -> None:
    """Records from the program's first use of CUDA, and writes at its end: an exception and Ctrl-C
    are one too."""
    recording = Recording(Path(folder))
    # What makes PyTorch load CUDA must not happen now, only once the program does so.
    torch.cuda._lazy_call(recording.start)
    atexit.register(recording.finish)
    leave = os._exit

    # Forked children of `multiprocessing` end so, without the interpreter's end.
    def finished(status: int) -> NoReturn:
        recording.finish()
        leave(status)

    os._exit = finished


def _leave_us_out(snapshot: dict[str, Any]) -> None:
    """Takes the frames of our packages out of the stacks."""
    traced = [event for trace in snapshot["device_traces"] for event in trace]
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    known: set[int] = set()
    for item in (*traced, *snapshot["segments"], *blocks):
        frames = item.get("frames")
        # Events of one place share their list.
        if frames and id(frames) not in known:
            known.add(id(frames))
            frames[:] = [it for it in frames if not str(it.get("filename", "")).startswith(_OURS)]


def _say(text: str) -> None:
    print(f"vramfit: {text}", file=sys.stderr)
