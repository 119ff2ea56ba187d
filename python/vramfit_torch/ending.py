"""How a program ends by Ctrl-C."""

from __future__ import annotations

import contextlib
import sys


def by_interrupt() -> bool:
    """Whether nobody caught the exception that Ctrl-C raises: the interpreter then ends itself by
    the signal, as shells expect, once all that is registered for its end has run."""
    return isinstance(getattr(sys, "last_value", None), KeyboardInterrupt)


def remember_interrupt() -> None:
    """To be called at the interpreter's end, after code that may import: CPython notes for each text
    that it runs, and so for each dataclass that an import makes, whether the exception left it, and
    ends with status 1 if the last was another. One more text sets that right."""
    if by_interrupt():
        with contextlib.suppress(KeyboardInterrupt):
            exec("raise KeyboardInterrupt")
