"""Words the results as docs/benchmarks.md."""

import statistics

from finders import page as finders
from tables import gib, mib, percent, seconds, table

METHODS = {
    "worker": "virtual GPU, vramfit's worker",
    "virtual": "virtual GPU, Python",
    "fake-cpu": "FakeTensorMode + MemTracker, `cpu`",
    "fake-cuda": "FakeTensorMode + MemTracker, `cuda`",
}
PRECISIONS = {
    "fp32": "fp32", "bf16-autocast": "bf16 autocast", "bf16-weights": "bf16 weights",
}


def render(results):
    sections = {
        "plans": plans, "points": points, "steps": steps, "share": share, "finders": finders.render,
    }
    parts = [HEAD, summary(results), machine(results["machine"])]
    for name, words in sections.items():
        if name in results:
            parts.append(words(results[name]))
            if name in results["apart"]:
                parts.append(apart(results["apart"][name]))
    return "\n\n".join(part.strip() for part in parts) + "\n"


def apart(it):
    text = (
        f"Measured apart from the rest: {it['date']}, {it['cpu']}, {it['cores']} cores used, "
        f"vramfit {it['vramfit']} ({it['commit']}), accelerate {it['accelerate']}, Lightning {it['lightning']}, load average {it['load']:.1f} at "
        f"the start and {it['load_at_end']:.1f} at the end."
    )
    return text + (f" {BUSY}" if is_busy(it) else "")


HEAD = """\
# Benchmarks

Written by `make bench`; the numbers behind it, repetition by repetition, are in
[benchmarks.json](benchmarks.json). All of it is measured in one run on one machine, but for
sections that say otherwise at their end. What is compared is measured in alternation, so that a
busier or slower moment meets both sides. The ratios say more than the seconds. How true the memory
is that vramfit states is another question, which [accuracy.md](accuracy.md) answers; nothing here
was computed on a GPU.
"""


def summary(results):
    lines = []
    for it in results["plans"]:
        lines.append(f"A whole plan for {it['model']} takes {it['median_seconds']:.1f} s.")
    for case in results.get("points", []):
        methods = case["methods"]
        lines.append(
            f"To learn the peak of {workload(case)}, PyTorch's MemTracker on fake tensors takes "
            f"{times(methods['fake-cuda'], methods['virtual'])} the time of the same program on the "
            f"virtual GPU, and {times(methods['fake-cuda'], methods['worker'])} that of vramfit's worker."
        )
    lines += finders.summary(results.get("finders", []))
    added = [added_share(it) for it in results.get("share") or []]
    if added:
        lines.append(
            f"The virtual GPU adds {percent(min(added))} to {percent(max(added))} to PyTorch's own CPU "
            "time in a training step (goal: 10 % at most)."
        )
    return "".join(f"- {line}\n" for line in lines)


def machine(it):
    text = table(
        ["what", "value"],
        [
            ["date", it["date"]],
            ["processor", f"{it['cpu']}, {it['cores']} cores used"],
            ["memory", gib(it["memory_bytes"])],
            ["system", it["kernel"]],
            ["load average at start and end", f"{it['load']:.1f}, {it['load_at_end']:.1f}"],
            ["vramfit", f"{it['vramfit']} ({it['commit']})"],
            ["PyTorch, torchvision, transformers",
             f"{it['torch']}, {it['torchvision']}, {it['transformers']}"],
            ["accelerate, Lightning",
             ", ".join(it.get(name, "not recorded") for name in ("accelerate", "lightning"))],
            ["Python", it["python"]],
        ],
        "ll",
    )
    return text + (f"\n{BUSY}\n" if is_busy(it) else "")


BUSY = "Other programs kept the machine busy: trust the ratios, not the seconds."


def is_busy(it):
    return it["load"] > it["cores"] / 2


PLANS = """
## A whole plan

From the command `vramfit plan --model MODEL --target-batch 64 --gpu rtx-3050-laptop-4gb --json` to
its answer: four precisions, with and without checkpointing, each with the largest micro-batch that
fits and a proof that the next does not. A worker process starts, which loads libtorch, and trains
at every point: it builds the model and takes two optimizer steps. The wall time is that of a user who waits.
"""


def plans(results):
    rows = [
        [it["model"], spread(it["seconds"], "s"), str(it["points"]), str(it["out_of_memory"]),
         f"{1e3 * it['probe_seconds'] / it['points']:.0f} ms"]
        for it in results
    ]
    header = ["model", "wall time, median (least to most)", "points tried", "out of memory", "a point"]
    return PLANS + "\n" + table(header, rows, "lrrrr")


POINTS = """
## One point: what does this batch take?

Build the model, train {steps} optimizer steps (AdamW, foreach) and read the peak. *First* is the
first point of a fresh process, *later* the median of those after it, as a search tries them;
*start* is what comes before: starting the process and importing or loading PyTorch. The ratios are
to later points of the two ways to use the virtual GPU.

- **{worker}**: what `vramfit plan` runs, through the same protocol. Its models are Rust, on libtorch.
- **{virtual}**: torchvision's and transformers' model in a Python process on the virtual GPU; this is
  the like-for-like, the same program as in the rows below.
- **{fake_cpu}**: PyTorch's own way to follow memory without a device,
  `torch.distributed._tools.mem_tracker`, on fake CPU tensors. It runs anywhere, but takes the CPU's
  operators: its attention is not the GPU's.
- **{fake_cuda}**: the same on fake CUDA tensors. Autograd refuses these where there is no CUDA
  device, so this runs on the virtual GPU as well, which executes nothing here.

The peaks differ for reasons. MemTracker adds up live tensors, rounded up to 512 bytes on `cuda`. The
virtual GPU's are `max_memory_allocated` of PyTorch's caching allocator: in them are the workspaces of
cuBLAS and cuDNN and the temporaries inside operators, which fake tensors never see. What the
allocator reserves beyond it, and the CUDA context, only the virtual GPU knows.
"""


def points(results):
    rows = []
    for case in results:
        methods = case["methods"]
        for kind, it in methods.items():
            rows.append([
                workload(case) if kind == "worker" else "", METHODS[kind],
                seconds(it["start_seconds"]), seconds(it["first_seconds"]),
                spread(it["seconds"], "auto"),
                *(times(it, methods[base]) for base in ("worker", "virtual")), mib(it["peak_bytes"]),
            ])
    text = POINTS.format(
        steps=results[0]["steps"], **{kind.replace("-", "_"): name for kind, name in METHODS.items()}
    )
    header = ["workload", "how", "start", "first", "later, median (least to most)", "by worker",
              "by Python", "peak"]
    return text + "\n" + table(header, rows, "llrrrrrr")


def times(it, base):
    return f"{it['median_seconds'] / base['median_seconds']:.3g}x"


STEPS = """
## One step: what does the virtual GPU cost?

A training step (zero_grad, batch, forward, backward, AdamW) in Python, on the virtual GPU and on
PyTorch's `meta` device, which computes shapes and nothing else. Ratio: virtual by meta, the median of
the rounds' ratios and their range; below 1 the virtual GPU is the faster one.

`meta` is a poor yardstick in Python. At import PyTorch registers Python functions for the meta
device, which take the place of its C++ ones even for a product of two tensors, so that most of the
time of a step on `meta` is Python's. **`meta`, C++ kernels** is the device with these taken back.
Convolution, batch norm, layer norm and embedding have no other, so only a model without them can
run: `mlp`, 48 linear layers of 1024 with GELU. There both sides go through PyTorch's dispatcher and
autograd alike. What the virtual GPU has in addition is all that PyTorch's host code does for a CUDA
device and not for `meta` (its caching allocator, choosing kernels and packing their arguments,
cuBLAS handles, streams and devices), and the virtual GPU itself; in its favour counts that AdamW's foreach
operators are one launch for many tensors on CUDA, and a loop over them on `meta`. How much of it is
the virtual GPU, the next section tells.

Autocast does not know `meta`: 16 bits here means weights in bf16, on both sides.
"""


def steps(results):
    rows = []
    for case in results:
        virtual = case["devices"]["virtual"]
        for kind, ratios in case["ratios"].items():
            meta = case["devices"][kind]
            rows.append([
                workload(case), "`meta`" if kind == "meta" else "`meta`, C++ kernels",
                percentiles(virtual), percentiles(meta),
                f"{statistics.median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})",
            ])
    header = ["workload", "beside", "virtual, median (10 % to 90 %)", "meta, median (10 % to 90 %)", "ratio"]
    return STEPS + "\n" + table(header, rows, "llrrr")


SHARE = """
## Where the time of a step goes

Which share of the CPU time of such steps, all threads together, lies in the virtual GPU, sampled by
`perf` with call stacks while the process trains. *Own* are samples in the library itself, *below*
those in what it called: the C library, the kernel, and NVIDIA's real cuDNN where the library
passes a question on. *Added* is what both add to the rest, which is PyTorch (and Python): the cost of the
virtual GPU over PyTorch's own work. **The goal is 10 % at most.**
"""


def share(results):
    if results is None:
        return SHARE + "\nNot measured: `perf` is not installed or not allowed here.\n"
    rows = []
    for it in results:
        entries = ", ".join(f"`{name}` {percent(part)}" for name, part in it["entry_points"][:3])
        rows.append([
            "worker" if it["who"] == "worker" else "Python", workload(it), f"{it['samples']:,}",
            percent(it["own_share"]), percent(it["below_share"]),
            f"**{percent(added_share(it))}**", entries,
        ])
    header = ["program", "workload", "samples", "own", "below", "added", "most in"]
    return SHARE + "\n" + table(header, rows, "llrrrrl")


def added_share(it):
    inside = it["own_share"] + it["below_share"]
    return inside / (1 - inside)


def workload(case):
    return f"{case['model']}, {case['batch']} samples, {PRECISIONS[case['precision']]}"


def spread(values, unit):
    form = seconds if unit == "auto" else lambda value: f"{value:.2f} s"
    return f"{form(statistics.median(values))} ({form(min(values))} to {form(max(values))})"


def percentiles(it):
    return " ".join([
        seconds(it["median_seconds"]),
        f"({seconds(it['p10_seconds'])} to {seconds(it['p90_seconds'])})",
    ])
