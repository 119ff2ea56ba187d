"""The conversation: lanes and a script in, what the allocator held out."""

from __future__ import annotations

import dataclasses
import json
import sys
from pathlib import Path
from typing import Any

import torch

from vramfit_replay import script
from vramfit_torch import about

PEAKS = ("reserved", "allocated", "active", "requested")


def main(path: Path) -> None:
    """Answers, whatever happens."""
    try:
        answer = replay(path, json.load(sys.stdin))
    except Exception as error:
        # What a setting makes of the allocator is for the reader of the table to know.
        first_line = str(error).partition("\n")[0]
        answer = {
            "refused": f"{type(error).__name__}: {first_line}",
            # How it says that it does not know a setting.
            "bad_setting": isinstance(error, ValueError),
        }
    json.dump(answer, sys.stdout)


def replay(path: Path, asked: dict[str, Any]) -> dict[str, Any]:
    """Replays a script, and says what came of it."""
    torch.cuda.init()
    if asked["memory_fraction"] is not None:
        torch.cuda.set_per_process_memory_fraction(asked["memory_fraction"])
    failed = script.ask(script.read(path), script.lanes(asked["lanes"]))
    statistics = torch.cuda.memory_stats()
    return {
        "torch": about.version(),
        "peaks": {name: statistics[f"{name}_bytes.all.peak"] for name in PEAKS},
        "retries": statistics["num_alloc_retries"],
        "out_of_memory": None if failed is None else dataclasses.asdict(failed),
        "segments": [_segment(it) for it in torch.cuda.memory_snapshot()],
    }


def _segment(segment: dict[str, Any]) -> dict[str, Any]:
    blocks = [(it["size"], it["state"] != "inactive") for it in segment["blocks"]]
    return {
        "bytes": segment["total_size"],
        "large": segment["segment_type"] == "large",
        "blocks": blocks,
    }
