"""Puts kernels of ours in front of the CUDA kernels of the chosen operators."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch._ops import OpOverload

from . import operators, reading, sizes
from .computing import Operator, aside, computed, forgotten, unscaled
from .notes import notes

# A library takes its kernels along when it goes.
_libraries: list[torch.library.Library] = []
_overridden: set[str] = set()


def override_all() -> None:
    """All operators of PyTorch that are computed."""
    library = _library("aten")
    for base in operators.ALL:
        kernel = sizes.counted if base in operators.COUNTED else computed
        for op in _overloads(base):
            _override(library, op, base, kernel)
    aten = torch.ops.aten
    _override(library, aten._local_scalar_dense.default, "item", reading.item)
    _override(library, aten.equal.default, "equal", reading.equal)
    _override(library, aten.copy_.default, "copy", reading.copy)
    _override(library, aten._amp_foreach_non_finite_check_and_unscale_.default, "unscale", unscaled)
    _override(library, aten._coalesce.default, "_coalesce", sizes.coalesced, key="SparseCUDA")
    for base in ("_sparse_softmax", "_sparse_log_softmax"):
        op = getattr(aten, base).default
        _override(library, op, base, sizes.pooled, key="SparseCUDA")
    for op, base in _others_that_write():
        _override(library, op, base, forgotten)


def override_torchvision() -> None:
    """Those of torchvision that decide how many boxes there are."""
    if hasattr(torch.ops.torchvision, "nms"):
        _override(_library("torchvision"), torch.ops.torchvision.nms.default, "nms", sizes.nms)


def _library(namespace: str) -> torch.library.Library:
    library = torch.library.Library(namespace, "IMPL")
    _libraries.append(library)
    return library


def _overloads(base: str) -> Iterator[OpOverload]:
    """The overloads of `base` and its in-place form that have a CUDA kernel and compute."""
    for name in (base, f"{base}_"):
        packet = getattr(torch.ops.aten, name, None)
        if packet is None:
            continue
        for overload in packet.overloads():
            op = getattr(packet, overload)
            arguments = op._schema.arguments
            is_view = any(it.alias_info and not it.alias_info.is_write for it in arguments)
            # What draws from a generator that nobody can name would draw from the program's.
            takes_generator = any(it.name == "generator" for it in arguments)
            draws = base in operators.RANDOM and not takes_generator
            left_out = is_view or draws or op.name() in operators.LEFT_OUT
            if not left_out and _has_kernel(op):
                yield op


def _others_that_write() -> Iterator[tuple[OpOverload, str]]:
    """The operators with a CUDA kernel that write into what they are given, and are not computed:
    optimizers' lists, running statistics, in-place forms of what is large."""
    for name in torch._C._dispatch_get_registrations_for_dispatch_key("CUDA"):
        namespace, _, rest = name.partition("::")
        base, _, overload = rest.partition(".")
        if namespace != "aten" or name in _overridden or base in operators.NOT_WRITING:
            continue
        op = getattr(getattr(torch.ops.aten, base, None), overload or "default", None)
        if op is None or name in operators.LEFT_OUT:
            continue
        if any(
            it.alias_info and it.alias_info.is_write or it.name in operators.STATISTICS
            for it in op._schema.arguments
        ):
            yield op, base


def _has_kernel(op: OpOverload) -> bool:
    try:
        return torch._C._dispatch_has_kernel_for_dispatch_key(op.name(), "CUDA")
    except RuntimeError:
        # TorchScript knows it, the dispatcher does not.
        return False


def _override(
    library: torch.library.Library,
    op: OpOverload,
    base: str,
    make: Callable[[Operator], Callable[..., Any]],
    key: str = "CUDA",
) -> None:
    name = op.name().partition("::")[2]
    _overridden.add(op.name())
    try:
        kernel = aside(make(Operator(op, base, torch.library.get_kernel(op, key))))
        with warnings.catch_warnings():
            # PyTorch warns of a kernel that takes another's place: that is meant.
            warnings.simplefilter("ignore")
            library.impl(name, kernel, key, with_keyset=True, allow_override=True)
        notes.operators += 1
    except Exception as error:
        notes.failed(name, f"not overridden: {error}")
