"""A user's own function: is the gradient of its micro-batches that of its whole batch?"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from torch import nn

from vramfit_worker.definition import Definition, define
from vramfit_worker.faults import PointFault, users
from vramfit_worker.placing import on_device, over_parts, place
from vramfit_worker.training import checked, loss_of
from vramfit_worker.user_code import Function, of_type

from .gradients import Gradients, Measured, Problem, batch_norms, dropouts
from .precision import FP32, FP64

# From how many units of rounding on what another seed changes is no rounding.
RANDOM = 10

# Any batch of the user's, and how many samples it has.
Counted = tuple[Any, int]


def compare(
    function: Function, asked: Mapping[str, Any], device: torch.device, seed: int
) -> dict[str, Any]:
    """All that is asked of a function: in the precision it comes in, and in fp64 if it can be."""
    torch.manual_seed(seed)
    definition = define(function, asked["sequence"])
    model = definition.model.train()
    place(model, device)
    batch = _batch(definition, asked["target_batch"], device)
    # It would hide everything else.
    silent = list(dropouts(model))
    _evaluate(*dropouts(model).values())
    problem = _problem(definition, (batch, asked["target_batch"]), asked["micro_batch"])
    measured = Gradients(problem, FP32, device).measure()
    evaluated = measured.seed > RANDOM * FP32.epsilon
    if evaluated:
        # Dropout without a module, by `training` of the module that calls it.
        norms = batch_norms(model).values()
        _evaluate(model)
        for module in norms:
            module.train()
        measured = Gradients(problem, FP32, device).measure()
    return {
        "model": type(model).__name__,
        "target_batch": asked["target_batch"],
        "micro_batch": asked["micro_batch"],
        "batch_norms": list(batch_norms(model)),
        "dropouts": silent,
        "evaluated": evaluated,
        "measured": [it.to_json() for it in (measured, *_in_fp64(problem, device))],
    }


def _batch(definition: Definition, samples: int, device: torch.device) -> Any:
    with users(f"`batch({samples})`"):
        batch = on_device(definition.batch(samples), device)
    if batch is None:
        raise PointFault(f"`batch({samples})` returned nothing")
    if not can_be_split(batch, samples):
        raise PointFault(
            f"`batch({samples})` returned {of_type(batch)} in which nothing has {samples} samples in "
            "its first dimension, so that it cannot be split"
        )
    return batch


def _evaluate(*modules: nn.Module) -> None:
    for module in modules:
        module.eval()


def _problem(definition: Definition, whole: Counted, micro_batch: int) -> Problem[Counted]:
    """Accumulated as training loops do: each loss by its share of the samples."""

    def loss(model: nn.Module, counted: Counted) -> torch.Tensor:
        return checked(loss_of(replace(definition, model=model), counted[0]))

    def parts(whole: Counted) -> list[Counted]:
        batch, samples = whole
        places = torch.arange(samples).split(micro_batch)
        return [(take(batch, samples, these), len(these)) for these in places]

    def reordered(whole: Counted) -> Counted:
        batch, samples = whole
        return take(batch, samples, torch.arange(samples).flip(0)), samples

    return Problem(
        model=definition.model,
        batch=whole,
        parts=parts,
        reordered=reordered,
        whole=loss,
        part=lambda model, part, whole: loss(model, part) * (part[1] / whole[1]),
    )


def _in_fp64(problem: Problem[Counted], device: torch.device) -> list[Measured]:
    batch, samples = problem.batch
    doubled = replace(
        problem, model=FP64.convert(problem.model), batch=(_doubled(batch), samples)
    )
    try:
        return [Gradients(doubled, FP64, device).measure()]
    except Exception:
        # Code that names a type of its own does not mix with it; what is known in fp32 remains.
        return []


def _doubled(batch: Any) -> Any:
    if isinstance(batch, torch.Tensor):
        return FP64.convert(batch)
    return over_parts(batch, _doubled)


def can_be_split(batch: Any, samples: int) -> bool:
    """Whether any part of a batch has one entry a sample."""
    found = False

    def look(part: Any) -> Any:
        nonlocal found
        found = found or _has_all(part, samples)
        return over_parts(part, look)

    look(batch)
    return found


def take(batch: Any, samples: int, places: torch.Tensor) -> Any:
    """The samples at these places; what has no entry for each is what all have in common."""
    if not _has_all(batch, samples):
        return over_parts(batch, lambda part: take(part, samples, places))
    if isinstance(batch, torch.Tensor):
        return batch[places.to(batch.device)]
    return type(batch)(batch[place] for place in places.tolist())


def _has_all(part: Any, samples: int) -> bool:
    if isinstance(part, torch.Tensor):
        return part.dim() > 0 and len(part) == samples
    # A list of samples, rather than of tensors each of which has them all.
    is_list = isinstance(part, (list, tuple)) and len(part) == samples
    return is_list and not any(_has_all(it, samples) for it in part)
