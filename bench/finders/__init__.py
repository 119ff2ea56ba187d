"""(d) The peers' own batch-size finders and vramfit's, on the same virtual card.

One file a peer, which runs under `vramfit run`; `workload.py` is what they are all asked about, and
`whole_steps.py` tests the answers.
"""

import json
import pathlib
import statistics
import subprocess
import sys
import tempfile
import time

from processes import ROOT, VRAMFIT, environment

FOLDER = ROOT / "bench/finders"
# The largest start among the peers, so that none is asked for more than another.
TARGET = 128
CASES = {
    "resnet50": {
        "model": "torchvision's ResNet-50", "precision": "fp32", "gpu": "rtx-3050-laptop-4gb",
        "built_in": ["--model", "resnet50"],
    },
    "gpt2": {
        "model": "transformers' GPT-2 small, 512 tokens", "precision": "bf16", "gpu": "rtx-4060-laptop",
        "built_in": ["--model", "gpt2-small", "--seq", "512"],
    },
}
# What the others are compared with.
BASE = "workload"
PEERS = {
    "lightning-power": ["lightning_tuner.py", "power"],
    "lightning-binsearch": ["lightning_tuner.py", "binsearch"],
    "accelerate": ["accelerate_decorator.py"],
    "transformers": ["transformers_trainer.py"],
    "transformers-128": ["transformers_trainer.py", str(TARGET)],
}


def measure(rounds, say):
    return [measure_case(name, rounds, say) for name in CASES]


def measure_case(name, rounds, say):
    finders = [BASE, "grid", "built-in", *PEERS]
    runs = {finder: [] for finder in finders}
    for turn in range(rounds):
        for finder in finders[turn % len(finders):] + finders[:turn % len(finders)]:
            say(f"finders: {name}, {finder}")
            runs[finder].append(peer(name, finder) if finder in PEERS else ours(name, finder))
    answers = sorted({found[0]["answer"] for found in runs.values() if same_setting(name, found[0])})
    say(f"finders: {name}, testing the answers {', '.join(map(str, answers))}")
    case = CASES[name]
    return {
        "case": name, "model": case["model"], "precision": case["precision"], "gpu": case["gpu"],
        "target_batch": TARGET,
        "finders": {finder: summary(found, runs[BASE]) for finder, found in runs.items()},
        "whole_steps": whole_steps(name, answers),
    }


def same_setting(name, found):
    """Whether an answer is for the precision that the peers are asked for, without checkpointing."""
    asked = {"precision": CASES[name]["precision"], "checkpointing": "none"}
    return found.get("setting", asked) == asked


def summary(found, base):
    seconds = [run["seconds"] for run in found]
    return {
        **{key: value for key, value in found[0].items() if key != "seconds"},
        "answers": [run["answer"] for run in found],
        "seconds": seconds,
        "median_seconds": statistics.median(seconds),
        "search_seconds": [run["search_seconds"] for run in found],
        "ratios": [run["seconds"] / ours["seconds"] for run, ours in zip(found, base)],
    }


def peer(name, finder):
    script, *more = PEERS[finder]
    seconds, found, report = on_card(name, [script, name], more)
    processes = [it["python"] for it in report["processes"] if it.get("python")]
    if not processes:
        sys.exit(f"error: the report of {finder} on {name} has nothing from Python")
    return {
        "answer": found["answer"], "tried": found["tried"], "seconds": seconds,
        "search_seconds": found["search_seconds"],
        "requests_without_memory": sum(
            request["count"] for it in processes for request in it["out_of_memory"]
        ),
    }


def ours(name, finder):
    """`vramfit plan`: for the workload in the precision of the others, for the same over the whole
    grid of settings, and for the model built in."""
    case = CASES[name]
    workload = ["--workload", f"{FOLDER / 'workload.py'}:{name}"]
    command = [
        str(VRAMFIT), "plan", *(case["built_in"] if finder == "built-in" else workload),
        "--target-batch", str(TARGET), "--ragged", "--gpu", case["gpu"], "--json",
    ]
    if finder != "grid":
        command += ["--precision", case["precision"], "--checkpoint", "none"]
    begun = time.perf_counter()
    done = run(command, {"VRAMFIT_PYTHON": sys.executable})
    seconds = time.perf_counter() - begun
    plan = json.loads(done.stdout)
    chosen = plan["recommendation"]
    if chosen is None:
        sys.exit(f"error: vramfit finds nothing for {name}")
    setting = {key: chosen[key] for key in ("precision", "checkpointing")}
    return {
        "answer": chosen["micro_batch"], "setting": setting,
        "accumulation": chosen["accumulation"], "remainder": chosen["remainder"],
        "tried": [
            {"batch": it["point"]["micro_batch"], "ran": "ran" in it["outcome"]}
            for it in plan["measurements"]
        ],
        "seconds": seconds,
        "search_seconds": sum(it["probe_seconds"] for it in plan["measurements"]),
    }


def whole_steps(name, answers):
    """What really fits, with one micro-step in an optimizer step and with two: the largest found by
    bisection, that and the next once more in fresh processes, and each answer."""
    results = {}
    for micro_steps in (1, 2):
        tried = on_card(name, ["whole_steps.py", name], [micro_steps])[1]
        fits = [int(size) for size, it in tried.items() if it["fits"]]
        largest = max(fits)
        again = {}
        for size in (largest, largest + 1):
            again |= on_card(name, ["whole_steps.py", name], [micro_steps, size])[1]
        if [it["fits"] for it in again.values()] != [True, False]:
            sys.exit(f"error: {name}: fresh processes do not confirm {largest}: {again}")
        missing = [size for size in answers if str(size) not in tried]
        if missing:
            tried |= on_card(name, ["whole_steps.py", name], [micro_steps, *missing])[1]
        results[str(micro_steps)] = {
            "largest": largest,
            "largest_without_flushing": max(
                int(size) for size, it in tried.items() if it["fits"] and not it["flushed"]
            ),
            "tried": tried,
        }
    return results


def on_card(name, script, more):
    """A script on the case's virtual card: wall seconds, what it wrote, and the report."""
    with tempfile.TemporaryDirectory() as folder:
        output, report = pathlib.Path(folder) / "found.json", pathlib.Path(folder) / "report.json"
        begun = time.perf_counter()
        run([
            str(VRAMFIT), "run", "--gpu", CASES[name]["gpu"], "--report", str(report), "--",
            sys.executable, str(FOLDER / script[0]), *script[1:], str(output), *map(str, more),
        ])
        seconds = time.perf_counter() - begun
        return seconds, json.loads(output.read_text()), json.loads(report.read_text())


def run(command, more={}):
    done = subprocess.run(command, capture_output=True, text=True, env={**environment(), **more})
    if done.returncode not in (0, 1) or (done.returncode == 1 and "run" in command[1:2]):
        sys.exit(f"error: {' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return done
