"""Trains with parameters, states or layers spread over the ranks, and says what each rank saw, as JSON lines.

usage: sharded.py fsdp2|fsdp2-bf16|fsdp2-keep|fsdp1|zero|tensor|alone|symmetric
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
WIDTH = 1024


def say(**facts):
    # One write: the ranks share the pipe.
    os.write(1, (json.dumps({"rank": rank, "pid": os.getpid(), **facts}) + "\n").encode())


if mode != "alone":
    dist.init_process_group("nccl", device_id=torch.device("cuda", rank))

if mode == "symmetric":
    import torch.distributed._symmetric_memory as symmetric

    try:
        tensor = symmetric.empty(1024, device="cuda")
        symmetric.rendezvous(tensor, dist.group.WORLD)
        error = None
    except RuntimeError as failure:
        error = str(failure)
    say(error=error)
    dist.destroy_process_group()
    sys.exit()

blocks = [nn.Sequential(nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH)) for _ in range(4)]
model = nn.Sequential(*blocks).cuda()
parameters = sum(parameter.numel() for parameter in model.parameters())
if mode.startswith("fsdp2"):
    from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard

    policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16) if mode == "fsdp2-bf16" else MixedPrecisionPolicy()
    for block in model:
        fully_shard(block, mp_policy=policy, reshard_after_forward=mode != "fsdp2-keep")
    fully_shard(model, mp_policy=policy)
elif mode == "fsdp1":
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    model = FullyShardedDataParallel(
        model, auto_wrap_policy=ModuleWrapPolicy({nn.Sequential}), device_id=rank, use_orig_params=True
    )
elif mode == "zero":
    model = nn.parallel.DistributedDataParallel(model, device_ids=[rank])
elif mode == "tensor":
    from torch.distributed.device_mesh import init_device_mesh
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    for block in model:
        parallelize_module(block, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
if mode == "zero":
    from torch.distributed.optim import ZeroRedundancyOptimizer

    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=1e-3)
else:
    optimizer = torch.optim.AdamW(model.parameters())
peaks = []
for _ in range(4):
    torch.cuda.reset_peak_memory_stats()
    loss = model(torch.randn(64, WIDTH, device="cuda")).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    loss.item()
    torch.cuda.synchronize()
    peaks.append(torch.cuda.max_memory_allocated())
say(
    parameters=parameters,
    peaks=peaks,
    held=torch.cuda.memory_allocated(),
    reserved=torch.cuda.max_memory_reserved(),
)
# A backward pass over nothing: once it is through, autograd's thread has let go of Python's objects.
nothing = torch.empty(0, device="cuda", requires_grad=True)
torch.autograd.backward(nothing.view_as(nothing), torch.empty(0, device="cuda"))
if mode != "alone":
    dist.destroy_process_group()
