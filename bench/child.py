"""A process that trains one workload on one device and does as it is told on standard input.

usage: child.py DEVICE MODEL BATCH PRECISION

DEVICE is one of
  virtual   the CUDA device that PyTorch finds, which is vramfit's virtual GPU
  meta      PyTorch's meta device
  meta-c++  the same without the meta kernels that PyTorch has in Python, where it has one in C++
  fake-cpu  FakeTensorMode on the CPU, watched by MemTracker
  fake-cuda the same with fake CUDA tensors

Commands, one a line, each answered with one line of JSON:
  point STEPS     builds the workload afresh and trains it; seconds and the peak in bytes
  steps SECONDS   trains on for so long; the seconds of each step
"""

import contextlib
import gc
import json
import os
import sys
import time

import torch

from workloads import Workload

DEVICES = {
    "virtual": "cuda", "meta": "meta", "meta-c++": "meta", "fake-cpu": "cpu", "fake-cuda": "cuda",
}
# So many steps at least are timed, however slow they are.
FEWEST_STEPS = 2


def point(kind, workload, steps):
    workload.drop()
    gc.collect()
    if kind.startswith("fake"):
        begun = time.perf_counter()
        peak = fake_point(DEVICES[kind], workload, steps)
        return {"seconds": time.perf_counter() - begun, "peak_bytes": peak}
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    begun = time.perf_counter()
    workload.build(DEVICES[kind])
    for _ in range(steps):
        workload.step()
    torch.cuda.synchronize()
    seconds = time.perf_counter() - begun
    return {"seconds": seconds, "peak_bytes": torch.cuda.max_memory_allocated()}


def fake_point(device, workload, steps):
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools.mem_tracker import MemTracker

    with FakeTensorMode():
        workload.build(device)
        tracker = MemTracker()
        tracker.track_external(workload.model, workload.optimizer)
        with tracker:
            for _ in range(steps):
                # It wants this between two passes over the same modules.
                tracker.reset_mod_stats()
                workload.step()
    totals = tracker.get_tracker_snapshot("peak")
    return max(snapshot["Total"] for on, snapshot in totals.items() if on.type == device)


def steps(kind, workload, seconds):
    if workload.model is None:
        workload.build(DEVICES[kind])
        workload.step()
    durations = []
    deadline = time.perf_counter() + seconds
    while len(durations) < FEWEST_STEPS or time.perf_counter() < deadline:
        begun = time.perf_counter()
        workload.step()
        if kind == "virtual":
            torch.cuda.synchronize()
        durations.append(time.perf_counter() - begun)
    return {"seconds": durations}


def leave_meta_to_cpp():
    """Takes back what PyTorch's Python code registered for the meta device at import."""
    from torch import _meta_registrations as registrations

    registrations._meta_lib_dont_use_me_use_register_meta._destroy()


def main():
    # Only the answers belong on standard output.
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    kind, model, batch, precision = sys.argv[1:]
    workload = Workload(model, int(batch), precision)
    if kind == "meta-c++":
        leave_meta_to_cpp()
    if DEVICES[kind] == "cuda":
        torch.cuda.init()
    commands = {"point": (point, int), "steps": (steps, float)}
    print(json.dumps({"pid": os.getpid()}), file=answers, flush=True)
    for line in sys.stdin:
        name, argument = line.split()
        do, read = commands[name]
        print(json.dumps(do(kind, workload, read(argument))), file=answers, flush=True)


if __name__ == "__main__":
    with contextlib.suppress(KeyboardInterrupt):
        main()
