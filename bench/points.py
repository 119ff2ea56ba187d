"""(a) Learning a point's peak: the virtual GPU beside FakeTensorMode with MemTracker."""

import statistics
import time

from processes import Child, Worker

# Of a point: optimizer state is created in the first, and gradients are kept from then on.
STEPS = 3
CASES = [("resnet50", 32, "fp32"), ("gpt2-small", 4, "bf16-autocast")]
FAKE = ("fake-cpu", "fake-cuda")
# Points a round: a fake one takes seconds, a virtual one some hundredths of one.
PER_ROUND = {"fake-cpu": 1, "fake-cuda": 1}
PER_ROUND_VIRTUAL = 10
# On a slow or busy machine a case takes no further round after so long.
LONGEST_SECONDS = 90


def measure(workloads, rounds, say):
    return [measure_case(case, workloads[case[0]], rounds, say) for case in CASES]


def measure_case(case, workload, rounds, say):
    model, batch, precision = case
    say(f"point: {model}, {batch} samples, {precision}")
    begun = time.perf_counter()
    processes = {"worker": Worker(workload, batch, precision)}
    for kind in ("virtual", *FAKE):
        processes[kind] = Child(kind, model, batch, precision)
    firsts = {kind: process.point(STEPS) for kind, process in processes.items()}
    later = {kind: [] for kind in processes}
    for turn in range(rounds):
        if turn > 0 and time.perf_counter() - begun > LONGEST_SECONDS:
            break
        for kind in in_turn(processes, turn):
            for _ in range(PER_ROUND.get(kind, PER_ROUND_VIRTUAL)):
                later[kind].append(processes[kind].point(STEPS)["seconds"])
    for process in processes.values():
        process.close()
    return {
        "model": model, "batch": batch, "precision": precision, "steps": STEPS,
        "methods": {
            kind: {
                "start_seconds": process.start_seconds,
                "first_seconds": firsts[kind]["seconds"],
                "seconds": later[kind],
                "median_seconds": statistics.median(later[kind]),
                "peak_bytes": firsts[kind]["peak_bytes"],
            }
            for kind, process in processes.items()
        },
    }


def in_turn(processes, turn):
    """The processes in an order that changes from round to round."""
    kinds = list(processes)
    start = turn % len(kinds)
    return kinds[start:] + kinds[:start]
