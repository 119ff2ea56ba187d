"""How often is told: all at the beginning, then now and then."""

from __future__ import annotations

import time

# The first so many are all told.
FIRST = 20
# Seconds between two that are told after that, and after half an hour.
SOON, LATE = 0.05, 1.0
# Share of the time since the beginning that lies between two.
SHARE = 1 / 2000


class Pace:
    """Of one kind of event in one process."""

    def __init__(self) -> None:
        self.begun = time.monotonic()
        self.told = 0
        self.last = self.begun

    def is_due(self) -> bool:
        """Whether the event that has happened now is told."""
        now = time.monotonic()
        pause = min(max(SOON, (now - self.begun) * SHARE), LATE)
        due = self.told < FIRST or now - self.last >= pause
        if due:
            self.tell()
        return due

    def tell(self) -> None:
        """The event that has happened now is told whatever the pace."""
        self.told += 1
        self.last = time.monotonic()
