"""A few rows, run again, give the bytes that are written down."""

import unittest

import rows as published
import run

QUICK = {
    "attn-wedson-e-d16-s256", "attn-wedson-e-d128-s16384", "attn-magma-e-d32-s1024",
    "attn-gaoyue-e-d16-s4096-peak", "cs336-wed-medium-infer-ctx128-req",
}


class Runs(unittest.TestCase):
    def test_the_same_rows_give_the_same_bytes(self):
        rows = published.read()
        jobs = published.jobs([row for row in rows if row.id in QUICK])
        self.assertEqual(len(jobs), len(QUICK))
        written = run.load()
        again = published.read_of(rows, written | run.measure(jobs))
        self.assertEqual({job: again[job] for job in jobs}, {job: written[job] for job in jobs})


if __name__ == "__main__":
    unittest.main()
