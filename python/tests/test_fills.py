"""Which random fills are left out, and what those that are shortened still hold."""

from __future__ import annotations

import unittest
from collections.abc import Callable

import torch
from torch import nn

from vramfit_worker.fills import LARGE, left_out, repeated

SIDE = 1024
SENTINEL = 7.0
SHARE = 0.15


def sentinel(*size: int) -> torch.Tensor:
    """A tensor that shows whether it was filled."""
    return torch.full(size, SENTINEL)


class LeftOutTest(unittest.TestCase):
    """`left_out`."""

    def test_no_way_to_fill_a_large_weight_is_taken(self) -> None:
        ways: list[Callable[[torch.Tensor], object]] = [
            torch.Tensor.normal_,
            torch.Tensor.uniform_,
            nn.init.normal_,
            nn.init.uniform_,
            nn.init.kaiming_uniform_,
            nn.init.kaiming_normal_,
            nn.init.xavier_uniform_,
            lambda weight: nn.init.kaiming_uniform_(tensor=weight, a=5**0.5),
        ]
        for number, fill in enumerate(ways):
            large, small = sentinel(SIDE, SIDE), sentinel(8, 8)
            with left_out():
                self.assertIs(fill(large), large, number)
                fill(small)
            self.assertTrue((large == SENTINEL).all(), number)
            self.assertFalse((small == SENTINEL).any(), number)

    def test_layers_are_built_without_their_values(self) -> None:
        for layer in (nn.Linear(SIDE, SIDE), nn.Conv2d(256, 256, 3), nn.Embedding(SIDE, SIDE)):
            nn.init.constant_(layer.weight, SENTINEL)
            with left_out():
                layer.reset_parameters()
            self.assertTrue((layer.weight == SENTINEL).all(), layer)

    def test_what_may_be_looked_up_is_filled(self) -> None:
        tokens = torch.full((2 * LARGE,), -1)
        with left_out():
            tokens.random_(0, 10)
        self.assertGreaterEqual(int(tokens.min()), 0)


class RepeatedTest(unittest.TestCase):
    """`repeated`."""

    def test_large_tensors_repeat_a_block_of_the_distribution_asked_for(self) -> None:
        size = (3, LARGE + 5)
        with repeated():
            normal, uniform = torch.randn(size), torch.rand(*size, dtype=torch.float64)
            tokens, ids = torch.randint(3, 9, size), torch.randint(high=9, size=size)
        for tensor in (normal, uniform, tokens, ids):
            flat = tensor.flatten()
            self.assertEqual(tensor.shape, size)
            self.assertTrue(torch.equal(flat[:LARGE], flat[LARGE : 2 * LARGE]))
            self.assertTrue(torch.equal(flat[:LARGE], flat[2 * LARGE : 3 * LARGE]))
            self.assertGreater(flat[:LARGE].unique().numel(), 5)
        self.assertAlmostEqual(float(normal.mean()), 0.0, delta=0.02)
        self.assertAlmostEqual(float(normal.std()), 1.0, delta=0.02)
        self.assertAlmostEqual(float((uniform < SHARE).double().mean()), SHARE, delta=0.01)
        self.assertEqual(uniform.dtype, torch.float64)
        self.assertEqual((int(tokens.min()), int(tokens.max())), (3, 8))
        self.assertEqual((int(ids.min()), int(ids.max()), ids.dtype), (0, 8, torch.int64))

    def test_fills_in_place_and_options_are_kept(self) -> None:
        generator = torch.Generator().manual_seed(3)
        other = torch.Generator().manual_seed(3)
        with repeated():
            first = torch.randn(2 * LARGE, generator=generator, requires_grad=True)
            second = torch.empty(2 * LARGE).normal_(generator=other)
            scaled = torch.empty(2 * LARGE).uniform_(4.0, 5.0)
        self.assertTrue(first.requires_grad and first.is_leaf)
        self.assertTrue(torch.equal(first.detach(), second))
        self.assertTrue(torch.equal(scaled, scaled.clamp(4.0, 5.0)))

    def test_small_and_unusual_tensors_are_as_without_it(self) -> None:
        out = torch.empty(2 * LARGE)
        makers: list[Callable[[], torch.Tensor]] = [
            lambda: torch.randn(5, 4),
            lambda: torch.randint(7, (9,), dtype=torch.int32),
            lambda: torch.rand([]),
            lambda: torch.empty(LARGE, 2).t().normal_(),
            lambda: torch.randn(2 * LARGE, out=out).clone(),
        ]
        for number, make in enumerate(makers):
            torch.manual_seed(0)
            expected = make()
            torch.manual_seed(0)
            with repeated():
                self.assertTrue(torch.equal(make(), expected), number)

    def test_a_weight_that_cannot_be_filled_fails_as_without_it(self) -> None:
        weight = nn.Parameter(torch.empty(2 * LARGE))
        with repeated(), self.assertRaises(RuntimeError):
            weight.normal_()


if __name__ == "__main__":
    unittest.main()
