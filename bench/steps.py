"""(b) A training step on the virtual GPU beside the same step on PyTorch's meta device."""

import statistics

from points import in_turn
from processes import Child

# Autocast does not know the meta device: 16 bits are tried with weights in bf16, on both sides.
CASES = [
    ("resnet50", 32, "fp32", ("virtual", "meta")),
    ("resnet50", 32, "bf16-weights", ("virtual", "meta")),
    ("gpt2-small", 4, "fp32", ("virtual", "meta")),
    ("gpt2-small", 4, "bf16-weights", ("virtual", "meta")),
    ("mlp", 64, "fp32", ("virtual", "meta", "meta-c++")),
    ("mlp", 64, "bf16-weights", ("virtual", "meta", "meta-c++")),
]
SECONDS_A_ROUND = 0.4


def measure(rounds, say):
    return [measure_case(*case, rounds, say) for case in CASES]


def measure_case(model, batch, precision, kinds, rounds, say):
    say(f"step: {model}, {batch} samples, {precision}")
    processes = {kind: Child(kind, model, batch, precision) for kind in kinds}
    # The first steps fill caches: cuDNN's engines, dispatch tables, the allocator.
    for process in processes.values():
        process.steps(SECONDS_A_ROUND)
    by_round = {kind: [] for kind in kinds}
    for turn in range(rounds):
        for kind in in_turn(processes, turn):
            by_round[kind].append(processes[kind].steps(SECONDS_A_ROUND))
    for process in processes.values():
        process.close()
    return {
        "model": model, "batch": batch, "precision": precision,
        "devices": {kind: summary(durations) for kind, durations in by_round.items()},
        "ratios": {
            kind: [
                statistics.median(virtual) / statistics.median(other)
                for virtual, other in zip(by_round["virtual"], by_round[kind])
            ]
            for kind in kinds if kind != "virtual"
        },
    }


def summary(by_round):
    durations = sorted(duration for durations in by_round for duration in durations)
    percentile = lambda share: durations[int(share * (len(durations) - 1))]
    return {
        "steps": len(durations),
        "median_seconds": statistics.median(durations),
        "p10_seconds": percentile(0.1),
        "p90_seconds": percentile(0.9),
        "round_median_seconds": [statistics.median(durations) for durations in by_round],
    }
