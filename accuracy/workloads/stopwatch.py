"""Times a step as the sources do: some to warm up, then some between two events."""

import ctypes
import json
import os
from pathlib import Path

import torch


def time(step, warm=3, times=3):
    """Milliseconds of a step and what it allocates; every step ends in a synchronisation.

    On a virtual GPU with `VRAMFIT_VGPU_ALL_WORK=1`, also what one step launched and where its time went.
    """
    for _ in range(warm):
        step()
        torch.cuda.synchronize()
    before = report()
    begin, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    begin.record()
    for _ in range(times):
        step()
        torch.cuda.synchronize()
    end.record()
    torch.cuda.synchronize()
    figures = {
        "ms": begin.elapsed_time(end) / times,
        "allocated": torch.cuda.max_memory_allocated(),
        "reserved": torch.cuda.max_memory_reserved(),
    }
    if before is not None:
        after = report()
        figures["work"] = work_of_a_step(before, after, times)
        figures["time"] = time_of_a_step(before, after, times)
    return figures


def report():
    """What this process did on the virtual GPU so far; none unless it is asked to list all works."""
    folder = os.environ.get("VRAMFIT_VGPU")
    if folder is None or os.environ.get("VRAMFIT_VGPU_ALL_WORK") != "1":
        return None
    ctypes.PyDLL(None).vramfit_vgpu_report()
    return json.loads(Path(folder, f"report-{os.getpid()}.json").read_text(encoding="utf-8"))


def work_of_a_step(before, after, times):
    """Launches between two reports, divided by the steps between them."""
    launched = {key(it): it for it in before["work"]}
    found = []
    for it in after["work"]:
        earlier = launched.get(key(it), {"count": 0, "seconds": 0.0})
        count = it["count"] - earlier["count"]
        if count:
            seconds = (it["seconds"] - earlier["seconds"]) / times
            found.append(it | {"count": count / times, "seconds": seconds})
    return found


def key(it):
    return it["name"], json.dumps(it["work"], sort_keys=True)


def time_of_a_step(before, after, times):
    if not after.get("time"):
        return None
    earlier = before.get("time") or {}
    return {
        name: (seconds - earlier.get(name, 0.0)) / times for name, seconds in after["time"].items()
    }
