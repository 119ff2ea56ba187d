"""Failures of the user's code: whose fault, in which words, with which part of the traceback."""

from __future__ import annotations

import contextlib
import os
import sysconfig
import traceback
from collections.abc import Iterator
from pathlib import Path

LONGEST_MESSAGE = 300


class Unusable(Exception):
    """The user's function cannot be measured at all; the worker ends."""

    def __init__(
        self,
        message: str,
        hint: str | None = None,
        *,
        bad_input: bool = False,
        cause: BaseException | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.bad_input = bad_input
        self.traceback = users_traceback(cause) if cause else None


class Refusal(Exception):
    """This worker can go on no more, through no fault of the user's function."""


class PointFault(Exception):
    """A point cannot be measured; another one may be."""

    def __init__(self, message: str, traceback: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.traceback = traceback


class Raised(Exception):
    """The user's code raised; its own exception is the cause."""

    def __init__(self, doing: str, error: BaseException) -> None:
        super().__init__(doing)
        self.doing = doing
        self.error = error


@contextlib.contextmanager
def users(doing: str) -> Iterator[None]:
    """What raises inside is the user's code, which was `doing`."""
    try:
        yield
    except (Raised, PointFault, Unusable):
        raise
    except BaseException as error:
        raise Raised(doing, error) from error


def in_words(error: BaseException) -> str:
    """An exception in one line."""
    if isinstance(error, SystemExit):
        return "it ended the program with sys.exit()"
    text = one_line(error.msg if isinstance(error, SyntaxError) else str(error))
    name = type(error).__name__
    return f"{name}: {text}" if text else name


def one_line(text: str) -> str:
    """Text without line breaks, cut to what one can read at a glance."""
    text = " ".join(text.split())
    return text if len(text) <= LONGEST_MESSAGE else text[:LONGEST_MESSAGE] + "…"


def users_traceback(error: BaseException) -> str:
    """The traceback without frames of libraries and of this worker."""
    frames = [
        (_shown(frame.filename), frame.lineno or 0, frame.name, frame.line)
        for frame in _frames(error)
        if _is_users(frame.filename)
    ]
    if isinstance(error, SyntaxError) and error.filename:
        error.filename = _shown(error.filename)
    lines = traceback.format_list(frames) + traceback.format_exception_only(type(error), error)
    return "".join(lines).rstrip()


def users_place(error: BaseException) -> str:
    """`train.py line 12`, the innermost of the user's frames; empty where there is none."""
    for frame in reversed(_frames(error)):
        if _is_users(frame.filename):
            return f"{_shown(frame.filename)} line {frame.lineno}"
    if isinstance(error, SyntaxError) and error.filename:
        return f"{_shown(error.filename)} line {error.lineno}"
    return ""


def _frames(error: BaseException) -> traceback.StackSummary:
    return traceback.extract_tb(error.__traceback__)


def _is_users(file: str) -> bool:
    path = Path(file)
    return path.is_file() and not any(path.is_relative_to(folder) for folder in _LIBRARIES)


def _shown(file: str) -> str:
    path = Path(file)
    folder = Path.cwd()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file


def _library_folders() -> list[Path]:
    names = ("stdlib", "platstdlib", "purelib", "platlib")
    folders = {sysconfig.get_path(name) for name in names}
    # This package and those beside it.
    folders.add(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    folders |= {os.path.realpath(folder) for folder in folders}
    return [Path(folder) for folder in folders]


_LIBRARIES = _library_folders()
