"""Measures vramfit beside other ways to learn the same; writes docs/benchmarks.json and .md.

usage: run.py [--quick] [--only plans,points,steps,share,finders] [--output PATH-WITHOUT-ENDING]

All is measured in one run on one machine, what is compared in alternation. With --only the other
sections stay as they are in the output, and each that is measured then tells on its own when and on
what. Needs the release build
and a Python with the packages of requirements-test.txt, which `make bench` sees to.
"""

import argparse
import json
import os
import pathlib
import sys
import time

import finders
import machine
import page
import plans
import points
import share
import steps
from processes import ROOT


SECTIONS = ["plans", "points", "steps", "share", "finders"]


def main():
    arguments = parse()
    begun = time.perf_counter()
    described = machine.describe()
    measured = measure(arguments)
    described["load_at_end"] = os.getloadavg()[0]
    described["seconds"] = time.perf_counter() - begun
    if set(measured) == set(SECTIONS):
        results = {"schema": 2, "machine": described, "apart": {}}
    else:
        results = json.loads(arguments.output.with_suffix(".json").read_text())
        results["schema"] = 2
        results.setdefault("apart", {}).update(dict.fromkeys(measured, described))
    results.update(measured)
    write(results, arguments.output)


def measure(arguments):
    """The sections that are asked for, and the plans where others need what these say."""
    measured = {}
    if {"plans", "points", "share"} & set(arguments.only):
        measured["plans"], workloads = plans.measure(2 if arguments.quick else 7, say)
    if "points" in arguments.only:
        measured["points"] = points.measure(workloads, 1 if arguments.quick else 2, say)
    if "steps" in arguments.only:
        measured["steps"] = steps.measure(2 if arguments.quick else 9, say)
    if "share" in arguments.only:
        measured["share"] = share.measure(workloads, 1 if arguments.quick else 4, say)
    if "finders" in arguments.only:
        measured["finders"] = finders.measure(1 if arguments.quick else 2, say)
    return measured


def parse():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="few repetitions, to try the benchmark")
    parser.add_argument("--only", type=lambda text: text.split(","), default=SECTIONS)
    parser.add_argument("--output", type=pathlib.Path, default=ROOT / "docs/benchmarks")
    arguments = parser.parse_args()
    unknown = sorted(set(arguments.only) - set(SECTIONS))
    if unknown:
        parser.error(f"no section `{unknown[0]}`; there are {', '.join(SECTIONS)}")
    return arguments


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
