"""How long the program waits for its data."""

from __future__ import annotations

import functools
import threading
from typing import Any

from torch.utils.data import dataloader

from vramfit_torch.clock import Stamp


class Loading(threading.local):
    """What each thread has waited. What one loads ahead for another is waited for by none."""

    def __init__(self) -> None:
        self.seconds = 0.0
        # A data set may have a loader of its own.
        self.depth = 0

    def take(self) -> float:
        """Seconds since this thread last asked."""
        seconds, self.seconds = self.seconds, 0.0
        return seconds


def begin() -> Loading:
    """Watches `torch.utils.data.DataLoader` from now on."""
    loading = Loading()
    next_of = dataloader._BaseDataLoaderIter.__next__

    @functools.wraps(next_of)
    def timed(iterator: Any) -> Any:
        if loading.depth:
            return next_of(iterator)
        loading.depth += 1
        begun = Stamp.now()
        try:
            return next_of(iterator)
        finally:
            loading.depth -= 1
            loading.seconds += begun.until(Stamp.now()).seconds

    dataloader._BaseDataLoaderIter.__next__ = timed  # type: ignore[method-assign]
    return loading
