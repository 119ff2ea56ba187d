"""Virtual time: what events tell, what the host waits for, what streams do side by side.

Each line of the output is one check: name, measured, expected; those of `times` are a name and
milliseconds.
"""

import ctypes
import os
import subprocess
import sys
import time

import torch

MIB = 1 << 20
process = ctypes.PyDLL(None)


def check(name, measured, expected):
    print(f"{name}\t{measured}\t{expected}")


def event():
    return torch.cuda.Event(enable_timing=True)


def timed(body):
    """Milliseconds between an event before `body` and one after it."""
    start, end = event(), event()
    start.record()
    body()
    end.record()
    end.synchronize()
    return start.elapsed_time(end)


def dispatch():
    """Milliseconds that the program and PyTorch have been at work."""
    answer = (ctypes.c_uint64 * 7)()
    process.vramfit_vgpu_clock(ctypes.byref(answer))
    return answer[6] / 1e6


def within(measured, least, most):
    return True if least <= measured <= most else (least, measured, most)


def bytes_of(count, **how):
    return torch.empty(count, dtype=torch.uint8, **how)


def times():
    on_card, other = bytes_of(256 * MIB, device="cuda"), bytes_of(256 * MIB, device="cuda")
    pinned, pageable = bytes_of(256 * MIB, pin_memory=True), bytes_of(256 * MIB)
    square = torch.empty(2048, 2048, device="cuda")
    square @ square
    torch.cuda.synchronize()
    for name, body in {
        "pinned": lambda: on_card.copy_(pinned, non_blocking=True),
        "pageable": lambda: pageable.copy_(on_card),
        "device": lambda: other.copy_(on_card),
        "fill": lambda: process.cudaMemsetAsync(
            ctypes.c_void_p(on_card.data_ptr()), 0, ctypes.c_size_t(256 * MIB), None
        ),
        "product": lambda: square @ square,
    }.items():
        print(f"{name}\t{timed(body)}")


def streams():
    on_card, other = bytes_of(256 * MIB, device="cuda"), bytes_of(256 * MIB, device="cuda")
    pinned = bytes_of(256 * MIB, pin_memory=True)
    side = torch.cuda.Stream()
    torch.cuda.synchronize()
    to_card = timed(lambda: on_card.copy_(pinned, non_blocking=True))
    within_card = timed(lambda: [other.copy_(on_card) for _ in range(20)])

    def both(ordered):
        main = torch.cuda.current_stream()
        side.wait_stream(main)
        with torch.cuda.stream(side):
            on_card.copy_(pinned, non_blocking=True)
        if ordered:
            main.wait_stream(side)
        for _ in range(20):
            other.copy_(on_card)
        main.wait_stream(side)

    longest, sum_of_both = max(to_card, within_card), to_card + within_card
    beside, after = timed(lambda: both(False)), timed(lambda: both(True))
    check("two streams overlap", within(beside, longest, 0.9 * sum_of_both), True)
    check("a wait orders them", within(after, 0.99 * sum_of_both, 1.2 * sum_of_both), True)

    def two_of_a_kind():
        with torch.cuda.stream(side):
            for _ in range(20):
                other.copy_(on_card)
        for _ in range(20):
            other.copy_(on_card)
        torch.cuda.current_stream().wait_stream(side)

    shared = timed(two_of_a_kind)
    check("and share the memory", within(shared, 1.9 * within_card, 2.5 * within_card), True)


def host():
    tiny = torch.zeros(8, device="cuda")

    def many():
        for _ in range(500):
            tiny.add_(1)

    many()
    torch.cuda.synchronize()
    start, end = event(), event()
    start.record()
    before = dispatch()
    many()
    at_work = dispatch() - before
    end.record()
    eager = start.elapsed_time(end)
    check("the host is what takes time", eager >= at_work > 0, True)
    check("launches cost the host", within(eager, 500 * 2.5e-3, 1e6), True)
    check("one at a time is the same each time", len({timed(lambda: tiny.add_(1)) for _ in range(20)}), 1)

    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        many()
    replays = [timed(graph.replay) for _ in range(3)]
    check("a graph's nodes follow closer", within(replays[0], 500 * 1e-3, 500 * 2e-3), True)
    check("and are the same each time", len(set(replays)), 1)
    check("so that a replay is quicker", replays[0] < eager, True)

    start.record()
    process.vramfit_vgpu_pause()
    time.sleep(0.2)
    process.vramfit_vgpu_resume()
    end.record()
    check("a pause is not the program's", within(start.elapsed_time(end), 0, 190), True)
    start.record()
    time.sleep(0.2)
    end.record()
    check("sleeping is", within(start.elapsed_time(end), 150, 1e6), True)


def waiting():
    on_card = bytes_of(256 * MIB, device="cuda")
    pinned = bytes_of(256 * MIB, pin_memory=True)
    side = torch.cuda.Stream()
    copy = timed(lambda: on_card.copy_(pinned, non_blocking=True))
    start, early, late, last = event(), event(), event(), event()
    torch.cuda.synchronize()
    started = time.perf_counter()
    start.record()
    for _ in range(200):
        on_card.copy_(pinned, non_blocking=True)
    early.record(side)
    torch.cuda.synchronize()
    late.record(side)
    # It comes back to the host, which waits for it.
    for _ in range(200):
        on_card.copy_(pinned, non_blocking=True)
    on_card[:4].tolist()
    last.record(side)
    wall = 1e3 * (time.perf_counter() - started)
    total = 200 * copy
    check("the host runs ahead", within(start.elapsed_time(early), 0, 0.9 * total), True)
    check("until it synchronises", within(start.elapsed_time(late), 0.99 * total, 1e6), True)
    check("or reads a value", within(start.elapsed_time(last), 1.98 * total, 1e6), True)
    check("nobody sleeps", wall < total, True)
    check("all is done at once all the same", late.query() and side.query(), True)


def starved():
    tiny = torch.zeros(8, device="cuda", requires_grad=True)

    def both():
        """Milliseconds of the wall and of dispatch, of launches by this thread and by autograd's."""
        wall, at_work = time.perf_counter(), dispatch()
        for _ in range(400):
            (tiny + 1 - 2).sum().backward()
        return 1e3 * (time.perf_counter() - wall), dispatch() - at_work

    os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    both()
    wall, at_work = both()
    others = [subprocess.Popen([sys.executable, "-c", "while True: pass"]) for _ in range(6)]
    try:
        time.sleep(1)
        starved_wall, starved_at_work = both()
    finally:
        for other in others:
            other.kill()
            other.wait()
    print(f"{wall=} {at_work=} {starved_wall=} {starved_at_work=}", file=sys.stderr)
    check("others took most of the time", starved_wall > 2 * wall, True)
    taken = (starved_at_work - at_work) / (starved_wall - wall)
    check("it is not the program's", within(taken, -1, 0.25), True)


{"times": times, "streams": streams, "host": host, "waiting": waiting, "starved": starved}[
    sys.argv[1]
]()
