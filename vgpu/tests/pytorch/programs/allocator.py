"""PyTorch's allocator under each of its settings, on a card with 3762 MiB, 98 of them its context.

The argument names the part to run, for which the setting stands in the environment. Each line of the
output is one check: name, measured, expected. Numbers are worked out by hand from the allocator's
rules (c10/cuda/CUDACachingAllocator.cpp, c10/core/AllocatorConfig.cpp).
"""

import ctypes
import gc
import os
import pickle
import sys
import tempfile

import torch
from torch.cuda import _memory_viz

MIB = 1 << 20
CAPACITY, CONTEXT = 3762 * MIB, 98 * MIB


class Process(ctypes.Structure):
    """`nvmlProcessInfo_t`."""

    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("instances", ctypes.c_uint * 2),
    ]


nvml = ctypes.CDLL("libnvidia-ml.so.1")
device = ctypes.c_void_p()
nvml.nvmlInit_v2()
nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device))


def check(name, measured, expected):
    print(f"{name}\t{measured}\t{expected}")


def bytes_of(count):
    return torch.empty(count, dtype=torch.uint8, device="cuda")


def on_the_card():
    """What CUDA says is in use, which must be what NVML says this process has."""
    free, total = torch.cuda.mem_get_info()
    count, processes = ctypes.c_uint(16), (Process * 16)()
    nvml.nvmlDeviceGetComputeRunningProcesses_v3(device, ctypes.byref(count), processes)
    used = {it.pid: it.used for it in processes[: count.value]}[os.getpid()]
    return used if total - free == used else f"CUDA {total - free}, NVML {used}"


def check_memory(name, allocated, reserved):
    check(f"{name}: allocated", torch.cuda.memory_allocated(), allocated)
    check(f"{name}: reserved", torch.cuda.memory_reserved(), reserved)
    check(f"{name}: on the card", on_the_card(), CONTEXT + reserved)


def failure(action):
    """The first error of `action`, without what caused it."""
    try:
        action()
    except torch.OutOfMemoryError as error:
        return str(error)
    return "no error"


def native():
    x = bytes_of(3 * MIB)
    check_memory("3 MiB in a segment of 20", 3 * MIB, 20 * MIB)
    y = bytes_of(30 * MIB)
    check_memory("30 MiB in one of their own", 33 * MIB, 50 * MIB)
    del x, y
    torch.cuda.empty_cache()
    check_memory("emptied", 0, 0)
    out_of_memory("Tried to allocate 3.91 GiB")


def out_of_memory(words):
    """A failure tells true figures and leaves nothing behind."""
    kept = bytes_of(200 * MIB)
    before = on_the_card()
    text = failure(lambda: bytes_of(4000 * MIB))
    check("out of memory: what was asked for", words in text, True)
    total, free = "total capacity of 3.67 GiB", "of which 3.38 GiB is free"
    check("out of memory: capacity", total in text and free in text, True)
    check("out of memory: own share", "this process has 298.00 MiB memory in use" in text, True)
    check("out of memory: PyTorch's", "200.00 MiB is allocated by PyTorch" in text, True)
    check("out of memory: nothing is left behind", on_the_card(), before)
    del kept
    torch.cuda.empty_cache()


def expandable():
    x = bytes_of(3 * MIB)
    check_memory("3 MiB in one page of 20", 3 * MIB, 20 * MIB)
    # The 17 MiB behind it are used; 13 more take one page.
    y = bytes_of(30 * MIB)
    check_memory("30 MiB go on behind it", 33 * MIB, 40 * MIB)
    y[17 * MIB - 2 : 17 * MIB + 2].copy_(torch.arange(1, 5, dtype=torch.uint8))
    check("bytes on both sides of a page's end", y[17 * MIB - 2 : 17 * MIB + 2].tolist(), [1, 2, 3, 4])
    check("one segment", [it["is_expandable"] for it in torch.cuda.memory_snapshot()], [True])
    del x
    torch.cuda.empty_cache()
    check_memory("a page that is used in part stays", 30 * MIB, 40 * MIB)
    del y
    torch.cuda.empty_cache()
    check_memory("emptied", 0, 0)
    out_of_memory("Tried to allocate 3.91 GiB")
    # 3664 MiB are 183 pages of 20 MiB and 4 MiB.
    pages = []
    while failure(lambda: pages.append(bytes_of(20 * MIB))) == "no error":
        pass
    check("pages until the card is full", len(pages), 183)
    check_memory("full", 3660 * MIB, 3660 * MIB)
    small = bytes_of(MIB)
    check_memory("and a small page", 3661 * MIB, 3662 * MIB)
    del pages, small
    torch.cuda.empty_cache()
    check_memory("empty again", 0, 0)
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        x = bytes_of(3 * MIB)
    y = bytes_of(3 * MIB)
    check_memory("each stream has its own", 6 * MIB, 40 * MIB)
    torch.cuda.memory._set_allocator_settings("expandable_segments:False")
    z = bytes_of(12 * MIB)
    check_memory("and without, a plain segment", 18 * MIB, 52 * MIB)
    del x, y, z


def pool():
    """`cudaMallocAsync`, whose pool grows by an estimate of 32 MiB."""
    x = bytes_of(3 * MIB)
    check_memory("3 MiB of a chunk", 3 * MIB, 32 * MIB)
    y = bytes_of(100 * MIB)
    check_memory("100 MiB in a chunk of their own", 103 * MIB, 160 * MIB)
    del x
    z = bytes_of(2 * MIB)
    check_memory("what is freed is used again", 102 * MIB, 160 * MIB)
    check("peak", torch.cuda.max_memory_allocated(), 103 * MIB)
    torch.cuda.reset_peak_memory_stats()
    check("peak after its reset", torch.cuda.max_memory_allocated(), 102 * MIB)
    torch.cuda.synchronize()
    check_memory("PyTorch has the pool keep all", 102 * MIB, 160 * MIB)
    small = z[:2].copy_(torch.tensor([7, 8], dtype=torch.uint8))
    check("a value", small.tolist(), [7, 8])
    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        z.add_(1)
    z.record_stream(side)
    del y, z, small
    check("freed, also after use on another stream", torch.cuda.memory_allocated(), 0)
    torch.cuda.empty_cache()
    check_memory("emptied", 0, 0)
    text = failure(lambda: bytes_of(4000 * MIB))
    # PyTorch 2.6 cuts its own text short.
    figures = "3.91 GiB" in text and "3.67 GiB" in text
    check("out of memory", figures or text == "Allocation on device ", True)
    check_memory("nothing is left behind", 0, 0)
    # A chunk of 3680 MiB is more than there is, 3664 MiB is all there is.
    all_of_it = bytes_of(3664 * MIB)
    check_memory("the whole card", 3664 * MIB, 3664 * MIB)
    del all_of_it
    torch.cuda.empty_cache()
    torch.cuda.set_per_process_memory_fraction(0.5)
    check("the limit", failure(lambda: bytes_of(2000 * MIB)) != "no error", True)
    torch.cuda.set_per_process_memory_fraction(1.0)


def split():
    """`max_split_size_mb:64`: larger blocks are neither split nor lent for less."""
    x = bytes_of(100 * MIB)
    del x
    y = bytes_of(30 * MIB)
    check_memory("a block of 100 MiB does not serve 30", 30 * MIB, 130 * MIB)
    x = bytes_of(90 * MIB)
    check_memory("but 90, as a whole", 130 * MIB, 130 * MIB)
    check("as many as are oversize", torch.cuda.memory_stats()["oversize_allocations.current"], 1)
    del x, y


def round_up():
    """`roundup_power2_divisions:4`: 5 to 8 quarters of a power of two."""
    x = bytes_of(1100 * 1024)
    check("1100 KiB become 1280", torch.cuda.memory_allocated(), 1280 * 1024)
    y = bytes_of(33 * MIB)
    check_memory("33 MiB become 40", 1280 * 1024 + 40 * MIB, 60 * MIB)
    del x, y


def collected():
    """`garbage_collection_threshold:0.5`, within half of the card: from a quarter on blocks are freed."""
    torch.cuda.set_per_process_memory_fraction(0.5)
    old = bytes_of(1000 * MIB)
    del old
    kept = bytes_of(1010 * MIB)
    check_memory("what is unused is freed before more is taken", 1010 * MIB, 1010 * MIB)
    check("without a failure before", torch.cuda.memory_stats()["num_alloc_retries"], 0)
    text = failure(lambda: bytes_of(900 * MIB))
    check("out of memory within the limit", "1.84 GiB allowed" in text, True)
    del kept


def pools():
    """Private pools of a program's own."""
    own = torch.cuda.MemPool()
    with torch.cuda.use_mem_pool(own):
        x = bytes_of(3 * MIB)
    y = bytes_of(3 * MIB)
    check_memory("a pool has segments of its own", 6 * MIB, 40 * MIB)
    segments = torch.cuda.memory_snapshot()
    check("two pools", len({it["segment_pool_id"] for it in segments}), 2)
    del x
    torch.cuda.empty_cache()
    check("a pool in use may be emptied", torch.cuda.memory_reserved() in (20 * MIB, 40 * MIB), True)
    del own
    gc.collect()
    torch.cuda.empty_cache()
    check_memory("a pool that is gone keeps nothing", 3 * MIB, 20 * MIB)
    del y


def history():
    """A snapshot with history, read by PyTorch's own `_memory_viz.py`."""
    torch.cuda.memory._record_memory_history()
    kept = [torch.empty(count * MIB, dtype=torch.uint8, device="cuda") for count in (1, 3, 12)]
    del kept[1]
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "snapshot.pickle")
        torch.cuda.memory._dump_snapshot(path)
        with open(path, "rb") as file:
            snapshot = pickle.load(file)
    torch.cuda.memory._record_memory_history(enabled=None)
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    active = sorted(it["size"] for it in blocks if it["state"] == "active_allocated")
    check("what is allocated", active, [MIB, 12 * MIB])
    # 12 MiB find room behind the 3 in a segment of 20.
    check("what is reserved", sum(it["total_size"] for it in snapshot["segments"]), 22 * MIB)
    actions = [it["action"] for it in snapshot["device_traces"][0]]
    check("what happened", (actions.count("alloc"), actions.count("free_requested")), (3, 1))
    frames = [frame for it in snapshot["device_traces"][0] for frame in it.get("frames", [])]
    check("and where", any(it["filename"] == __file__ for it in frames), True)
    summary = _memory_viz.segsum(snapshot)
    check("a summary", "total_reserved: 22.0MiB" in summary, True)
    check("a trace", "alloc" in _memory_viz.trace(snapshot), True)
    check("a page", "<script" in _memory_viz.trace_plot(snapshot), True)


PARTS = (native, expandable, pool, split, round_up, collected, pools, history)
{it.__name__: it for it in PARTS}[sys.argv[1]]()
