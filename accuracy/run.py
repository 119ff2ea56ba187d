"""Runs the workloads of all published rows on virtual GPUs; writes docs/accuracy.json and the page.

usage: run.py [--missing | FAMILY…]     (all; or rows that have no figures yet; or whole families)
"""

import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import page
import results
import rows as published
from machine import HERE, PROCESSES, VRAMFIT, python

# Runs of one virtual GPU that follow each other before its process is made anew.
AT_ONCE = 40


def main():
    rows = published.read()
    asked = sys.argv[1:]
    runs = load() if asked else {}
    if asked == ["--missing"]:
        wanted = [row for row in rows if row.quantity not in runs.get(row.job, {})]
    else:
        wanted = [row for row in rows if not asked or row.family in asked]
    runs.update(measure(published.jobs(wanted)))
    runs = published.read_of(rows, runs)
    save(runs)
    page.write()


def measure(jobs):
    """The figures of each job, in bytes."""
    groups = {}
    for job in jobs:
        groups.setdefault(job[:2], []).append(job)
    batches = [
        group[start : start + AT_ONCE]
        for group in groups.values()
        for start in range(0, len(group), AT_ONCE)
    ]
    found = {}
    with ThreadPoolExecutor(PROCESSES) as pool:
        for figures in pool.map(on_virtual_gpu, batches):
            found.update(figures)
            print(f"{len(found)} of {len(jobs)} runs", file=sys.stderr)
    return found


def on_virtual_gpu(jobs):
    """Runs jobs of one environment and one card."""
    environment, profile = jobs[0][:2]
    with tempfile.TemporaryDirectory() as folder:
        asked, report = Path(folder, "jobs.json"), Path(folder, "report.json")
        asked.write_text(json.dumps([
            {"key": index, "workload": workload, "parameters": json.loads(parameters)}
            for index, (_, _, workload, parameters) in enumerate(jobs)
        ]))
        command = [
            VRAMFIT, "run", "--gpu", profile, "--report", report, "--",
            python(environment), "-B", HERE / "child.py", asked,
        ]
        threads = {"OMP_NUM_THREADS": "1"}
        ended = subprocess.run(
            command, capture_output=True, text=True, check=False, env=os.environ | threads
        )
        answers = [json.loads(line) for line in ended.stdout.splitlines() if line.startswith("{")]
        failed = [answer["error"] for answer in answers if "error" in answer]
        if failed or len(answers) != len(jobs):
            sys.exit(f"error: {environment} on {profile}\n{''.join(failed) or ended.stderr}")
        processes = json.loads(report.read_text())["processes"]
    peaks = {it["pid"]: it["process_peak"][0] for it in processes if it["process_peak"]}
    return {jobs[it["key"]]: it["figures"] | process(peaks[it["pid"]]) for it in answers}


def process(peak):
    """What NVML shows of the process at its peak: the context and all that was allocated."""
    return {"process peak": peak["total_bytes"]}


def load():
    return {
        (it["environment"], it["gpu"], it["workload"], json.dumps(it["parameters"])): it["figures"]
        for it in results.read("runs")
    }


def save(runs):
    results.write("runs", [
        {
            "environment": environment, "gpu": gpu, "workload": workload,
            "parameters": json.loads(parameters), "figures": figures,
        }
        for (environment, gpu, workload, parameters), figures in runs.items()
    ])


if __name__ == "__main__":
    main()
