"""What the parity twins share: arguments, and the training loop as PyTorch users write it."""

import argparse
import contextlib
import json

import torch


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch", type=int, default=4)
    parser.add_argument("--sequence", type=int, default=512)
    parser.add_argument("--precision", choices=["fp32", "tf32", "bf16", "fp16"], default="fp32")
    parser.add_argument("--optimizer", choices=["sgd", "sgd-momentum", "adam", "adamw"], default="adamw")
    parser.add_argument("--implementation", choices=["foreach", "fused", "for-loop"], default="foreach")
    parser.add_argument("--accumulation", type=int, default=1)
    parser.add_argument("--checkpoint", choices=["none", "full"], default="none")
    parser.add_argument("--clip", type=float)
    parser.add_argument("--steps", type=int, default=2)
    return parser.parse_args()


def optimizer(args, parameters):
    how = {"foreach": {}, "fused": {"fused": True}, "for-loop": {"foreach": False}}[args.implementation]
    return {
        "sgd": lambda: torch.optim.SGD(parameters, lr=1e-3, **how),
        "sgd-momentum": lambda: torch.optim.SGD(parameters, lr=1e-3, momentum=0.9, **how),
        "adam": lambda: torch.optim.Adam(parameters, **how),
        "adamw": lambda: torch.optim.AdamW(parameters, **how),
    }[args.optimizer]()


def train(args, model, batch, loss_of):
    """`batch()` makes the inputs on the device, `loss_of(model, inputs)` the loss."""
    torch.backends.cuda.matmul.allow_tf32 = args.precision == "tf32"
    parameters = list(model.parameters())
    opt = optimizer(args, parameters)
    scaler = torch.amp.GradScaler("cuda") if args.precision == "fp16" else None
    dtype = {"bf16": torch.bfloat16, "fp16": torch.float16}.get(args.precision)
    for _ in range(args.steps):
        opt.zero_grad()
        for _ in range(args.accumulation):
            inputs = batch()
            with torch.autocast("cuda", dtype=dtype) if dtype else contextlib.nullcontext():
                loss = loss_of(model, inputs)
            if args.accumulation > 1:
                loss = loss / args.accumulation
            (scaler.scale(loss) if scaler else loss).backward()
        if args.clip is not None:
            if scaler:
                scaler.unscale_(opt)
            torch.nn.utils.clip_grad_norm_(parameters, args.clip)
        if scaler:
            scaler.step(opt)
            scaler.update()
        else:
            opt.step()
    print(json.dumps({
        "parameters": sum(p.numel() for p in parameters),
        "max_memory_allocated": torch.cuda.max_memory_allocated(),
        "max_memory_reserved": torch.cuda.max_memory_reserved(),
    }))
