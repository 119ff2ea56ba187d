"""What the measurements were made on and with."""

import datetime
import importlib.metadata
import os
import pathlib
import platform
import subprocess

from processes import ROOT, VRAMFIT

PACKAGES = ("torch", "torchvision", "transformers", "accelerate", "lightning")


def describe():
    return {
        "date": datetime.datetime.now(datetime.timezone.utc).strftime("%Y-%m-%d %H:%M UTC"),
        "cpu": cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"),
        "kernel": f"{platform.system()} {platform.release()}",
        "load": os.getloadavg()[0],
        "vramfit": first_line([str(VRAMFIT), "--version"]).split()[-1],
        "commit": first_line(["git", "-C", str(ROOT), "describe", "--always", "--dirty"]),
        "python": platform.python_version(),
        **{name: importlib.metadata.version(name) for name in PACKAGES},
    }


def cpu():
    for line in pathlib.Path("/proc/cpuinfo").read_text().splitlines():
        if line.startswith("model name"):
            return line.split(":")[1].strip()
    return platform.machine()


def first_line(command):
    done = subprocess.run(command, capture_output=True, text=True)
    return done.stdout.strip().splitlines()[0] if done.returncode == 0 else "unknown"
