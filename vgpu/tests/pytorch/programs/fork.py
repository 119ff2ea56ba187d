"""What a forked process may do with the virtual GPU, as a JSON object."""

import ctypes
import json
import os

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
    return runtime.cudaFree(ctypes.c_void_p(pointer))


# PyTorch counts devices through NVML.
count = torch.cuda.device_count()
after_nvml = in_fork(allocate)
kept = torch.empty(20 << 20, dtype=torch.uint8, device="cuda")
free = torch.cuda.mem_get_info()[0]
after_cuda = in_fork(lambda: runtime.cudaGetDeviceCount(ctypes.byref(ctypes.c_int())))
freed = in_fork(lambda: free_inherited(kept.data_ptr()))
print(json.dumps({
    "count": count,
    "after_nvml": after_nvml,
    "after_cuda": after_cuda,
    "freed": freed,
    "lost": torch.cuda.mem_get_info()[0] - free,
}))
