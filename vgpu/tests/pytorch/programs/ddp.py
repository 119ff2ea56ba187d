"""Trains data-parallel and says what each rank saw, as JSON lines.

usage: ddp.py ddp|ddp-view|fsdp2|alone
"""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn

mode = sys.argv[1]
rank = int(os.environ.get("LOCAL_RANK", 0))
torch.cuda.set_device(rank)
torch.manual_seed(0)
model = nn.Sequential(*[nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(4)])
model = model.cuda()
if mode != "alone":
    dist.init_process_group("nccl")
if mode.startswith("ddp"):
    model = nn.parallel.DistributedDataParallel(
        model, device_ids=[rank], gradient_as_bucket_view=mode == "ddp-view"
    )
elif mode == "fsdp2":
    from torch.distributed.fsdp import fully_shard

    for block in model:
        fully_shard(block)
    fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
peaks = []
for _ in range(5):
    torch.cuda.reset_peak_memory_stats()
    loss = model(torch.randn(64, 1024, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
    peaks.append(torch.cuda.max_memory_allocated())
answer = {
    "rank": rank,
    "pid": os.getpid(),
    "device": torch.cuda.get_device_properties(rank).uuid.bytes[-1],
    "peaks": peaks,
    "reserved": torch.cuda.max_memory_reserved(),
}
# One write: the ranks share the pipe.
os.write(1, (json.dumps(answer) + "\n").encode())
# A backward pass over nothing: once it is through, autograd's thread has let go of Python's objects,
# of which PyTorch 2.15 drops some even after `backward` has returned. In a thread that does so while
# the interpreter is being finalized, the process aborts.
nothing = torch.empty(0, device="cuda", requires_grad=True)
torch.autograd.backward(nothing.view_as(nothing), torch.empty(0, device="cuda"))
if mode != "alone":
    dist.destroy_process_group()
