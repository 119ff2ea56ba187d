"""One AdamW step of a decoder with seven billion parameters, and the host memory it takes."""

import json
import resource

import torch
from torch import nn


def host_bytes():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


torch.empty(1, device="cuda")
# Load what PyTorch itself loads on first use, so that only the model is counted.
small = nn.Linear(8, 8, device="cuda")
small(torch.empty(1, 8, device="cuda")).sum().backward()
torch.optim.AdamW(small.parameters()).step()
before = host_bytes()

width, layers, vocabulary = 4096, 32, 32000
with torch.device("cuda"):
    blocks = [nn.TransformerEncoderLayer(width, 32, 4 * width, batch_first=True) for _ in range(layers)]
    model = nn.Sequential(nn.Embedding(vocabulary, width), *blocks, nn.Linear(width, vocabulary))
    tokens = torch.zeros(1, 64, dtype=torch.long)
optimizer = torch.optim.AdamW(model.parameters())
with torch.autocast("cuda", dtype=torch.bfloat16):
    model(tokens).float().sum().backward()
optimizer.step()

print(
    json.dumps(
        {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "allocated": torch.cuda.max_memory_allocated(),
            "host_before": before,
            "host_after": host_bytes(),
        }
    )
)
