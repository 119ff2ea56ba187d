"""What the user's function returns, checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any

import torch
from torch import nn

from .faults import Raised, Unusable, in_words, users, users_place
from .user_code import Function, nearest, of_type


@dataclass(frozen=True)
class Definition:
    """What is trained, in the user's own terms."""

    model: nn.Module
    batch: Callable[[int], Any]
    loss: Callable[[nn.Module, Any], Any] | None = None
    optimizer: Callable[[list[nn.Parameter]], Any] | None = None
    eval_batch: Any = None
    checkpoint: Callable[[nn.Module], Any] | Sequence[str] | None = None


KEYS = [field.name for field in fields(Definition)]
REQUIRED = ("model", "batch")
FUNCTIONS = {
    "batch": "lambda n: …",
    "loss": "lambda model, batch: …",
    "optimizer": "lambda params: …",
}


def define(function: Function, sequence: int | None) -> Definition:
    """Calls the user's function and checks what it returns."""
    if sequence is None and function.needs_sequence:
        raise Unusable(
            f"`{function.shown}` needs `sequence`",
            "`--seq` gives it one, e.g. `--seq 1024`",
            bad_input=True,
        )
    arguments = {} if sequence is None else {"sequence": sequence}
    if sequence is not None and not function.takes_sequence:
        raise Unusable(
            f"`{function.shown}` has no parameter `sequence`, so `--seq {sequence}` has no meaning",
            "leave `--seq` out, or write `def …(sequence=1024):`",
            bad_input=True,
        )
    try:
        with users(f"`{function.shown}`"):
            returned = function.call(**arguments)
    except Raised as raised:
        if isinstance(raised.error, torch.cuda.OutOfMemoryError):
            raise raised.error from None
        raise _failed(function, raised.error) from None
    return _checked(function.shown, returned)


def _failed(function: Function, error: BaseException) -> Unusable:
    place = users_place(error)
    at = f" ({place})" if place else ""
    return Unusable(f"`{function.shown}` failed: {in_words(error)}{at}", cause=error)


def _checked(shown: str, returned: Any) -> Definition:
    if returned is None:
        raise Unusable(f"`{shown}` returns nothing", "end it with `return dict(model=…, batch=…)`")
    values = _values(shown, returned)
    for key in REQUIRED:
        if values.get(key) is None:
            raise Unusable(
                f"`{shown}` returns no `{key}`",
                f"needed are `model` and `batch`; it returns {_listed(values)}",
            )
    _check_types(shown, values)
    return Definition(**values)


def _values(shown: str, returned: Any) -> dict[str, Any]:
    if isinstance(returned, Mapping):
        for key in returned:
            if key not in KEYS:
                raise Unusable(
                    f"`{shown}` returns an unknown key `{key}`",
                    nearest(str(key), KEYS) or "known are " + ", ".join(f"`{k}`" for k in KEYS),
                )
        return dict(returned)
    if not any(hasattr(returned, key) for key in REQUIRED):
        raise Unusable(
            f"`{shown}` returns {of_type(returned)}",
            "return a dict, or an object with the attributes `model` and `batch`",
        )
    return {key: getattr(returned, key) for key in KEYS if hasattr(returned, key)}


def _check_types(shown: str, values: Mapping[str, Any]) -> None:
    model = values["model"]
    if not isinstance(model, nn.Module):
        raise Unusable(
            f"`model` of `{shown}` is {of_type(model)}, not a torch.nn.Module",
            "a class makes a model when it is called"
            if isinstance(model, type)
            else "`model` is the module to train, e.g. `torchvision.models.resnet50()`",
        )
    if not any(parameter.requires_grad for parameter in model.parameters()):
        raise Unusable(
            f"`model` of `{shown}` has no parameter that requires a gradient",
            "`requires_grad_(True)` on what is to be trained",
        )
    for key, form in FUNCTIONS.items():
        value = values.get(key)
        if value is not None and not callable(value):
            raise Unusable(
                f"`{key}` of `{shown}` is {of_type(value)}, not a function",
                f"write `{key}={form}`",
            )
    _check_checkpoint(shown, values.get("checkpoint"), model)


def _check_checkpoint(shown: str, checkpoint: Any, model: nn.Module) -> None:
    if checkpoint is None or callable(checkpoint):
        return
    names_only = isinstance(checkpoint, (list, tuple)) and checkpoint
    if not names_only or not all(isinstance(name, str) for name in checkpoint):
        raise Unusable(
            f"`checkpoint` of `{shown}` is neither a function nor a list of module names",
            "write `checkpoint=lambda model: …` or `checkpoint=['layers.0', …]`",
        )
    known = [name for name, _ in model.named_modules() if name]
    for name in checkpoint:
        if name not in known:
            raise Unusable(
                f"`checkpoint` of `{shown}` names `{name}`, which the model does not have",
                nearest(name, known) or "`model.named_modules()` lists the names",
            )


def _listed(values: Mapping[str, Any]) -> str:
    given = [f"`{key}`" for key, value in values.items() if value is not None]
    return ", ".join(given) if given else "nothing of use"
