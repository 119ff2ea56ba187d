"""What `vramfit equivalence` trains and compares, as far as it needs no training."""

from __future__ import annotations

import itertools
import math
import random
import unittest
from collections import Counter
from typing import Any

import torch
from torch import nn

from vramfit_equivalence import cases, grammar, training
from vramfit_equivalence.gradients import Gradients, Problem, fitted, relative
from vramfit_equivalence.own import can_be_split, take
from vramfit_equivalence.precision import FP32, FP64

CPU = torch.device("cpu")
# Threads would wait for each other longer than they compute.
torch.set_num_threads(1)


class GrammarTest(unittest.TestCase):
    def test_what_comes_again_is_the_word_that_was_drawn(self) -> None:
        random_ = random.Random(1)
        for _ in range(20):
            words = grammar.sentence(random_).removesuffix(grammar.END).split(" ")
            self.assertEqual((words[7], words[8], words[10]), (words[0], words[2], words[1]))

    def test_its_entropy_is_that_of_its_sentences(self) -> None:
        # All sentences are equally likely; their number, and their length on average, by counting.
        drawn = [slot for slot in grammar.SENTENCE if isinstance(slot, tuple)]
        sentences = math.prod(map(len, drawn))
        random_ = random.Random(2)
        lengths = [len(grammar.sentence(random_)) for _ in range(4000)]
        by_sample = math.log(sentences) / (sum(lengths) / len(lengths))
        self.assertAlmostEqual(grammar.entropy(), by_sample, delta=0.005 * by_sample)

    def test_training_and_validation_are_other_sentences_of_one_language(self) -> None:
        corpus = grammar.Corpus.of(300, seed=0)
        count = Counter(len(it) for it in (corpus.train, corpus.validation))
        self.assertEqual(len(count), 2)
        self.assertGreater(len(corpus.train), 8 * len(corpus.validation))
        again = grammar.Corpus.of(300, seed=0)
        self.assertTrue(torch.equal(corpus.train, again.train))
        self.assertFalse(torch.equal(corpus.train, grammar.Corpus.of(300, seed=1).train))

    def test_a_window_is_followed_by_its_own_continuation(self) -> None:
        inputs, labels = grammar.windows(torch.arange(50), 5, torch.tensor([3, 40]))
        self.assertEqual(inputs.tolist(), [[3, 4, 5, 6, 7], [40, 41, 42, 43, 44]])
        self.assertTrue(torch.equal(labels, inputs + 1))


class SettingsTest(unittest.TestCase):
    def test_each_sees_the_same_samples_in_an_optimizer_step(self) -> None:
        settings = training.settings(CPU)
        self.assertEqual(len(set(settings)), len(settings))
        for setting in settings:
            self.assertEqual(setting.micro_batch * setting.accumulation, training.BATCH)

    def test_cases_have_names_of_their_own(self) -> None:
        names = [case.name for case in cases.CASES]
        self.assertEqual(len(set(names)), len(names))


class FitTest(unittest.TestCase):
    def test_factors_are_found_where_they_help_and_not_where_nothing_does(self) -> None:
        torch.manual_seed(0)
        each = torch.randn(3, 40, dtype=torch.float64)
        fit = fitted(each, 0.5 * each[0] + 2 * each[1] + each[2])
        for factor, expected in zip(fit.factors, (0.5, 2.0, 1.0), strict=True):
            self.assertAlmostEqual(factor, expected)
        self.assertLess(fit.left, 1e-12)
        self.assertGreater(fitted(each, torch.randn(40, dtype=torch.float64)).left, 0.5)

    def test_a_difference_is_relative_to_the_second(self) -> None:
        self.assertEqual(relative(torch.tensor([3.0, 0.0]), torch.tensor([1.0, 0.0])), 2.0)


class GradientsTest(unittest.TestCase):
    def test_running_statistics_are_as_before_each_pass(self) -> None:
        model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Linear(4, 1))
        problem: Problem[torch.Tensor] = Problem(
            model=model,
            batch=torch.randn(8, 3),
            parts=lambda batch: batch.split(2),
            reordered=lambda batch: batch.flip(0),
            whole=lambda model, batch: model(batch).square().mean(),
            part=lambda model, part, batch: model(part).square().mean() / 4,
        )
        gradients = Gradients(problem, FP32, CPU)
        measured = gradients.measure()
        self.assertGreater(measured.difference, 1e-3)
        assert measured.frozen is not None
        self.assertLess(measured.frozen, 1e-6)
        self.assertTrue(model[1].training)
        self.assertEqual(relative(gradients.full(problem.batch), gradients.full(problem.batch)), 0)

    def test_remedies_are_equal_in_fp64_for_other_seeds_too(self) -> None:
        remedies = [case for case in cases.CASES if case.expected == "equal"]
        for case, seed in itertools.product(remedies, (1, 2)):
            measured = case.measure(FP64, CPU, seed)
            self.assertLess(measured["difference"], 1e-13, case.name)


class TakeTest(unittest.TestCase):
    def taken(self, batch: Any) -> Any:
        """The first and last of four samples."""
        return take(batch, 4, torch.tensor([0, 3]))

    def test_all_that_has_an_entry_a_sample_is_taken_apart(self) -> None:
        images = torch.arange(8).view(4, 2)
        batch = {"images": images, "boxes": ["a", "b", "c", "d"], "scale": torch.ones(3), "n": 4}
        taken = self.taken(batch)
        self.assertEqual(taken["images"].tolist(), [[0, 1], [6, 7]])
        self.assertEqual(taken["boxes"], ["a", "d"])
        self.assertEqual((taken["scale"].tolist(), taken["n"]), ([1.0] * 3, 4))

    def test_a_list_of_as_many_tensors_is_no_list_of_samples(self) -> None:
        views = [torch.arange(4) + 10 * view for view in range(4)]
        self.assertEqual([it.tolist() for it in self.taken(views)], [[0, 3], [10, 13], [20, 23], [30, 33]])

    def test_what_has_no_samples_cannot_be_split(self) -> None:
        self.assertTrue(can_be_split((torch.zeros(4, 2), 1), 4))
        self.assertFalse(can_be_split({"a": torch.zeros(2, 4), "b": "text"}, 4))
