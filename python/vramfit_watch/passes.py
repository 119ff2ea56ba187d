"""Whole models that are run forward while they are set to evaluate.

A hook on a module would be saved, copied and compiled with it. What is changed instead is
`__call__` of the classes of the models that `eval()` is called on.
"""

from __future__ import annotations

import functools
import threading
import weakref
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from .lines import Lines, harmless
from .memory import Memory
from .pace import Pace

# Seconds in which the backward pass of what was run forward is expected, and how many passes may
# wait for theirs.
PATIENCE, MOST_WAITING = 5.0, 64
# Of PyTorch's own classes, those that hold whole models.
HOLDERS = {
    "DataParallel",
    "DistributedDataParallel",
    "FullyShardedDataParallel",
    "OptimizedModule",
    "Sequential",
}
# Results of a model that are looked at.
MOST_RESULTS = 32


@dataclass
class Pass:
    """One of which it is not known yet whether its graph is run backward."""

    at: float
    what: dict[str, Any]
    trained: list[bool] = field(default_factory=list)


class Depth(threading.local):
    """How far this thread is inside of what is looked at from outside alone."""

    calls = 0
    modes = 0


class Passes:
    """Those of one process."""

    def __init__(self, lines: Lines, memory: Memory) -> None:
        self.lines = lines
        self.memory = memory
        self.depth = Depth()
        self.classes: weakref.WeakSet[type] = weakref.WeakSet()
        self.models: weakref.WeakSet[Any] = weakref.WeakSet()
        self.begin()

    def begin(self) -> None:
        """None is known yet of this process."""
        self.step = 0
        self.pace = Pace()
        self.waiting: list[Pass] = []
        self.had_graph: dict[str, bool] = {}

    def watch(self) -> None:
        """Watches from now on whom `eval()` is called on."""
        train, depth = nn.Module.train, self.depth

        @functools.wraps(train)
        def noticed(module: Any, mode: bool = True) -> Any:
            if depth.modes:
                return train(module, mode)
            depth.modes += 1
            try:
                result = train(module, mode)
            finally:
                depth.modes -= 1
            if not torch.compiler.is_compiling():
                self.mode_set(module, mode)
            return result

        nn.Module.train = noticed  # type: ignore[method-assign]

    @harmless
    def mode_set(self, model: Any, trains: bool) -> None:
        """A whole model, or a part that the program sets by itself, was set to train or not."""
        if trains:
            self.settle()
            return
        kind = type(model)
        if kind.__module__.startswith("torch.") and kind.__name__ not in HOLDERS:
            return
        self.models.add(model)
        if kind not in self.classes:
            self.classes.add(kind)
            _wrap_calls(kind, self)

    @harmless
    def done(self, model: Any, result: Any, at: float) -> None:
        """A model that evaluates has been run forward."""
        if not torch.cuda.is_initialized():
            return
        nodes = list(_graphs(result))
        name, has_graph = _name(model), bool(nodes)
        if self.had_graph.get(name) == has_graph and not self.pace.is_due():
            return
        self.had_graph[name] = has_graph
        held = self.memory.held("pass")
        what = {
            "pid": self.lines.pid,
            "step": self.step,
            "model": name,
            "has_graph": has_graph,
            "allocated": held.allocated,
            "allocated_peak": held.allocated_peak,
        }
        noted = Pass(at, what)
        if not nodes:
            self.lines.write("pass", at=at, **what)
            return
        for node in nodes:
            node.register_prehook(_marking(noted.trained))
        self.waiting.append(noted)
        if len(self.waiting) > MOST_WAITING or at - self.waiting[0].at > PATIENCE:
            self._tell(self.waiting.pop(0))

    def settle(self) -> None:
        """What was to be run backward has been."""
        waiting, self.waiting = self.waiting, []
        for noted in waiting:
            self._tell(noted)

    def _tell(self, noted: Pass) -> None:
        trained = {"trained": True} if noted.trained else {}
        self.lines.write("pass", at=noted.at, **noted.what, **trained)


def _wrap_calls(kind: type, passes: Passes) -> None:
    depth, own = passes.depth, kind.__dict__.get("__call__")

    def noticed(module: Any, *arguments: Any, **named: Any) -> Any:
        # Looked up anew each time: `torch.fx` puts its own in while it traces.
        call = super(kind, module).__call__ if own is None else functools.partial(own, module)
        if torch.compiler.is_compiling() or depth.calls or module.training:
            return call(*arguments, **named)
        if module not in passes.models:
            return call(*arguments, **named)
        depth.calls += 1
        try:
            result = call(*arguments, **named)
        finally:
            depth.calls -= 1
        passes.done(module, result, passes.lines.now())
        return result

    _leave_to_python(noticed)
    kind.__call__ = noticed  # type: ignore[method-assign]


def _leave_to_python(function: Callable[..., Any]) -> None:
    """Keeps `torch.compile` from beginning with this function rather than with the model's own."""
    skip = getattr(getattr(torch._C, "_dynamo", None), "eval_frame", None)
    if hasattr(skip, "skip_code"):
        skip.skip_code(function.__code__)


def _marking(trained: list[bool]) -> Callable[[Any], None]:
    def mark(_: Any) -> None:
        if not trained:
            trained.append(True)

    return mark


def _name(model: Any) -> str:
    """Class of a model without what is wrapped around it."""
    for _ in range(4):
        inner = getattr(model, "_orig_mod", None)
        if inner is None and type(model).__name__ in HOLDERS:
            inner = getattr(model, "module", None)
        if inner is None:
            break
        model = inner
    return type(model).__name__


def _graphs(result: Any) -> Iterator[Any]:
    """The nodes of the graph at whose end results stand."""
    tensors = _tensors(result, 3)
    for _, tensor in zip(range(MOST_RESULTS), tensors, strict=False):
        if tensor.requires_grad and tensor.grad_fn is not None:
            yield tensor.grad_fn


def _tensors(value: Any, depth: int) -> Iterator[torch.Tensor]:
    if issubclass(type(value), torch.Tensor):
        yield value
    elif depth and issubclass(type(value), Mapping):
        for item in list(value.values()):
            yield from _tensors(item, depth - 1)
    elif depth and issubclass(type(value), (list, tuple)):
        for item in value:
            yield from _tensors(item, depth - 1)
    elif depth and hasattr(value, "__dataclass_fields__"):
        for name in value.__dataclass_fields__:
            yield from _tensors(getattr(value, name, None), depth - 1)
