"""Makes `small.pickle`: streams, a private pool, an emptied cache, and a trace that begins late.

Run it on a virtual GPU: `vramfit run --gpu rtx-3060-12gb -- python small.py`.
"""

import pickle
from pathlib import Path

import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 1024), torch.nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.AdamW(model.parameters())
side = torch.cuda.Stream()
pool = torch.cuda.MemPool()


def step(size: int) -> None:
    """A training step, with a tensor that another stream is still at."""
    batch = torch.randn(size, 512, device="cuda")
    batch.record_stream(side)
    model(batch).sum().backward()
    optimizer.step()
    optimizer.zero_grad()


step(4096)
torch.cuda.memory._record_memory_history(stacks="python")
for size in (2048, 8192):
    step(size)
    torch.cuda.empty_cache()
with torch.cuda.stream(side):
    kept = torch.empty(3 << 20, device="cuda")
with torch.cuda.use_mem_pool(pool):
    pooled = torch.empty(5 << 20, device="cuda")
step(1024)
snapshot = torch.cuda.memory._snapshot()
for frame in (it for trace in snapshot["device_traces"] for event in trace for it in event["frames"]):
    frame["filename"] = Path(frame["filename"]).name
for block in (it for segment in snapshot["segments"] for it in segment["blocks"]):
    block["frames"] = []
for segment in snapshot["segments"]:
    segment["frames"] = []
Path("small.pickle").write_bytes(pickle.dumps(snapshot, protocol=4))
print(torch.cuda.memory_stats()["reserved_bytes.all.peak"])
