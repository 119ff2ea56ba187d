"""What PyTorch and NVML say of the virtual GPU's memory, step by step, as JSON lines."""

import json
import sys

import pynvml
import torch

pynvml.nvmlInit()
device = pynvml.nvmlDeviceGetHandleByIndex(0)


def say(**facts):
    print(json.dumps(facts), flush=True)


def nvml():
    memory = pynvml.nvmlDeviceGetMemoryInfo(device)
    processes = pynvml.nvmlDeviceGetComputeRunningProcesses(device)
    return {"used": memory.used, "total": memory.total, "by": {str(p.pid): p.usedGpuMemory for p in processes}}


say(step="start", nvml=nvml(), count=torch.cuda.device_count())
free, total = torch.cuda.mem_get_info()
say(step="context", nvml=nvml(), free=free, total=total)
kept = torch.empty(3 << 20, dtype=torch.uint8, device="cuda")
say(step="allocated", nvml=nvml(), free=torch.cuda.mem_get_info()[0], reserved=torch.cuda.memory_reserved())
if "--hold" in sys.argv:
    sys.stdin.readline()
try:
    torch.empty(64 << 30, dtype=torch.uint8, device="cuda")
    say(step="too-much", error=None)
except torch.OutOfMemoryError as error:
    say(step="too-much", error=str(error))
del kept
torch.cuda.empty_cache()
say(step="emptied", nvml=nvml(), reserved=torch.cuda.memory_reserved())
