"""Lines of the user's program: neither of a library nor of vramfit."""

from __future__ import annotations

import functools
import itertools
import linecache
import os
import sys
import sysconfig
import threading
from collections.abc import Iterator
from types import CodeType, FrameType, TracebackType
from typing import NamedTuple

# What lies beside this package is vramfit's own, its worker among it.
_OWN = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_LIBRARIES = (f"{os.sep}site-packages{os.sep}", f"{os.sep}dist-packages{os.sep}")
_STANDARD = tuple(
    os.path.abspath(sysconfig.get_path(name)) + os.sep for name in ("stdlib", "platstdlib")
)


class Place(NamedTuple):
    """A line of the user's program."""

    file: str
    line: int
    function: str
    code: str


@functools.cache
def is_users(file: str) -> bool:
    """Whether a file is the user's."""
    if file.startswith("<"):
        # A program given by `-c` or typed in; other such names are made by libraries.
        return file in ("<string>", "<stdin>")
    path = os.path.abspath(file)
    # Inductor sets this at the latest when it writes what it has generated.
    generated = os.environ.get("TORCHINDUCTOR_CACHE_DIR")
    if generated and path.startswith(os.path.join(os.path.abspath(generated), "")):
        return False
    return not path.startswith((_OWN, *_STANDARD)) and not any(it in path for it in _LIBRARIES)


@functools.lru_cache(4096)
def _place(code: CodeType, line: int) -> Place:
    text = linecache.getline(code.co_filename, line).strip()
    return Place(code.co_filename, line, code.co_name, text)


def _frames(frame: FrameType | None) -> Iterator[tuple[CodeType, int]]:
    while frame is not None:
        yield frame.f_code, frame.f_lineno
        frame = frame.f_back


def users_places(most: int) -> tuple[Place, ...]:
    """Where the program is now, innermost line first. The backward pass runs on a thread without
    lines of its own: then where the main thread waits for it."""
    places = _users(sys._getframe(1), most)
    if not places and threading.get_ident() != threading.main_thread().ident:
        places = _users(sys._current_frames().get(threading.main_thread().ident or 0), most)
    return places


def _users(frame: FrameType | None, most: int) -> tuple[Place, ...]:
    users = (it for it in _frames(frame) if is_users(it[0].co_filename))
    return tuple(_place(code, line) for code, line in itertools.islice(users, most))


def users_place() -> Place | None:
    """The innermost of the user's lines that is being run."""
    return next(iter(users_places(1)), None)


def users_place_of(traceback: TracebackType | None) -> Place | None:
    """The innermost of the user's lines in a traceback."""
    found = None
    while traceback is not None:
        code = traceback.tb_frame.f_code
        if is_users(code.co_filename):
            found = _place(code, traceback.tb_lineno)
        traceback = traceback.tb_next
    return found
