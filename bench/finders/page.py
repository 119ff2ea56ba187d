"""Words the comparison of the finders."""

import statistics

from finders import same_setting
from tables import percent, seconds, table

NAMES = {
    "workload": "**vramfit**, `--workload`, this setting alone",
    "grid": "vramfit, `--workload`, all settings",
    "built-in": "vramfit, `--model`, this setting alone",
    "lightning-power": "Lightning `scale_batch_size`, power",
    "lightning-binsearch": "Lightning `scale_batch_size`, binsearch",
    "accelerate": "accelerate `find_executable_batch_size`",
    "transformers": "transformers `auto_find_batch_size`",
    "transformers-128": "transformers `auto_find_batch_size`, from 128",
}

TEXT = """
## Beside the peers' own batch-size finders

The same model, samples, precision and optimizer (AdamW, foreach) on the same virtual card; each
finder with its defaults, in a process of its own, under `vramfit run`, which knows nothing of them.
*Wall* is from the command to its answer, importing included, in alternation; *by vramfit* is the
median of the rounds' ratios to vramfit's first row; *search* is the part of it after the imports, for
vramfit the time of its points. **Nothing is computed here, so these times are those of the host code alone.** On a real
GPU the peers' trials run their kernels, and need the card; vramfit's run where there is none.

*Whole steps* is a test of each answer by a plain PyTorch loop: three optimizer steps, so that the
optimizer's state is there in the later two. *Accumulating* is the same with two micro-steps in each, where
gradients are live already when a forward pass begins. *Flushing* means that it ran, but only since
the allocator gave back its cache and asked again. The largest batch that fits is found by
bisection, and run once more in a fresh process, as is the next, which fails; *of the largest* is the
answer's share of it with one batch a step.
"""

KNOWLEDGE = """
What an answer is:

- **vramfit** gives the micro-batch for a target of {target} samples by accumulation, tests at every
  point the accumulating step, and keeps off sizes that run only by flushing. Where it takes the
  precision and the checkpointing alone, they were chosen by the person; over all settings it chooses them.
- **Lightning** starts with 2 and doubles; *power* stops at the last power of two that ran, *binsearch* goes on
  between that and the first that failed, and takes off 5 % (`margin`). A trial is three whole
  optimizer steps of the module in the trainer's precision.
- **accelerate** starts with 128 (`starting_batch_size`) and takes off a tenth at each failure, down to the
  first size that runs. It runs the user's function, so what a trial holds is up to that: three
  whole steps here. The trial that runs is the training itself, and is not lost. Of a size above the
  start it learns nothing.
- **transformers** does the same with accelerate's decorator, from `per_device_train_batch_size`, which is 8 by
  default: an answer of 8 only says that 8 fits. Accumulation stays what it was, so that a smaller batch is a
  smaller effective batch.
- None of the peers knows a target batch, tries another precision or checkpointing, or tells which
  part of the memory is what.
"""


def render(results):
    parts = [TEXT.strip(), *map(one, results), KNOWLEDGE.format(target=results[0]["target_batch"]).strip()]
    return "\n\n".join(parts)


def one(case):
    truths = case["whole_steps"]
    alone, accumulating = truths["1"], truths["2"]
    rows = [
        [
            NAMES[finder], answer(case, it), str(len(it["tried"])),
            str(sum(not trial["ran"] for trial in it["tried"])),
            f"{seconds(it['median_seconds'])} ({seconds(min(it['seconds']))} to {seconds(max(it['seconds']))})",
            f"{statistics.median(it['ratios']):.2f}x", seconds(statistics.median(it["search_seconds"])),
            *verdicts(case, it),
        ]
        for finder, it in case["finders"].items()
    ]
    header = ["finder", "answer", "trials", "out of memory", "wall, median (least to most)",
              "by vramfit", "search", "whole steps", "accumulating", "of the largest"]
    return "\n\n".join([
        f"### {case['model']}, {case['precision']}, on {case['gpu']}",
        f"What really fits: {largest(alone)} with one batch a step; {largest(accumulating)} accumulating.",
        table(header, rows, "lrrrrrrllr").strip(),
    ])


def largest(truth):
    without = truth["largest_without_flushing"]
    flushing = f", without flushing {without}" if without != truth["largest"] else ""
    return f"**{truth['largest']}**{flushing}"


def answer(case, it):
    """The micro-batch, with the setting where it is not the one of the others."""
    same = same_setting(case["case"], it)
    other = "" if same else f" ({it['setting']['precision']}, {it['setting']['checkpointing']})"
    answers = sorted(set(it["answers"]))
    return " or ".join(map(str, answers)) + other


def verdicts(case, it):
    if not same_setting(case["case"], it):
        return ["another setting", "another setting", "-"]
    truths, size = case["whole_steps"], str(it["answer"])
    share = it["answer"] / truths["1"]["largest"]
    return [*(verdict(truths[steps]["tried"][size]) for steps in ("1", "2")), percent(share)]


def verdict(it):
    if not it["fits"]:
        return "**out of memory**"
    return "flushing" if it["flushed"] else "fits"


def summary(results):
    """Lines for the head of the page."""
    lines = []
    for case in results:
        found = {finder: it["answer"] for finder, it in case["finders"].items()}
        peers = [finder for finder in found if "setting" not in case["finders"][finder]]
        ratios = [statistics.median(case["finders"][finder]["ratios"]) for finder in peers]
        lines.append(
            f"For {case['model']}, the peers' finders take {min(ratios):.2f}x to {max(ratios):.2f}x the wall "
            f"time of vramfit and answer {min(found[it] for it in peers)} to {max(found[it] for it in peers)}; "
            f"vramfit answers {found['workload']}, and {case['whole_steps']['1']['largest']} is the largest that "
            f"runs, {case['whole_steps']['2']['largest']} with accumulation."
        )
    return lines
