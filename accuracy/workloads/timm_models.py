"""Image models as timm's benchmark.py trains and runs them."""

import timm
import torch
from timm.layers import set_fused_attn
from torch import nn

from workloads import stopwatch
from workloads.images import FORMATS, images

def model_of(name, layout, attention):
    set_fused_attn(attention == "sdpa")
    with torch.device("cuda"):
        model = timm.create_model(name)
    return model.to(memory_format=FORMATS[layout])


def train(model, input, batch, layout, attention, **_):
    """Autocast to fp16 around forward pass, loss and backward pass; no scaler; gradients are zeroed, not
    dropped, and parameters stepped one by one, as PyTorch 1.12 does."""
    model = model_of(model, layout, attention).train()
    x = images(batch, input, layout)
    criterion = nn.CrossEntropyLoss().cuda()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=1e-4, momentum=0.9, nesterov=True, foreach=False
    )

    def step():
        optimizer.zero_grad(set_to_none=False)
        with torch.autocast("cuda", dtype=torch.float16):
            output = model(x)
            output = output[0] if isinstance(output, tuple) else output
            target = torch.empty(batch, device="cuda", dtype=torch.long)
            criterion(output, target.random_(model.num_classes)).backward()
        optimizer.step()

    return stopwatch.time(step)


def infer(model, input, batch, layout, attention, **_):
    """Forward passes in autocast to fp16."""
    model = model_of(model, layout, attention).eval()
    x = images(batch, input, layout)

    def step():
        with torch.inference_mode(), torch.autocast("cuda", dtype=torch.float16):
            model(x)

    return stopwatch.time(step)
