"""Trains a public model for three steps and says what PyTorch says of its memory, as JSON.

usage: train.py MODEL PRECISION BATCH [foreach|fused|for-loop]
"""

import json
import sys

import torch

name, precision, batch = sys.argv[1], sys.argv[2], int(sys.argv[3])
implementation = sys.argv[4] if len(sys.argv) > 4 else "foreach"
torch.manual_seed(0)
if precision == "tf32":
    torch.backends.cuda.matmul.allow_tf32 = True
torch.backends.cudnn.allow_tf32 = precision == "tf32"

if name == "gpt2":
    from transformers import GPT2Config, GPT2LMHeadModel

    with torch.device("cuda"):
        model = GPT2LMHeadModel(GPT2Config())

    def loss_of():
        tokens = torch.randint(0, 50257, (batch, 256), device="cuda")
        return model(tokens, labels=tokens).loss
elif name == "plain_gpt2":
    from plain_gpt2 import Decoder

    with torch.device("cuda"):
        model = Decoder()

    def loss_of():
        return model(torch.randint(0, 50257, (batch, 256), device="cuda"))
else:
    import torchvision

    with torch.device("cuda"):
        model = torchvision.models.get_model(name)

    def loss_of():
        images = torch.empty(batch, 3, 224, 224, device="cuda")
        classes = torch.zeros(batch, dtype=torch.long, device="cuda")
        return torch.nn.functional.cross_entropy(model(images), classes)


choice = {"foreach": {}, "fused": {"fused": True}, "for-loop": {"foreach": False}}[implementation]
model.train()
optimizer = torch.optim.AdamW(model.parameters(), **choice)
scaler = torch.amp.GradScaler("cuda", enabled=precision == "fp16")
dtype = {"fp16": torch.float16, "bf16": torch.bfloat16}.get(precision)
for _ in range(3):
    optimizer.zero_grad()
    with torch.autocast("cuda", dtype=dtype, enabled=dtype is not None):
        loss = loss_of()
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    loss.item()

print(
    json.dumps(
        {
            "parameters": sum(parameter.numel() for parameter in model.parameters()),
            "states": len(optimizer.state),
            "trained": len(list(model.parameters())),
            "scale": scaler.get_scale() if precision == "fp16" else None,
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
    )
)
