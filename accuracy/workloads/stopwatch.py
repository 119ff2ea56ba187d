"""Times a step as the sources do: some to warm up, then some between two events."""

import torch

from workloads import launched


def time(step, warm=3, times=3):
    """Milliseconds of a step and what it allocates; every step ends in a synchronisation.

    On a virtual GPU with `VRAMFIT_VGPU_ALL_WORK=1`, also what one step launched and where its time went.
    """
    for _ in range(warm):
        step()
        torch.cuda.synchronize()
    before = launched.report()
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
        after = launched.report()
        figures["work"] = launched.works(before, after, times)
        figures["time"] = launched.split(before, after, times)
    return figures
