"""Jobs in, and of each what the allocator held out."""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from pathlib import Path
from typing import Any

import torch

from vramfit_replay import script
from vramfit_torch import about

PEAKS = ("reserved", "allocated", "active", "requested")
# How PyTorch says that it does not know a setting, or its value, before 2.9.
UNKNOWN = ("Unrecognized", "CachingAllocator option")


def main() -> None:
    """Does each job in a process of its own, one after the other: they share the card."""
    for job in json.load(sys.stdin):
        # Before CUDA is initialised, which no fork may inherit.
        process = os.fork()
        if process == 0:
            Path(job["answer"]).write_text(json.dumps(answer(job)))
            return
        os.waitpid(process, 0)


def answer(job: dict[str, Any]) -> dict[str, Any]:
    """What comes of a job, whatever happens."""
    # Read when the allocator is first used.
    os.environ["PYTORCH_CUDA_ALLOC_CONF"] = job["conf"]
    try:
        outcome = replay(job)
    except Exception as error:
        # What a setting makes of the allocator is for the reader of the table to know.
        text = str(error) or "without a word"
        outcome = {
            "refused": f"{type(error).__name__}: {text.splitlines()[0]}",
            "bad_setting": isinstance(error, ValueError) or text.startswith(UNKNOWN),
        }
    return {"pid": os.getpid(), "outcome": outcome}


def replay(job: dict[str, Any]) -> dict[str, Any]:
    """Replays a script, and says what came of it."""
    torch.cuda.init()
    if job["memory_fraction"] is not None:
        torch.cuda.set_per_process_memory_fraction(job["memory_fraction"])
    lanes = json.loads(Path(job["lanes"]).read_text())
    failed = script.ask(script.read(Path(job["script"])), script.lanes(lanes))
    statistics = torch.cuda.memory_stats()
    return {
        "torch": about.version(),
        "peaks": {name: statistics[f"{name}_bytes.all.peak"] for name in PEAKS},
        "retries": statistics["num_alloc_retries"],
        "out_of_memory": None if failed is None else dataclasses.asdict(failed),
        "segments": [_segment(it) for it in torch.cuda.memory_snapshot()],
    }


def _segment(segment: dict[str, Any]) -> dict[str, Any]:
    return {
        "bytes": segment["total_size"],
        "large": segment["segment_type"] == "large",
        "blocks": [(it["size"], it["state"] != "inactive") for it in segment["blocks"]],
    }
