"""A CUDA tensor that goes from one process to another, as JSON lines.

With `--events`, an event; with `--keep`, the other process keeps the tensor while its owner frees it.
"""

import json
import os

import torch
import torch.multiprocessing as mp

MIB = 1 << 20


def receive(tensors, answers):
    """Reads what arrives, writes to it, and says what it holds on the card itself."""
    event = torch.cuda.Event.from_ipc_handle(0, tensors.get())
    event.wait()
    small, large = tensors.get()
    stream = torch.cuda.current_stream()
    stream.synchronize()
    answers.put({
        "pid": os.getpid(),
        "query": event.query(),
        "small": small.tolist(),
        "middle": large[8 * MIB : 8 * MIB + 3].tolist(),
        "reserved": torch.cuda.memory_reserved(),
        "free": torch.cuda.mem_get_info()[0],
    })
    small.copy_(torch.tensor([7, 8, 9]))
    torch.cuda.synchronize()
    answers.put(None)
    tensors.get()
    del small, large
    torch.cuda.ipc_collect()
    answers.put("let go")


if __name__ == "__main__":
    mp.set_start_method("spawn")
    small = torch.tensor([1, 2, 3], device="cuda")
    large = torch.empty(30 * MIB, dtype=torch.uint8, device="cuda")
    large[8 * MIB : 8 * MIB + 3].copy_(torch.tensor([4, 5, 6], dtype=torch.uint8))
    tensors, answers = mp.Queue(), mp.Queue()
    child = mp.Process(target=receive, args=(tensors, answers))
    child.start()
    event = torch.cuda.Event(enable_timing=False, interprocess=True)
    event.record()
    tensors.put(event.ipc_handle())
    tensors.put((small, large))
    answer = answers.get(timeout=600)
    answer["owner"] = os.getpid()
    answers.get(timeout=600)
    answer["written"] = small.tolist()
    tensors.put("enough")
    answers.get(timeout=600)
    child.join(600)
    answer["exit"] = child.exitcode
    del small, large
    torch.cuda.ipc_collect()
    torch.cuda.empty_cache()
    answer["kept"] = torch.cuda.memory_reserved()
    answer["total"] = torch.cuda.mem_get_info()[1]
    print(json.dumps(answer))
