"""Trains with DeepSpeed's ZeRO and says what each rank saw, as JSON lines.

usage: zero_stages.py STAGE [offload]
"""

import json
import os
import sys

import deepspeed
import torch
from torch import nn

stage, offload = int(sys.argv[1]), "offload" in sys.argv
rank = int(os.environ["LOCAL_RANK"])
torch.cuda.set_device(rank)
deepspeed.init_distributed()
torch.manual_seed(0)
blocks = [nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024)) for _ in range(4)]
model = nn.Sequential(*blocks)
parameters = sum(parameter.numel() for parameter in model.parameters())
zero = {"stage": stage}
if offload:
    zero["offload_optimizer"] = {"device": "cpu", "pin_memory": True}
engine, *_ = deepspeed.initialize(
    model=model,
    optimizer=torch.optim.AdamW(model.parameters()),
    config={
        "train_micro_batch_size_per_gpu": 8,
        "bf16": {"enabled": True},
        "zero_optimization": zero,
        "zero_allow_untested_optimizer": True,
        "zero_force_ds_cpu_optimizer": False,
    },
)
peaks = []
for _ in range(3):
    torch.cuda.reset_peak_memory_stats()
    inputs = torch.randn(8, 1024, device=engine.device, dtype=torch.bfloat16)
    loss = engine(inputs).float().square().mean()
    engine.backward(loss)
    engine.step()
    torch.cuda.synchronize()
    peaks.append(torch.cuda.max_memory_allocated())
answer = {
    "rank": rank,
    "pid": os.getpid(),
    "parameters": parameters,
    "peaks": peaks,
    "held": torch.cuda.memory_allocated(),
}
# One write: the ranks share the pipe.
os.write(1, (json.dumps(answer) + "\n").encode())
engine.destroy()
torch.distributed.destroy_process_group()
