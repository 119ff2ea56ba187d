"""Runs when a Python child of vramfit starts: it waits for `import torch`.

The interpreter looks for a module of this name on its path. Another one that this hides, the user's
or the system's, is run as if this were not there. Nothing is imported that the program does not
import itself, except the parts of the standard library that every import uses.
"""

from __future__ import annotations

import importlib
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__))


class _AfterImport:
    """A finder that finds nothing itself, but has something done after certain imports."""

    def __init__(self, actions: dict[str, Callable[[], None]]) -> None:
        self._actions = actions
        self._asking: set[str] = set()

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        """The specification of a module that is waited for; else none, and others are asked."""
        if name not in self._actions or name in self._asking:
            return None
        self._asking.add(name)
        try:
            spec = importlib.util.find_spec(name)
        finally:
            self._asking.remove(name)
        loader: Any = None if spec is None else spec.loader
        if hasattr(loader, "exec_module"):
            execute = loader.exec_module

            def execute_then_act(module: ModuleType) -> None:
                execute(module)
                # Not before: who asks whether a module could be found need not import it.
                action = self._actions.pop(name, None)
                if action is not None:
                    action()

            loader.exec_module = execute_then_act
        return spec


def _ours(package: str) -> ModuleType:
    """A package of ours, which the program's own path does not lead to."""
    sys.path.insert(0, _HERE)
    try:
        return importlib.import_module(package)
    finally:
        sys.path.remove(_HERE)


# Whether `import torch` is done.
_torch_is_there = False


def _after_torch() -> None:
    global _torch_is_there
    _torch_is_there = True
    _ours("vramfit_torch")
    _ours("vramfit_shadow").after_torch()
    _ours("vramfit_steps").after_torch()
    _ours("vramfit_snapshot").after_torch()
    _ours("vramfit_watch").after_torch()


def _after_triton() -> None:
    # Who imports Triton alone gets no PyTorch from us; what is there is found after `import torch`.
    if _torch_is_there:
        _ours("vramfit_shadow").after_triton()


def _run_hidden() -> None:
    """Runs the `sitecustomize` that would have run without this one."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _HERE]
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is not None and spec.loader is not None:
        module = importlib.util.module_from_spec(spec)
        sys.modules["sitecustomize"] = module
        spec.loader.exec_module(module)


sys.meta_path.insert(
    0,
    _AfterImport(
        {
            "torch": _after_torch,
            "triton.runtime.jit": _after_triton,
            "torch._inductor.runtime.triton_heuristics": _after_triton,
            "torchvision": lambda: _ours("vramfit_shadow").after_torchvision(),
        }
    ),
)
_run_hidden()
