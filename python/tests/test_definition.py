"""What a user's function may return, and the words for what it may not. Needs no GPU."""

from __future__ import annotations

import types
import unittest
from typing import Any

from torch import nn

from vramfit_worker.checkpointing import is_possible
from vramfit_worker.definition import Definition, define
from vramfit_worker.faults import Unusable
from vramfit_worker.user_code import Function


def returning(value: Any) -> Function:
    """A user's function."""
    return Function(lambda: value, "train.py:workload", False, False)


def model() -> nn.Module:
    """Something to train."""
    return nn.Sequential(nn.Linear(2, 2), nn.ReLU())


def batch(samples: int) -> int:
    """Stands for a function that makes batches."""
    return samples


class DefinitionTest(unittest.TestCase):
    """`define`."""

    def refused(self, value: Any, message: str, hint: str) -> None:
        """`value` is refused in exactly these words, and it is not that something is missing."""
        with self.assertRaises(Unusable) as caught:
            define(returning(value), None)
        error = caught.exception
        self.assertEqual((error.message, error.hint, error.bad_input), (message, hint, False))

    def test_a_dict_and_an_object_will_do(self) -> None:
        given = {"model": model(), "batch": batch, "loss": None}
        for value in (given, types.SimpleNamespace(**given, anything=1)):
            self.assertIs(define(returning(value), None).batch, batch)

    def test_keys_are_checked(self) -> None:
        self.refused(
            {"modle": model(), "batch": batch},
            "`train.py:workload` returns an unknown key `modle`",
            "did you mean `model`?",
        )
        self.refused(
            {"x": 1},
            "`train.py:workload` returns an unknown key `x`",
            "known are `model`, `batch`, `loss`, `optimizer`, `eval_batch`, `checkpoint`",
        )
        self.refused(
            {"model": model()},
            "`train.py:workload` returns no `batch`",
            "needed are `model` and `batch`; it returns `model`",
        )

    def test_something_else_is_refused(self) -> None:
        self.refused(
            [model(), batch],
            "`train.py:workload` returns a list",
            "return a dict, or an object with the attributes `model` and `batch`",
        )

    def test_the_model_is_a_module_that_learns(self) -> None:
        self.refused(
            {"model": "gpt2", "batch": batch},
            "`model` of `train.py:workload` is a str, not a torch.nn.Module",
            "`model` is the module to train, e.g. `torchvision.models.resnet50()`",
        )
        self.refused(
            {"model": nn.Linear, "batch": batch},
            "`model` of `train.py:workload` is a type, not a torch.nn.Module",
            "a class makes a model when it is called",
        )
        self.refused(
            {"model": model().requires_grad_(False), "batch": batch},
            "`model` of `train.py:workload` has no parameter that requires a gradient",
            "`requires_grad_(True)` on what is to be trained",
        )

    def test_functions_are_functions(self) -> None:
        self.refused(
            {"model": model(), "batch": (1, 2)},
            "`batch` of `train.py:workload` is a tuple, not a function",
            "write `batch=lambda n: …`",
        )
        self.refused(
            {"model": model(), "batch": batch, "loss": 3},
            "`loss` of `train.py:workload` is an int, not a function",
            "write `loss=lambda model, batch: …`",
        )
        self.refused(
            {"model": model(), "batch": batch, "optimizer": "adamw"},
            "`optimizer` of `train.py:workload` is a str, not a function",
            "write `optimizer=lambda params: …`",
        )

    def test_checkpointing_names_what_is_there(self) -> None:
        self.refused(
            {"model": model(), "batch": batch, "checkpoint": True},
            "`checkpoint` of `train.py:workload` is neither a function nor a list of module names",
            "write `checkpoint=lambda model: …` or `checkpoint=['layers.0', …]`",
        )
        self.refused(
            {"model": model(), "batch": batch, "checkpoint": ["7"]},
            "`checkpoint` of `train.py:workload` names `7`, which the model does not have",
            "`model.named_modules()` lists the names",
        )


class BlocksTest(unittest.TestCase):
    """Which blocks are checkpointed where nobody says."""

    def test_repeated_blocks_are_found_and_single_layers_are_none(self) -> None:
        stacked = nn.Sequential(nn.Linear(2, 2), nn.Sequential(model(), model()))
        self.assertTrue(is_possible(Definition(stacked, batch)))
        self.assertFalse(is_possible(Definition(nn.Sequential(nn.ReLU(), nn.ReLU()), batch)))
        self.assertFalse(is_possible(Definition(model(), batch)))


if __name__ == "__main__":
    unittest.main()
