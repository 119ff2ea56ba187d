"""Streams, events, pinned memory and the profiler.

Each line of the output is one check: name, measured, expected.
"""

import ctypes
import json
import os
import tempfile
import warnings

import torch
from torch.profiler import ProfilerActivity, profile, schedule

MIB = 1 << 20
warnings.filterwarnings("ignore")
runtime = ctypes.CDLL(None)


def check(name, measured, expected):
    print(f"{name}\t{measured}\t{expected}")


def events():
    x = torch.zeros(1024, device="cuda")
    first, second, third = (torch.cuda.Event(enable_timing=True) for _ in range(3))
    check("an event that nobody recorded", first.query(), True)
    first.record()
    x.add_(1)
    second.record()
    x.add_(1).mul_(2)
    third.record()
    third.synchronize()
    times = [first.elapsed_time(it) for it in (first, second, third)]
    check("no launch, one, three", 0.0 == times[0] < times[1] < times[2], True)
    check("backwards", third.elapsed_time(first), -times[2])
    check("all have happened", [it.query() for it in (first, second, third)], [True] * 3)
    untimed = torch.cuda.Event()
    untimed.record()
    try:
        first.elapsed_time(untimed)
        check("an event without a time", "no error", "an error")
    except (RuntimeError, ValueError):
        check("an event without a time", "an error", "an error")
    torch.cuda.current_stream().wait_event(untimed)
    torch.cuda.synchronize()


def streams():
    check("priorities", torch.cuda.Stream.priority_range()[0], 0)
    torch.cuda.empty_cache()
    low, high = torch.cuda.Stream(priority=0), torch.cuda.Stream(priority=-1)
    check("priority", (low.priority, high.priority), (0, -1))
    check("queries", (low.query(), high.query()), (True, True))
    with torch.cuda.stream(high):
        check("current", torch.cuda.current_stream() == high, True)
        x = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    y = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    check("each stream has segments of its own", torch.cuda.memory_reserved(), 40 * MIB)
    x.record_stream(torch.cuda.current_stream())
    address = x.data_ptr()
    del x
    check("freed after use elsewhere", torch.cuda.memory_allocated(), 3 * MIB)
    with torch.cuda.stream(high):
        x = torch.empty(3 * MIB, dtype=torch.uint8, device="cuda")
    check("and used again", x.data_ptr(), address)
    high.synchronize()
    del x, y


def pinned():
    x = torch.arange(8).pin_memory()
    check("pinned", (x.is_pinned(), torch.arange(8).is_pinned()), (True, False))
    on_card = x.to("cuda", non_blocking=True)
    back = torch.empty(8, dtype=torch.int64, pin_memory=True)
    back.copy_(on_card, non_blocking=True)
    torch.cuda.synchronize()
    check("there and back", back.tolist(), list(range(8)))
    used = torch.cuda.mem_get_info()[0]
    more = torch.empty(64 * MIB, dtype=torch.uint8, pin_memory=True)
    check("takes nothing of the card", torch.cuda.mem_get_info()[0], used)
    registered = torch.zeros(1024)
    address, size = ctypes.c_void_p(registered.data_ptr()), ctypes.c_size_t(4096)
    check("registered", runtime.cudaHostRegister(address, size, 0), 0)
    check("is pinned", registered.is_pinned(), True)
    check("unregistered", runtime.cudaHostUnregister(address), 0)
    del more


def profiled():
    layer = torch.nn.Linear(64, 64).cuda()
    x = torch.randn(8, 64, device="cuda")
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    with profile(activities=activities, profile_memory=True, record_shapes=True) as profiler:
        layer(x).sum().backward()
    names = [it.key for it in profiler.key_averages()]
    check("operators are there", "aten::linear" in names, True)
    output = [it.self_device_memory_usage for it in profiler.key_averages() if it.key == "aten::addmm"]
    check("and what they allocate", len(output) == 1 and output[0] >= 8 * 64 * 4, True)
    kernels = [it for it in profiler.events() if it.device_type == torch.autograd.DeviceType.CUDA]
    check("kernels are not", len(kernels), 0)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "trace.json")
        profiler.export_chrome_trace(path)
        with open(path) as file:
            check("a trace", len(json.load(file)["traceEvents"]) > 0, True)
    ready = []
    with profile(
        activities=activities,
        schedule=schedule(wait=1, warmup=1, active=2),
        on_trace_ready=lambda it: ready.append(it.step_num),
    ) as profiler:
        for _ in range(4):
            layer(x).sum().backward()
            profiler.step()
    check("a schedule", ready, [4])
    with torch.cuda.profiler.profile(), torch.autograd.profiler.emit_nvtx():
        layer(x)
    with torch.cuda.nvtx.range("a range"):
        torch.cuda.nvtx.mark("a mark")
    # NVTX_NO_PUSH_POP_TRACKING: no tool listens.
    check("ranges", (torch.cuda.nvtx.range_push("outer"), torch.cuda.nvtx.range_pop()), (-2, -2))


events()
streams()
pinned()
profiled()
