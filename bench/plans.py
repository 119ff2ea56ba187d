"""(c) A whole `vramfit plan`, from the command to the answer."""

import statistics

from processes import plan

MODELS = ("gpt2-small", "resnet50")


def measure(rounds, say):
    """The plans' times, and by model the workload that the worker is asked for."""
    results, workloads = [], {}
    for model in MODELS:
        say(f"plan: {model}")
        runs = [plan(model) for _ in range(rounds)]
        document = runs[0][1]
        workloads[model] = document["workload"]
        outcomes = [next(iter(point["outcome"])) for point in document["measurements"]]
        results.append({
            "model": model, "gpu": "rtx-3050-laptop-4gb", "target_batch": 64,
            "seconds": [seconds for seconds, _ in runs],
            "median_seconds": statistics.median(seconds for seconds, _ in runs),
            "points": len(outcomes),
            "out_of_memory": outcomes.count("out-of-memory"),
            "probe_seconds": sum(point["probe_seconds"] for point in document["measurements"]),
        })
    return results, workloads
