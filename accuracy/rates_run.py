"""Runs the workloads of published rates on virtual GPUs; writes docs/accuracy.json and the page.

usage: rates_run.py [--works FOLDER] [--missing | PATTERN…]

All rates, those that have no run yet, or those whose id holds a pattern. With --works, what one step
launches is written to FOLDER/ID.json.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

import page
import rates as published
import results
from machine import HERE, PROCESSES, VRAMFIT, python

# Rates whose processes are forked from one that has imported everything.
AT_ONCE = 30


def main():
    parser = argparse.ArgumentParser(usage=__doc__)
    parser.add_argument("--works", type=Path)
    parser.add_argument("--missing", action="store_true")
    parser.add_argument("patterns", nargs="*")
    asked = parser.parse_args()
    rates = published.read()
    runs = load()
    wanted = [
        rate for rate in rates
        if not asked.missing or rate.id not in runs
        if not asked.patterns or any(pattern in rate.id for pattern in asked.patterns)
    ]
    done = 0
    for rate, answer in measure(wanted, works=asked.works is not None):
        done += 1
        figures = answer.get("figures", {"error": answer.get("error", "").strip().splitlines()[-1:]})
        if asked.works and "work" in figures:
            asked.works.mkdir(parents=True, exist_ok=True)
            (asked.works / f"{rate.id}.json").write_text(json.dumps(figures), encoding="utf-8")
        runs[rate.id] = {name: figures[name] for name in KEPT if name in figures}
        save(rates, runs)
        print(f"{done} of {len(wanted)}: {rate.id}: {summary(rate, figures)}", file=sys.stderr)
    page.write()


KEPT = ("ms", "allocated", "reserved", "time", "error")


def summary(rate, figures):
    if "error" in figures:
        return " ".join(figures["error"])
    return f"{figures['ms']:.2f} ms, published {rate.ms:.2f}"


def measure(rates, works):
    """Each rate with its answer, as they come."""
    groups = {}
    for rate in rates:
        groups.setdefault((rate.environment, rate.profile), []).append(rate)
    batches = [
        group[start : start + AT_ONCE]
        for group in groups.values()
        for start in range(0, len(group), AT_ONCE)
    ]
    for environment, _ in groups:
        python(environment)
    answers = Queue()
    with ThreadPoolExecutor(PROCESSES) as pool:
        for batch in batches:
            pool.submit(on_virtual_gpu, batch, works, answers)
        for _ in rates:
            yield answers.get()


def on_virtual_gpu(rates, works, answers):
    """Runs the workloads of one environment and card; puts each rate and what came of it into a queue."""
    left = dict(enumerate(rates))
    why = "no answer"
    try:
        with tempfile.TemporaryDirectory() as folder:
            for key, answer in answered(Path(folder), rates, works):
                answers.put((left.pop(key), answer))
            why = Path(folder, "stderr").read_text(encoding="utf-8") or why
    finally:
        for rate in left.values():
            answers.put((rate, {"error": why}))


def answered(folder, rates, works):
    """The answers of one process's forks, each with its index, as they come."""
    asked = folder / "jobs.json"
    asked.write_text(json.dumps([
        {"key": index, "workload": rate.workload, "parameters": rate.settings}
        for index, rate in enumerate(rates)
    ]))
    # What filled the card then may miss it by a little with other versions. No size depends on values.
    command = [
        VRAMFIT, "run", "--gpu", rates[0].profile, "--vram", "200GiB", "--no-shadow", "--",
        python(rates[0].environment), "-B", HERE / "child.py", asked,
    ]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    if works:
        environment["VRAMFIT_VGPU_ALL_WORK"] = "1"
    with (folder / "stderr").open("w", encoding="utf-8") as errors, subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=errors, text=True, env=environment
    ) as process:
        for line in process.stdout:
            if line.startswith("{"):
                answer = json.loads(line)
                yield answer["key"], answer


def load():
    return {it["id"]: it for it in results.read("rates")}


def save(rates, runs):
    """Beside each run what was published, so that the file can be read alone."""
    results.write("rates", [
        {"id": rate.id, "gpu": rate.profile, "published_ms": round(rate.ms, 3)}
        | {name: runs[rate.id][name] for name in KEPT if name in runs[rate.id]}
        for rate in rates
        if rate.id in runs
    ])


if __name__ == "__main__":
    main()
