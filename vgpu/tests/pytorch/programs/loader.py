"""DataLoader workers and forks beside a process that uses CUDA; says what happened, as JSON."""

import ctypes
import json
import os

import torch

# The process's own symbols: the virtual GPU, which was loaded first.
nvidia = ctypes.CDLL(None)


class Numbers(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, index):
        return torch.full((3, 32, 32), float(index)), index


def total(loader):
    seen = 0
    for images, indices in loader:
        assert images.is_pinned() and images.cuda(non_blocking=True).is_cuda
        seen += int(indices.cuda(non_blocking=True).cpu().sum())
    return seen


def in_child(body):
    """What `body` says in a forked child, or the error it ends with."""
    read, write = os.pipe()
    if os.fork() == 0:
        try:
            said = body()
        except RuntimeError as error:
            said = str(error).splitlines()[0]
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read()
    os.wait()
    return said


def count():
    devices = ctypes.c_int()
    return f"{nvidia.cudaGetDeviceCount(ctypes.byref(devices))} {devices.value}"


def allocate():
    return str(torch.empty(1, device="cuda").device)


if __name__ == "__main__":
    answer = {}
    nvidia.nvmlInit_v2()
    devices = ctypes.c_uint()
    nvidia.nvmlDeviceGetCount_v2(ctypes.byref(devices))
    answer["child_of_nvml_user"] = in_child(allocate)
    torch.nn.Conv2d(3, 8, 3).cuda()
    for method in ("fork", "spawn"):
        loader = torch.utils.data.DataLoader(
            Numbers(), batch_size=8, num_workers=2, pin_memory=True, multiprocessing_context=method
        )
        answer[method] = total(loader)
    kept = torch.empty(32 << 20, dtype=torch.uint8, device="cuda")
    before = torch.cuda.mem_get_info()[0]
    answer["child_of_cuda_user"] = in_child(count)
    answer["child_allocates"] = in_child(allocate)
    answer["child_frees"] = in_child(lambda: str(nvidia.cudaFree(ctypes.c_void_p(kept.data_ptr()))))
    answer["same_memory"] = torch.cuda.mem_get_info()[0] == before
    print(json.dumps(answer))
