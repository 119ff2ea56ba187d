"""What a forked process may do with the virtual GPU, as a JSON object."""

import ctypes
import json
import os
from ctypes import byref, c_size_t, c_uint64, c_void_p
from pathlib import Path

import nvidia
import torch


def in_fork(body):
    """What `body` returns in a forked process."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            answer = body()
        except Exception as error:
            answer = repr(error)
        os.write(writer, json.dumps(answer).encode())
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as answer:
        text = answer.read()
    os.waitpid(child, 0)
    return json.loads(text)


def allocate():
    torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
    return torch.cuda.memory_reserved()


runtime = ctypes.CDLL(None)


def free_inherited(pointer):
    return runtime.cudaFree(c_void_p(pointer))


def write_inherited(pointer):
    """The status of each call that would change what the parent has."""
    target, host = c_void_p(pointer), ctypes.create_string_buffer(b"child")
    size = c_size_t(len(host))
    calls = {
        "cudaMemcpyAsync": (target, host, size, 1, None),
        "cudaMemcpy2DAsync": (target, size, host, size, size, c_size_t(1), 1, None),
        "cudaMemcpy": (target, host, size, 1),
        "cudaMemsetAsync": (target, 1, size, None),
        "cudaMemset": (target, 1, size),
        "cuMemcpyHtoDAsync_v2": (target, host, size, None),
        "cuMemcpyHtoD_v2": (target, host, size),
        "cuMemsetD8Async": (target, 1, size, None),
        "cuMemsetD8_v2": (target, 1, size),
        "cudaMallocAsync": (byref(c_void_p()), c_size_t(64 << 20), None),
        "cudaMemPoolTrimTo": (pool, c_size_t(0)),
        "cudaMemPoolDestroy": (pool,),
    }
    return {call: getattr(runtime, call)(*arguments) for call, arguments in calls.items()}


def launch(kernel, pointer):
    try:
        kernel((1, 1, 1), (1, 1, 1), (pointer,))
    except RuntimeError as error:
        return str(error)
    return "launched"


class PoolProperties(ctypes.Structure):
    """`cudaMemPoolProps`: pinned memory of device 0, for this process alone."""

    _fields_ = [(it, ctypes.c_int) for it in ("type", "handles", "location", "id")]
    _fields_ += [("reserved", ctypes.c_byte * 72)]


# PyTorch counts devices through NVML.
count = torch.cuda.device_count()
after_nvml = in_fork(allocate)
kept = torch.empty(20 << 20, dtype=torch.uint8, device="cuda")
written = torch.tensor(list(b"parent"), dtype=torch.uint8, device="cuda")
os.environ.setdefault("CUDA_HOME", str(next(Path(nvidia.__path__[0]).glob("cu*"))))
spilling = torch.cuda._compile_kernel("""
    __global__ void spilling(int* p) {
        int local[4096];
        for (int i = 0; i < 4096; ++i) local[i] = p[i];
        for (int i = 0; i < 4096; ++i) p[i] = local[p[local[i]]];
    }""", "spilling")
pool, block = c_void_p(), c_void_p()
properties = PoolProperties(1, 0, 1, 0)
assert runtime.cudaMemPoolCreate(byref(pool), byref(properties)) == 0
assert runtime.cudaMemPoolSetAttribute(pool, 4, byref(c_uint64(1 << 30))) == 0
assert runtime.cudaMallocFromPoolAsync(byref(block), c_size_t(1 << 20), pool, None) == 0
assert runtime.cudaFreeAsync(block, None) == 0
free = torch.cuda.mem_get_info()[0]
after_cuda = in_fork(lambda: runtime.cudaGetDeviceCount(byref(ctypes.c_int())))
freed = in_fork(lambda: free_inherited(kept.data_ptr()))
wrote = in_fork(lambda: write_inherited(written.data_ptr()))
launched = in_fork(lambda: launch(spilling, kept))
lost = torch.cuda.mem_get_info()[0] - free
print(json.dumps({
    "count": count,
    "after_nvml": after_nvml,
    "after_cuda": after_cuda,
    "freed": freed,
    "wrote": wrote,
    "launched": launched,
    "lost": lost,
    "read": bytes(written.tolist()).decode(),
    "kernel_holds_memory": launch(spilling, kept) == "launched"
    and torch.cuda.mem_get_info()[0] < free,
}))
