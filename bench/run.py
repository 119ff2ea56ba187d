"""Measures vramfit beside other ways to learn the same; writes docs/benchmarks.json and .md.

usage: run.py [--quick] [--only points,steps,share] [--output PATH-WITHOUT-ENDING]

All is measured in one run on one machine, what is compared in alternation. Needs the release build
and a Python with the packages of requirements-test.txt, which `make bench` sees to.
"""

import argparse
import json
import os
import pathlib
import sys
import time

import machine
import page
import plans
import points
import share
import steps
from processes import ROOT


def main():
    arguments = parse()
    begun = time.perf_counter()
    results = {"schema": 1, "machine": machine.describe()}
    results["plans"], workloads = plans.measure(2 if arguments.quick else 7, say)
    if "points" in arguments.only:
        results["points"] = points.measure(workloads, 1 if arguments.quick else 2, say)
    if "steps" in arguments.only:
        results["steps"] = steps.measure(2 if arguments.quick else 9, say)
    if "share" in arguments.only:
        results["share"] = share.measure(workloads, 1 if arguments.quick else 4, say)
    results["machine"]["load_at_end"] = os.getloadavg()[0]
    results["seconds"] = time.perf_counter() - begun
    write(results, arguments.output)


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions, to try the benchmark")
    parser.add_argument("--only", type=lambda text: text.split(","), default=["points", "steps", "share"])
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/benchmarks")
    return parser.parse_args()


def write(results, path):
    path.with_suffix(".json").write_text(json.dumps(rounded(results), indent=1) + "\n")
    path.with_suffix(".md").write_text(page.render(results))
    say(f"written: {path.with_suffix('.md')}, {path.with_suffix('.json')}")


def rounded(value):
    """Seconds to the microsecond and shares to as many digits: the rest is noise."""
    if isinstance(value, float):
        return round(value, 6)
    if isinstance(value, dict):
        return {name: rounded(item) for name, item in value.items()}
    if isinstance(value, list):
        return [rounded(item) for item in value]
    return value


def say(text):
    print(f"bench: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
