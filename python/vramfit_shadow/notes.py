"""What is kept account of, and handed to the virtual GPU for its report when the program ends."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any

from vramfit_torch import about
from vramfit_torch.allocator import Device
from vramfit_torch.places import Place

from .library import Library

MOST_LISTED = 200


@dataclass
class Size:
    """Results of one operator at one line, whose size depends on values that are not known."""

    lowest: int
    highest: int
    taken: int
    count: int


@dataclass
class Notes:
    """Counters and lists; the names are those of the report (vgpu/schema/src/python.rs)."""

    torch: str = ""
    absent: str | None = "not begun"
    operators: int = 0
    calls: int = 0
    computed: int = 0
    stand_ins: int = 0
    failures: dict[str, str] = field(default_factory=dict)
    reads: dict[tuple[Place | None, str, int], int] = field(default_factory=dict)
    sizes: dict[tuple[str, Place | None], Size] = field(default_factory=dict)
    out_of_memory: dict[tuple[int, int, tuple[Place, ...]], int] = field(default_factory=dict)
    ended_by: dict[str, Any] | None = None
    allocators: list[Device] = field(default_factory=list)

    def failed(self, operator: str, reason: str) -> None:
        """An operator could not be computed though its inputs were there."""
        if len(self.failures) < MOST_LISTED:
            self.failures.setdefault(operator, reason.partition("\n")[0][:200])

    def read(self, place: Place | None, element: str, size: int) -> None:
        """A value that was not computed came back."""
        key = (place, element, size)
        if key in self.reads or len(self.reads) < MOST_LISTED:
            self.reads[key] = self.reads.get(key, 0) + 1

    def size(self, operator: str, place: Place | None, bounds: tuple[int, int], taken: int) -> None:
        """A result got a size that its values would have decided."""
        lowest, highest = bounds
        known = self.sizes.get((operator, place))
        if known is not None:
            known.lowest = min(known.lowest, lowest)
            known.highest = max(known.highest, highest)
            known.taken = max(known.taken, taken)
            known.count += 1
        elif len(self.sizes) < MOST_LISTED:
            self.sizes[operator, place] = Size(lowest, highest, taken, 1)

    def hand_over(self, library: Library) -> None:
        """Gives all of it to the virtual GPU, as JSON."""
        library.hand_over(json.dumps(self._document()).encode())

    def _document(self) -> dict[str, Any]:
        return {
            "torch": self.torch,
            "rank": about.rank(),
            "allocators": [
                {
                    "device": device.index,
                    "allocated_peak_bytes": device.allocated_peak,
                    "reserved_peak_bytes": device.reserved_peak,
                    "retries": device.retries,
                }
                for device in self.allocators
            ],
            "out_of_memory": [
                {
                    "device": device,
                    "requested_bytes": requested,
                    "places": [place._asdict() for place in places],
                    "count": count,
                }
                for (device, requested, places), count in self.out_of_memory.items()
            ],
            "ended_by": self.ended_by,
            "shadow": {
                "absent": self.absent,
                "operators": self.operators,
                "calls": self.calls,
                "computed": self.computed,
                "stand_ins": self.stand_ins,
                "failures": [f"{name}: {reason}" for name, reason in self.failures.items()],
                "unknown_reads": [
                    {"place": _dict(place), "element": element, "bytes": size, "count": count}
                    for (place, element, size), count in self.reads.items()
                ],
                "sizes": [
                    {"operator": operator, "place": _dict(place), **vars(size)}
                    for (operator, place), size in self.sizes.items()
                ],
            },
        }


def _dict(place: Place | None) -> dict[str, Any] | None:
    return None if place is None else place._asdict()


notes = Notes()
"""Those of this process."""
