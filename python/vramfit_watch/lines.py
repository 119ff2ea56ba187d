"""What is told, one JSON object a line. Whoever reads the files removes those that are read."""

from __future__ import annotations

import functools
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from vramfit_torch import clock

# Bytes after which the next file is begun, so that what was read need not stay.
MOST_BYTES = 1 << 20


class Lines:
    """The lines of this process, and of a forked child its own."""

    def __init__(self, folder: str, since: float) -> None:
        self.folder = Path(folder)
        # When the program was started, by the clock that all processes share.
        self.since = since
        self.begin()

    def begin(self) -> None:
        """Nothing is written yet by this process."""
        self.pid = os.getpid()
        self.file: int | None = None
        self.number = 0
        self.bytes = 0

    def now(self) -> float:
        """Seconds since the program was started."""
        return round(time.clock_gettime(time.CLOCK_MONOTONIC) - self.since, 6)

    def write(self, event: str, at: float | None = None, **what: Any) -> None:
        """Tells of something that happened now, or then."""
        entry = {"at": self.now() if at is None else at, "event": event, **what}
        line = (json.dumps(entry) + "\n").encode()
        if self.file is None or self.bytes + len(line) > MOST_BYTES:
            self._next_file()
        if self.file is not None:
            # One write, and of a file in `O_APPEND`: threads do not cut each other's lines.
            self.bytes += os.write(self.file, line)

    def _next_file(self) -> None:
        if self.file is not None:
            os.close(self.file)
            self.file = None
        self.number += 1
        path = self.folder / f"{self.pid}.{self.number}.jsonl"
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC
        self.file = os.open(path, flags, 0o600)
        self.bytes = 0


_said: set[str] = set()


def harmless(hook: Callable[..., None]) -> Callable[..., None]:
    """A hook whose failure is said once, and never the program's. It takes none of its time on a
    virtual GPU."""

    @functools.wraps(hook)
    def tried(*arguments: Any, **named: Any) -> None:
        clock.pause()
        try:
            hook(*arguments, **named)
        except Exception as error:
            say_once(f"{hook.__name__}: {type(error).__name__}: {error}")
        finally:
            clock.resume()

    return tried


def say_once(text: str) -> None:
    """Says what goes wrong, the first time."""
    if text not in _said:
        _said.add(text)
        print(f"vramfit: {text}", file=sys.stderr)
