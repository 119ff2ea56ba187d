"""The page, its data and the published rows belong together."""

import json
import unittest

import causes
import page
import rates_run
import rows as published
import run
from machine import ROOT

ROWS = published.read()
RUNS = run.load()
RATES = rates_run.load()


class Page(unittest.TestCase):
    def test_it_is_what_the_data_say(self):
        written = (ROOT / "docs" / "accuracy.md").read_text(encoding="utf-8")
        self.assertEqual(written, page.render(ROWS, RUNS, RATES), "`accuracy/page.py` writes it anew")

    def test_the_data_are_those_of_the_rows(self):
        self.assertEqual(list(RUNS), published.jobs(ROWS))

    def test_all_that_a_row_names_is_there(self):
        ids = [row.id for row in ROWS]
        self.assertEqual(len(ids), len(set(ids)))
        for row in ROWS:
            with self.subTest(row.id):
                self.assertIn(row.source, published.sources())
                self.assertIn(row.unit, published.UNITS)
                self.assertIn(row.quantity, RUNS[row.job])
                self.assertTrue(row.cause in causes.CAUSES or not row.cause)
                self.assertTrue(row.base in ids or not row.base)


def row(**fields):
    every = dict.fromkeys(published.Row.__annotations__, "")
    return published.Row(**every | {"parameters": "{}", "quantity": "peak", "unit": "MiB"} | fields)


class Comparison(unittest.TestCase):
    def test_equal_is_equal_to_the_last_digit_that_was_printed(self):
        one = row(id="a", published="1.126")
        for blocks, exact in ((1, False), (2, True), (3, True), (4, False)):
            with self.subTest(blocks):
                runs = {one.job: {"peak": 2**20 + 128 * 1024 + 512 * blocks}}
                self.assertEqual(published.compare([one], runs)[0].exact, exact)

    def test_medians_in_single_precision_are_within_its_spacing(self):
        for source, exact in (("liger", True), ("another", False)):
            one = row(id="a", source=source, published="33418.426")
            runs = {one.job: {"peak": 33418.4225 * 2**20}}
            with self.subTest(source):
                self.assertEqual(published.compare([one], runs)[0].exact, exact)

    def test_a_series_is_compared_with_its_constant_added(self):
        first = row(id="a", published="1100", workload="first")
        second = row(id="b", published="1300", workload="second", base="a")
        runs = {first.job: {"peak": 100 * 2**20}, second.job: {"peak": 310 * 2**20}}
        (compared,) = published.compare([first, second], runs)
        self.assertEqual((compared.ours, compared.error), (1310 * 2**20, 10 * 2**20))


class Cards(unittest.TestCase):
    def test_a_rehearsal_is_no_measurement(self):
        import tempfile
        from pathlib import Path

        spread = {"exact": 3, "median_percent": 0.0, "worst_percent": -1.5, "worst": 1}
        found = {"rehearsal": True, "summary": {"compared": 4, "allocated": spread}}
        with tempfile.TemporaryDirectory() as folder:
            Path(folder, "rtx.json").write_text(json.dumps(found))
            self.assertEqual(page.cards(Path(folder)), "None yet.")
            Path(folder, "rtx.json").write_text(json.dumps(found | {"rehearsal": False}))
            self.assertIn("| allocated | 3 of 4 | 0 | -1.50 % |", page.cards(Path(folder)))


if __name__ == "__main__":
    unittest.main()
