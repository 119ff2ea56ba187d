"""CUDA graphs: what a capture keeps from being done, and what a replay does.

The argument names the part to run. Each line of the output is one check: name, measured, expected.
"""

import ctypes
import gc
import os
import sys
import tempfile
import threading
import warnings

import torch
from torch import nn

MIB = 1 << 20
runtime = ctypes.CDLL(None)
warnings.filterwarnings("ignore")


def check(name, measured, expected):
    print(f"{name}\t{measured}\t{expected}")


def values():
    source = torch.tensor([1, 2, 3, 4], device="cuda")
    copied, filled = torch.zeros_like(source), torch.full_like(source, 9)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        copied.copy_(source)
        filled.zero_()
    check("a capture does nothing", (copied.tolist(), filled.tolist()), ([0] * 4, [9] * 4))
    graph.replay()
    check("a replay does it", (copied.tolist(), filled.tolist()), ([1, 2, 3, 4], [0] * 4))
    source.copy_(torch.tensor([5, 6, 7, 8]))
    graph.replay()
    check("with what is there then", copied.tolist(), [5, 6, 7, 8])


def training():
    """A whole training step, replayed; its memory is a pool of its own."""
    layers = nn.Linear(256, 1024), nn.GELU(), nn.Dropout(0.1), nn.Linear(1024, 256)
    model = nn.Sequential(*layers).cuda()
    optimizer = torch.optim.AdamW(model.parameters(), capturable=True)
    x = torch.randn(64, 256, device="cuda")

    def step():
        optimizer.zero_grad(set_to_none=True)
        model(x).pow(2).mean().backward()
        optimizer.step()

    side = torch.cuda.Stream()
    side.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(side):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(side)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    used = torch.cuda.mem_get_info()[0]
    for _ in range(10):
        graph.replay()
    torch.cuda.synchronize()
    if torch.cuda.get_allocator_backend() == "native":
        check("replays allocate nothing", torch.cuda.mem_get_info()[0], used)
    else:
        check("the first launch brings its memory", torch.cuda.mem_get_info()[0] < used, True)
        used = torch.cuda.mem_get_info()[0]
        graph.replay()
        check("the next needs no more", torch.cuda.mem_get_info()[0], used)
    graph.reset()
    del graph
    optimizer.zero_grad(set_to_none=True)
    gc.collect()
    torch.cuda.empty_cache()
    check("a graph that is gone keeps nothing", torch.cuda.mem_get_info()[0] > used, True)
    callable_ = torch.cuda.make_graphed_callables(model, (x.clone(),))
    callable_(x).sum().backward()
    check("graphed callables have gradients", model[0].weight.grad is not None, True)


def libraries():
    """Calls of NVIDIA's libraries are kernels of a graph as all others are; so is what they say."""
    x = torch.randn(64, 64, device="cuda")
    matrix, batch = torch.eye(8, device="cuda"), torch.eye(8, device="cuda").repeat(4, 1, 1)
    sparse, dense = torch.eye(16).to_sparse_csr().cuda(), torch.randn(16, 16, device="cuda")
    factor = torch.empty_like(matrix), torch.full((), 9, dtype=torch.int32, device="cuda")
    factors = torch.linalg.lu_factor_ex(batch)
    factors[2].fill_(9)
    vector = torch.zeros(4, device="cuda")
    host = torch.tensor([1.0, 2.0, 3.0, 4.0]).pin_memory()

    def step():
        torch.fft.fft(x)
        torch.linalg.cholesky_ex(matrix, out=factor)
        torch.linalg.lu_factor_ex(batch, out=factors)
        sparse @ dense
        stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
        pointers = ctypes.c_void_p(host.data_ptr()), ctypes.c_void_p(vector.data_ptr())
        runtime.cublasSetVectorAsync(4, 4, pointers[0], 1, pointers[1], 1, stream)

    def outcome():
        return factor[1].item(), factors[2].tolist(), vector.tolist()

    step()
    check("done at once", outcome(), (0, [0] * 4, [1.0, 2.0, 3.0, 4.0]))
    for tensor in (factor[1], factors[2], vector):
        tensor.fill_(9)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()
    check("captured, not done", outcome(), (9, [9] * 4, [9.0] * 4))
    graph.replay()
    graph.replay()
    check("done at a replay", outcome(), (0, [0] * 4, [1.0, 2.0, 3.0, 4.0]))


def other():
    """Streams that join a capture, external events, pools that graphs share, and a drawing."""
    x = torch.zeros(4, device="cuda")
    side = torch.cuda.Stream()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        current = torch.cuda.current_stream()
        check("capturing", torch.cuda.is_current_stream_capturing(), True)
        x.fill_(1)
        side.wait_stream(current)
        with torch.cuda.stream(side):
            check("a stream that waits joins", torch.cuda.is_current_stream_capturing(), True)
            x.fill_(2)
        current.wait_stream(side)
    check("not capturing any more", torch.cuda.is_current_stream_capturing(), False)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.dot")
        graph.debug_dump(path)
        with open(path) as file:
            drawing = file.read()
    check("a drawing of both kernels", (drawing.count("Kernel"), drawing.count("->")), (2, 1))
    graph.replay()
    check("in order", x.tolist(), [2.0] * 4)
    first, second = torch.cuda.CUDAGraph(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(first):
        a = torch.ones(3 * MIB, device="cuda")
    del a
    reserved = torch.cuda.memory_reserved()
    with torch.cuda.graph(second, pool=first.pool()):
        b = torch.ones(3 * MIB, device="cuda")
    check("graphs that share a pool", torch.cuda.memory_reserved(), reserved)
    del b
    start, end = (torch.cuda.Event(enable_timing=True, external=True) for _ in range(2))
    timed = torch.cuda.CUDAGraph()
    with torch.cuda.graph(timed):
        start.record()
        x.add_(1)
        end.record()
    timed.replay()
    check("external events take part in a replay", start.elapsed_time(end) > 0, True)


def status(call, *arguments):
    found = getattr(runtime, call)(*arguments)
    runtime.cudaGetLastError()
    return found


def forbidden():
    """What the runtime refuses, by the numbers of `cudaError_t`."""
    x = torch.zeros(4, device="cuda")
    event, pointer, graph = torch.cuda.Event(), ctypes.c_void_p(), ctypes.c_void_p()
    event.record()
    other, side = torch.cuda.Stream(), torch.cuda.Stream()
    stream = ctypes.c_void_p(other.cuda_stream)

    def allocate():
        return status("cudaMalloc", ctypes.byref(pointer), ctypes.c_size_t(MIB))

    def capture(name, action, expected, ends=901, mode=0):
        check(f"{name}: begin", status("cudaStreamBeginCapture", stream, mode), 0)
        with torch.cuda.stream(other):
            check(name, action(), expected)
        check(f"{name}: end", status("cudaStreamEndCapture", stream, ctypes.byref(graph)), ends)
        if ends == 0:
            check(f"{name}: destroy", status("cudaGraphDestroy", graph), 0)

    capture("wait for the stream", lambda: status("cudaStreamSynchronize", stream), 900)
    capture("ask for the stream", lambda: status("cudaStreamQuery", stream), 900)
    capture("wait for the device", lambda: status("cudaDeviceSynchronize"), 900)
    capture("copy and wait", lambda: status("cudaMemcpy", x.data_ptr(), x.data_ptr(), 4, 3), 900)
    capture("allocate", allocate, 900)
    capture("allocate in relaxed mode", allocate, 0, ends=0, mode=2)
    check("free", status("cudaFree", pointer), 0)
    capture("begin again", lambda: status("cudaStreamBeginCapture", stream, 0), 401, ends=0)
    of = ctypes.c_void_p(event.cuda_event)
    capture(
        "wait for an event from before", lambda: status("cudaStreamWaitEvent", stream, of, 0), 905
    )
    inner = torch.cuda.Event()

    def ask_for_captured():
        inner.record()
        return status("cudaEventQuery", ctypes.c_void_p(inner.cuda_event))

    capture("ask for a captured event", ask_for_captured, 907)

    def leave_unjoined():
        side.wait_stream(other)
        with torch.cuda.stream(side):
            x.fill_(1)
        return "left"

    capture("a stream that does not come back", leave_unjoined, "left", ends=904)

    def end_elsewhere():
        side.wait_stream(other)
        return status("cudaStreamEndCapture", ctypes.c_void_p(side.cuda_stream), ctypes.byref(graph))

    capture("end on another stream", end_elsewhere, 903)

    def in_another_thread(action):
        found = []
        thread = threading.Thread(target=lambda: found.append(action()))
        thread.start()
        thread.join()
        return found[0]

    capture("allocate in another thread", lambda: in_another_thread(allocate), 900)
    capture("allocate there, local mode", lambda: in_another_thread(allocate), 0, ends=0, mode=1)
    check("free again", status("cudaFree", pointer), 0)
    check("end what never began", status("cudaStreamEndCapture", stream, ctypes.byref(graph)), 401)
    check("the default stream", status("cudaStreamBeginCapture", None, 0), 900)

    blocking = ctypes.c_void_p()
    status("cudaStreamCreate", ctypes.byref(blocking))
    set_bytes = ("cudaMemsetAsync", ctypes.c_void_p(x.data_ptr()), 0, ctypes.c_size_t(4))
    status("cudaStreamBeginCapture", blocking, 0)
    check("the default stream meanwhile", status(*set_bytes, None), 906)
    check("the captured one then", status(*set_bytes, blocking), 901)
    check("end", status("cudaStreamEndCapture", blocking, ctypes.byref(graph)), 901)
    check("and it works again", status(*set_bytes, blocking), 0)

    status("cudaStreamBeginCapture", blocking, 0)
    check("a captured stream ends", status("cudaStreamDestroy", blocking), 0)
    check("and with it the capture", allocate(), 0)
    check("free what came after", status("cudaFree", pointer), 0)
    joined = ctypes.c_void_p()
    status("cudaStreamCreate", ctypes.byref(joined))

    def end_joined():
        inner.record()
        of = ctypes.c_void_p(inner.cuda_event)
        check("joined", status("cudaStreamWaitEvent", joined, of, 0), 0)
        return status("cudaStreamDestroy", joined)

    capture("a stream that joined ends", end_joined, 0)
    check("allocate after it", allocate(), 0)
    check("free that too", status("cudaFree", pointer), 0)

    def invalid():
        status("cudaStreamQuery", stream)
        answer = ctypes.c_int()
        status("cudaStreamIsCapturing", stream, ctypes.byref(answer))
        return answer.value

    capture("a void capture tells so", invalid, 2)
    message = "no error"
    try:
        with torch.cuda.graph(torch.cuda.CUDAGraph()):
            x.sum().item()
    except RuntimeError as error:
        message = str(error).splitlines()[0]
    check("PyTorch's words", "previous error during capture" in message, True)
    x.fill_(3)
    check("and all goes on", x.tolist(), [3.0] * 4)


def failed():
    """What a failed capture allocated lives on in the program, which frees it in the end."""
    with torch.cuda.graph(torch.cuda.CUDAGraph()):
        pass  # a first capture leaves the generator's state behind
    torch.cuda.synchronize()
    free = torch.cuda.mem_get_info()[0]
    graph, kept = torch.cuda.CUDAGraph(), []
    try:
        with torch.cuda.graph(graph):
            kept.append(torch.empty(5 * MIB, device="cuda"))
            torch.cuda.synchronize()
    except RuntimeError:
        check("the capture fails", len(kept), 1)
    del graph
    kept.clear()
    gc.collect()
    torch.cuda.synchronize()
    check("nothing is held", torch.cuda.mem_get_info()[0], free)


{it.__name__: it for it in (values, training, libraries, other, forbidden, failed)}[sys.argv[1]]()
