"""Published rates: how they are compared, ranked and held back, and that their workloads are there."""

import ast
import csv
import unittest
from dataclasses import replace

import rates
import speed
from machine import HERE
from workloads import launched

RATES = rates.read()


def rate(**fields):
    every = dict.fromkeys(rates.Rate.__annotations__, "")
    return rates.Rate(**every | {"batch": "10", "quantity": "samples/s", "split": "fit"} | fields)


def run_of(*pairs):
    """Rates of one card by their published and modelled milliseconds a step of 10 samples."""
    made = [
        rate(id=str(index), source="a", profile="card", value=str(10_000 / published))
        for index, (published, _) in enumerate(pairs)
    ]
    return made, {str(index): {"ms": ms} for index, (_, ms) in enumerate(pairs)}


class Published(unittest.TestCase):
    def test_all_that_a_rate_names_is_there(self):
        ids = [it.id for it in RATES]
        self.assertEqual(len(ids), len(set(ids)))
        profiles = {path.stem for path in (HERE.parent / "profiles" / "gpus").glob("*.toml")}
        for it in RATES:
            with self.subTest(it.id):
                self.assertIn(it.source, rates.sources())
                self.assertIn(it.profile, profiles)
                self.assertIn(it.quantity, ("samples/s", "ms/step"))
                self.assertGreater(it.ms, 0)
                self.assertIn(it.workload.partition(".")[2], functions(it.workload.partition(".")[0]))

    def test_a_third_is_held_back_as_the_rule_says(self):
        held = {it.id for it in RATES if it.split == "test"}
        self.assertEqual(held, rates.held_back(RATES))
        self.assertTrue(0.25 < len(held) / len(RATES) < 0.45, len(held) / len(RATES))

    def test_no_card_of_several_rates_is_fitted_to_all_of_them(self):
        for profile in {it.profile for it in RATES}:
            splits = {it.split for it in RATES if it.profile == profile}
            with self.subTest(profile):
                self.assertEqual(splits, {"fit", "test"})

    def test_times_of_kernels_are_of_known_cards_and_positive(self):
        profiles = {path.stem for path in (HERE.parent / "profiles" / "gpus").glob("*.toml")}
        for name, value in (("matmul", "tflops"), ("neusight", "ms")):
            path = HERE / "published" / f"kernels-{name}.csv"
            with path.open(encoding="utf-8", newline="") as file:
                rows = list(csv.DictReader(file))
            for row in rows:
                with self.subTest(row):
                    self.assertIn(row["profile"], profiles)
                    self.assertIn(row["source"], rates.sources())
                    self.assertGreater(float(row[value]), 0)


def functions(module):
    tree = ast.parse((HERE / "workloads" / f"{module}.py").read_text(encoding="utf-8"))
    return {it.name for it in tree.body if isinstance(it, ast.FunctionDef)}


class Comparison(unittest.TestCase):
    def test_milliseconds_follow_from_either_quantity(self):
        self.assertEqual(rate(value="500", batch="20").ms, 40)
        self.assertEqual(rate(value="40", batch="5x12", quantity="ms/step").ms, 40)
        self.assertEqual(rate(batch="5x12").samples, 60)

    def test_the_error_is_that_of_the_rate(self):
        made, runs = run_of((100, 80), (100, 125))
        slow, fast = rates.compare(made, runs)
        self.assertAlmostEqual(slow.error, 25)
        self.assertAlmostEqual(fast.error, 20)
        self.assertAlmostEqual(slow.modelled, 125)

    def test_what_was_not_run_or_failed_is_not_compared(self):
        made, runs = run_of((100, 80), (100, 125), (100, 100))
        del runs["0"]
        runs["1"] = {"error": ["out of memory"]}
        self.assertEqual([it.rate.id for it in rates.compare(made, runs)], ["2"])

    def test_pairs_that_are_near_are_not_ranked(self):
        made, runs = run_of((100, 100), (104, 90), (120, 95))
        self.assertEqual(rates.ranked(rates.compare(made, runs)), (1, 2))

    def test_pairs_are_ranked_within_a_source_and_card(self):
        made, runs = run_of((100, 100), (200, 90))
        self.assertEqual(rates.ranked(rates.compare(made, runs)), (0, 1))
        apart = [replace(made[0], profile="another"), made[1]]
        self.assertEqual(rates.ranked(rates.compare(apart, runs)), (0, 0))

    def test_ranking_is_by_the_sample(self):
        one = rate(id="0", source="a", profile="card", value="100", batch="10")
        two = rate(id="1", source="a", profile="card", value="50", batch="1")
        runs = {"0": {"ms": 100}, "1": {"ms": 20}}
        self.assertEqual(rates.ranked(rates.compare([one, two], runs)), (1, 1))


class Words(unittest.TestCase):
    def test_fitted_and_held_back_rates_are_told_apart(self):
        made, runs = run_of((100, 110), (200, 220), (300, 300))
        made[2] = replace(made[2], split="test")
        compared = rates.compare(made, runs)
        cells = speed.figures(compared)
        self.assertEqual(cells, ["2", "9.1 %", "100 % of 1", "1", "0.0 %", ""])

    def test_without_runs_nothing_is_claimed(self):
        words = speed.parts(RATES[:2], {})
        self.assertEqual(words["speed-count"], "0")
        self.assertEqual(words["speed-cards"], "None yet.")
        self.assertEqual(words["speed-missing"], "None of 2 rates was run yet.")

    def test_a_rate_that_could_not_be_run_is_named(self):
        made, runs = run_of((100, 80), (100, 125))
        del runs["1"]
        self.assertEqual(speed.missing(made, runs), "Not compared, 1: `1`.")

    def test_a_modelled_rate_has_three_digits(self):
        for value, words in ((1234.5, "1234"), (123.4, "123"), (12.34, "12.3"), (1.234, "1.23")):
            self.assertEqual(speed.number(value), words)


class Launched(unittest.TestCase):
    def test_a_step_launches_what_was_added_between_two_reports(self):
        def entry(m, count, seconds):
            return {"name": "gemm", "work": {"m": m}, "count": count, "seconds": seconds}

        before = {"work": [entry(1, 2, 0.5), entry(2, 7, 1.0)], "time": [{"total": 1.0}]}
        after = {"work": [entry(1, 8, 2.0), entry(2, 7, 1.0), entry(3, 3, 0.3)],
                 "time": [{"total": 4.0}]}
        self.assertEqual(
            [(it["work"]["m"], it["count"], it["seconds"]) for it in launched.works(before, after, 3)],
            [(1, 2, 0.5), (3, 1, 0.3 / 3)],
        )
        self.assertEqual(launched.split(before, after, 3), {"total": 1.0})

    def test_without_a_virtual_gpu_nothing_is_reported(self):
        self.assertIsNone(launched.report())


if __name__ == "__main__":
    unittest.main()
