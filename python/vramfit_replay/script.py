"""A script, and an allocator that is asked what stands in it."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

# An operation: what, which block, how many bytes, on which lane.
WIDTH = 4
ALLOC, FREE, EMPTY_CACHE, BEGIN = range(4)


def read(path: Path) -> array[int]:
    """The numbers of a script."""
    numbers = array("q")
    numbers.frombytes(path.read_bytes())
    return numbers


@dataclass
class OutOfMemory:
    """A request that there was no memory for."""

    operation: int
    requested: int


def lanes(described: Sequence[dict[str, Any]]) -> list[Callable[[int], int]]:
    """What allocates on each lane: a stream, and perhaps a private pool."""
    streams: dict[int, int] = {0: 0}
    pools: dict[tuple[int, int], torch.cuda.MemPool] = {}
    allocators = []
    for lane in described:
        recorded = lane["stream"]
        if recorded not in streams:
            # PyTorch keeps its streams; they need not be held.
            streams[recorded] = torch.cuda.Stream().cuda_stream
        pool = None
        if lane["pool"] is not None:
            pool = pools.setdefault(tuple(lane["pool"]), torch.cuda.MemPool())
        allocators.append(_allocator(streams[recorded], pool))
    return allocators


def _allocator(stream: int, pool: torch.cuda.MemPool | None) -> Callable[[int], int]:
    raw = torch._C._cuda_cudaCachingAllocator_raw_alloc

    def common(size: int) -> int:
        return raw(size, stream)

    def private(size: int) -> int:
        with torch.cuda.use_mem_pool(pool):
            return raw(size, stream)

    return common if pool is None else private


def ask(numbers: array[int], allocators: Sequence[Callable[[int], int]]) -> OutOfMemory | None:
    """Does one operation after the other, until there is no memory for one."""
    free = torch._C._cuda_cudaCachingAllocator_raw_delete
    blocks: dict[int, int] = {}
    fields = iter(numbers)
    for index, (what, block, size, lane) in enumerate(zip(*[fields] * WIDTH, strict=True)):
        if what == ALLOC:
            try:
                blocks[block] = allocators[lane](size)
            except torch.OutOfMemoryError:
                return OutOfMemory(index, size)
        elif what == FREE:
            free(blocks.pop(block))
        elif what == EMPTY_CACHE:
            torch.cuda.empty_cache()
        elif what == BEGIN:
            torch.cuda.reset_peak_memory_stats()
            torch.cuda.reset_accumulated_memory_stats()
    return None
