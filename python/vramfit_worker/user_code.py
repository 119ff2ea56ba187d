"""The user's file and function. PyTorch is not imported here: the user's file may set variables
that PyTorch reads when it is."""

from __future__ import annotations

import difflib
import inspect
import os
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from .faults import Unusable, in_words, users_place

PATTERN = "write `def {name}(): return dict(model=…, batch=lambda n: …)`"


@dataclass(frozen=True)
class Function:
    """The user's function and how it is called by name in messages."""

    call: Callable[..., Any]
    shown: str
    takes_sequence: bool
    needs_sequence: bool


def find(file: Path, name: str) -> Function:
    """Runs the user's file and finds the function in it."""
    shown = f"{file.name}:{name}"
    module = _run(file)
    found = getattr(module, name, None)
    if found is None:
        raise Unusable(
            f"`{file.name}` has no function `{name}`", _near(module, name), bad_input=True
        )
    if not callable(found):
        raise Unusable(
            f"`{shown}` is {of_type(found)}, not a function",
            PATTERN.format(name=name),
            bad_input=True,
        )
    parameters = _parameters(found)
    _check_parameters(parameters, shown)
    sequence = parameters.get("sequence")
    return Function(
        found,
        shown,
        takes_sequence=sequence is not None,
        needs_sequence=sequence is not None and sequence.default is sequence.empty,
    )


def of_type(value: Any) -> str:
    """`a dict`, `an int`, `nothing`."""
    if value is None:
        return "nothing"
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def nearest(name: str, known: list[str]) -> str | None:
    """What may have been meant by a name."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean `{close[0]}`?" if close else None


def _run(file: Path) -> ModuleType:
    """The file as a module, imported as `python FILE` would run it, but for its `__name__`."""
    module = ModuleType(file.stem)
    module.__file__ = str(file)
    sys.modules[file.stem] = module
    sys.argv = [str(file)]
    sys.path[0] = str(file.parent)
    # Where `python -m package.file` finds what it imports.
    sys.path.append(os.getcwd())
    try:
        # Compiled here so that no `__pycache__` is left beside it.
        exec(compile(file.read_bytes(), str(file), "exec"), module.__dict__)
    except BaseException as error:
        raise Unusable(
            f"importing `{file.name}` failed: {in_words(error)}{_at(error)}",
            _hint(error),
            cause=error,
        ) from None
    return module


def _at(error: BaseException) -> str:
    place = users_place(error)
    return f" ({place})" if place else ""


def _hint(error: BaseException) -> str | None:
    if isinstance(error, ModuleNotFoundError):
        return f"it ran with `{sys.executable}`; `VRAMFIT_PYTHON` names another Python"
    if isinstance(error, EOFError):
        return "nobody is there to answer `input()`"
    if isinstance(error, SystemExit):
        return 'put what is not for import under `if __name__ == "__main__":`'
    return None


def _near(module: ModuleType, name: str) -> str:
    own = [
        key
        for key, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__
    ]
    close = nearest(name, own)
    if close:
        return close
    if own:
        return "it has " + ", ".join(f"`{key}`" for key in own)
    return PATTERN.format(name=name)


def _parameters(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    try:
        return inspect.signature(function).parameters
    except (TypeError, ValueError):
        return {}


def _check_parameters(parameters: Mapping[str, inspect.Parameter], shown: str) -> None:
    open_ended = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [
        f"`{name}`"
        for name, parameter in parameters.items()
        if parameter.default is parameter.empty
        and parameter.kind not in open_ended
        and name != "sequence"
    ]
    if needed:
        raise Unusable(
            f"`{shown}` needs {', '.join(needed)}",
            "it is called without arguments, but for `sequence` if it has that parameter",
            bad_input=True,
        )
