"""The protocol's own ends of standard input and output, out of reach of the user's code."""

from __future__ import annotations

import io
import json
import os
import sys
from collections.abc import Iterator
from typing import Any


class Channel:
    """Reads requests and writes replies, one JSON object a line.

    Once it exists, what anything else prints goes to standard error, and whoever asks for input is
    told that there is none.
    """

    def __init__(self) -> None:
        self._requests = os.fdopen(os.dup(0), "r", encoding="utf-8")
        self._replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        if isinstance(sys.stdout, io.TextIOWrapper):
            sys.stdout.reconfigure(line_buffering=True)
        # A data loader's process that outlives this one must not keep the pipes open.
        os.register_at_fork(after_in_child=self._close_descriptors)

    def requests(self) -> Iterator[dict[str, Any]]:
        """Requests until the input ends."""
        for line in self._requests:
            if line.strip():
                yield json.loads(line)

    def say(self, reply: str, **content: Any) -> None:
        """Writes one reply."""
        self._replies.write(json.dumps({"reply": reply, **content}) + "\n")
        self._replies.flush()

    def _close_descriptors(self) -> None:
        for stream in (self._requests, self._replies):
            os.close(stream.fileno())
