"""Graphs that are held though a backward pass has gone through them.

What a graph saved is freed by the backward pass, its nodes are not: a sum of losses holds those of
every step, in the host's memory. Nodes die with the last tensor that holds them, and with them what
lies in their `metadata`.
"""

from __future__ import annotations

import functools
import weakref
from typing import Any

import torch

from .lines import harmless

# A loss is often scaled or divided before its backward pass, and an output lies below the loss: nodes
# so far below the root, and so many, are looked at.
DEPTH, MOST_NODES = 4, 12
_KEY = "vramfit"


class Mark:
    """Lies in nodes of one graph."""

    __slots__ = ("__weakref__",)


class Graphs:
    """Those of one process."""

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """None is held yet."""
        self.held: weakref.WeakSet[Mark] = weakref.WeakSet()

    def watch(self) -> None:
        """Watches backward passes from now on."""
        backward = torch.autograd.backward

        @functools.wraps(backward)
        def noticed(tensors: Any, *arguments: Any, **named: Any) -> Any:
            if not torch.compiler.is_compiling():
                self.before_backward(tensors)
            return backward(tensors, *arguments, **named)

        torch.autograd.backward = noticed

    @harmless
    def before_backward(self, tensors: Any) -> None:
        """A backward pass is about to begin at these tensors."""
        roots = [tensors] if isinstance(tensors, torch.Tensor) else list(tensors)
        mark = Mark()
        self.held.add(mark)
        nodes = [node for it in roots if (node := getattr(it, "grad_fn", None)) is not None]
        seen = 0
        for _ in range(DEPTH):
            below = []
            for node in nodes:
                if seen == MOST_NODES:
                    return
                # Those of parameters live as long as these.
                if type(node).__name__ == "AccumulateGrad":
                    continue
                seen += 1
                node.metadata.setdefault(_KEY, mark)
                below += [it for it, _ in node.next_functions if it is not None]
            nodes = below

    def count(self) -> int:
        """How many are held now."""
        return len(self.held)
