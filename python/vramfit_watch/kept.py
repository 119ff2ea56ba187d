"""What is held, by the line of the program that made it.

PyTorch notes for each block that lives which lines of Python asked for it, and nothing of those
that are gone.
"""

from __future__ import annotations

import ast
import functools
import os
import sys
from collections import defaultdict
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, NamedTuple

import torch

from vramfit_torch.places import is_users

from .lines import Lines, harmless, say_once

# The first step after which is told; then after twice as many, and so on.
FIRST = 5
# Places that are told: the largest, and those that have grown most.
MOST_PLACES = 12
# Functions of PyTorch's that say nothing of what is done; nor do those that it hides.
_PASSING_ON = {"decorate_context", "forward", "inner", "profile_hook_step", "use_grad", "wrapper"}
# Where our own packages lie, whose frames say nothing of the program.
_OURS = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_TORCH = os.path.dirname(os.path.abspath(torch.__file__)) + os.sep

Frame = dict[str, Any]


class Where(NamedTuple):
    """Where blocks were made."""

    place: str
    operator: str
    module: str | None


class Kept:
    """Of one process."""

    def __init__(self, lines: Lines, asked: bool) -> None:
        self.lines = lines
        self.asked = asked
        self.begin()

    def begin(self) -> None:
        """Nothing is known yet of this process."""
        self.records = False
        self.step = 0
        self.next = FIRST
        self.before: dict[Where, int] = {}

    def start(self) -> None:
        """Has lines noted from now on; called when CUDA is ready and nothing is allocated yet."""
        if not self.asked:
            return
        try:
            # Whoever records already, the program or a snapshot that is asked for, has its way.
            if not os.environ.get("VRAMFIT_SNAPSHOTS") and not torch._C._cuda_isHistoryEnabled():
                torch.cuda.memory._record_memory_history("state", context="state", stacks="python")
            self.records = True
        except Exception as error:
            # PyTorch would end the program for it.
            say_once(f"what is held is not told by line: {type(error).__name__}: {error}")

    def after_step(self, step: int) -> None:
        """An optimizer has stepped."""
        self.step = step
        if self.records and step >= self.next:
            self.next = max(self.next * 2, step + 1)
            self.tell()

    @harmless
    def tell(self) -> None:
        """Tells what is held now."""
        if not self.records:
            return
        sizes: dict[Where, int] = defaultdict(int)
        counts: dict[Where, int] = defaultdict(int)
        for segment in _snapshot()["segments"]:
            for block in segment["blocks"]:
                if block["state"] != "active_allocated":
                    continue
                where = _where(block.get("frames", []))
                sizes[where] += block["size"]
                counts[where] += 1
        grown = {where: size - self.before.get(where, 0) for where, size in sizes.items()}
        self.before = dict(sizes)
        chosen = set(_largest(sizes)) | {it for it in _largest(grown) if grown[it] > 0}
        places = [
            {**where._asdict(), "bytes": sizes[where], "blocks": counts[where]}
            for where in sorted(chosen, key=lambda it: (-sizes[it], it))
        ]
        self.lines.write("kept", pid=self.lines.pid, step=self.step, places=places)


def _snapshot() -> Frame:
    """The allocator's blocks. PyTorch asks Inductor for the lines behind compiled code, and would
    import it for that, which takes seconds, where the program has compiled nothing."""
    if "torch._inductor" in sys.modules:
        return torch.cuda.memory._snapshot()
    stand_in = SimpleNamespace()
    torch._inductor = stand_in
    try:
        return torch.cuda.memory._snapshot()
    finally:
        if torch._inductor is stand_in:
            del torch._inductor


def _largest(sizes: dict[Where, int]) -> list[Where]:
    return sorted(sizes, key=lambda it: -sizes[it])[:MOST_PLACES]


def _where(frames: Sequence[Frame]) -> Where:
    """From the lines of Python that asked for a block, innermost first. The backward pass runs on a
    thread of its own, which has none."""
    frames = [it for it in frames if not it["filename"].startswith(_OURS)]
    if not frames:
        return Where("", "backward", None)
    place = next((it for it in frames if is_users(it["filename"])), None)
    return Where("" if place is None else _line(place), _operator(frames), _module(frames))


def _line(frame: Frame) -> str:
    path = frame["filename"]
    relative = os.path.relpath(path) if os.path.isabs(path) else path
    shown = path if relative.startswith("..") else relative
    function = frame["name"]
    return f"{shown}:{frame['line']}" + ("" if function == "<module>" else f" in {function}")


def _operator(frames: Sequence[Frame]) -> str:
    for frame in frames:
        if is_users(frame["filename"]):
            break
        name = frame["name"]
        if (
            frame["filename"].startswith(_TORCH)
            and not name.startswith(("_", "<"))
            and name not in _PASSING_ON
        ):
            return name
    return ""


def _module(frames: Sequence[Frame]) -> str | None:
    forwards = (it for it in frames if it["name"] == "forward")
    classes = (_class_at(it["filename"], it["line"]) for it in forwards)
    return next((it for it in classes if it is not None), None)


def _class_at(file: str, line: int) -> str | None:
    around = [it for it in _classes(file) if it[0] <= line <= it[1]]
    return max(around)[2] if around else None


@functools.lru_cache(256)
def _classes(file: str) -> tuple[tuple[int, int, str], ...]:
    """First line, last line and name of each class in a file."""
    try:
        with open(file, encoding="utf-8") as text:
            tree = ast.parse(text.read())
    except (OSError, SyntaxError, ValueError):
        return ()
    return tuple(
        (it.lineno, it.end_lineno or it.lineno, it.name)
        for it in ast.walk(tree)
        if isinstance(it, ast.ClassDef)
    )
