"""What a virtual GPU says a step launched: the difference between two of a process's reports."""

import ctypes
import json
import os
from pathlib import Path


def report():
    """What this process did so far; none unless it is on a virtual GPU that lists all works."""
    folder = os.environ.get("VRAMFIT_VGPU")
    if folder is None or os.environ.get("VRAMFIT_VGPU_ALL_WORK") != "1":
        return None
    ctypes.PyDLL(None).vramfit_vgpu_report()
    return json.loads(Path(folder, f"report-{os.getpid()}.json").read_text(encoding="utf-8"))


def works(before, after, steps):
    """Launches between two reports, divided by the steps between them."""
    launched = {key(it): it for it in before["work"]}
    found = []
    for it in after["work"]:
        earlier = launched.get(key(it), {"count": 0, "seconds": 0.0})
        count = it["count"] - earlier["count"]
        if count:
            seconds = it["seconds"] - earlier["seconds"]
            found.append(it | {"count": count / steps, "seconds": seconds / steps})
    return found


def key(it):
    return it["name"], json.dumps(it["work"], sort_keys=True)


def split(before, after, steps):
    """Where the time of a step went, on the first device; none if it launched nothing."""
    if not after["time"]:
        return None
    earlier = before["time"][0] if before["time"] else {}
    return {
        name: (seconds - earlier.get(name, 0.0)) / steps
        for name, seconds in after["time"][0].items()
    }
