"""A training loop as vramfit planned it: import it, or paste it into a program.

Usage:

    #? distributed
    torch.distributed.init_process_group()
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    #? end
    model = MyModel().cuda()
    checkpoint_blocks(model.blocks)  #? checkpoint
    model = torch.nn.parallel.DistributedDataParallel(model)  #? distributed
    optimizer = make_optimizer(model.parameters(), lr=1e-3)  #? !own
    optimizer = ...  # the one that the planned function makes  #? own
    scaler = torch.amp.GradScaler()  #? fp16
    loader = make_loader(dataset)
    for epoch in range(epochs):
        loader.sampler.set_epoch(epoch)  #? distributed !remainder
        loader.batch_sampler.sampler.set_epoch(epoch)  #? distributed remainder
        for micro_batches in optimizer_steps(loader):  #? accumulate
            loss = train_step(model, optimizer, micro_batches, compute_loss)  #? accumulate !fp16
            loss = train_step(model, optimizer, scaler, micro_batches, compute_loss)  #? accumulate fp16
        for batch in loader:  #? !accumulate
            loss = train_step(model, optimizer, batch, compute_loss)  #? !accumulate !fp16
            loss = train_step(model, optimizer, scaler, batch, compute_loss)  #? !accumulate fp16

`compute_loss(model, batch)` is yours: the mean loss of the batch.
Start it with `torchrun --nproc-per-node @world_size@ train.py`.  #? distributed
"""

#+ evidence

import contextlib
import functools
import itertools
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

#+ allocator
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, RandomSampler, Sampler
from torch.utils.data.distributed import DistributedSampler

#+ constants
#? tf32
torch.set_float32_matmul_precision("high")  # tf32 in matrix products
#? end

Loss = Callable[[torch.nn.Module, Any], torch.Tensor]

#+ loader
#+ optimizer
#+ checkpoint_blocks

def to_device(batch: Any, device: torch.device) -> Any:
    """The batch on the device; copies from pinned memory run beside the kernels."""
    if hasattr(batch, "to"):
        return batch.to(device, non_blocking=True)
    if isinstance(batch, Mapping):
        return {key: to_device(value, device) for key, value in batch.items()}
    if isinstance(batch, (list, tuple)):
        return [to_device(value, device) for value in batch]
    return batch


#? accumulate
#+ count_samples

def optimizer_steps(loader: Iterable[Any]) -> Iterator[list[Any]]:
    """The micro-batches of one optimizer step after the other; the last step may have fewer."""
    batches = iter(loader)
    while micro_batches := list(itertools.islice(batches, MICRO_STEPS)):
        yield micro_batches


#? end
def train_step(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    scaler: torch.amp.GradScaler,  #? fp16
    micro_batches: list[Any],  #? accumulate
    batch: Any,  #? !accumulate
    compute_loss: Loss,
) -> torch.Tensor:
    #? accumulate
    """One optimizer step; returns the mean loss.

    Each micro-batch weighs as much as it has samples, so that the gradient is that of one batch of
    all of them, also where the last ones of an epoch are fewer or smaller.
    """
    device = next(model.parameters()).device
    samples = sum(count_samples(batch) for batch in micro_batches)
    total = torch.zeros((), device=device)
    #? end
    #? accumulate distributed
    for index, batch in enumerate(micro_batches):
        last = index == len(micro_batches) - 1
        # Gradients travel once, with the last micro-batch.
        with contextlib.nullcontext() if last else model.no_sync():
            batch_on_device = to_device(batch, device)
            with torch.autocast(device.type, dtype=torch.@dtype@):  #? mixed
                loss = compute_loss(model, batch_on_device)  #? mixed
            loss = compute_loss(model, batch_on_device)  #? !mixed
            loss = loss * (count_samples(batch) / samples)
            scaler.scale(loss).backward()  #? fp16
            loss.backward()  #? !fp16
        total += loss.detach()
    #? end
    #? accumulate !distributed
    for batch in micro_batches:
        batch_on_device = to_device(batch, device)
        with torch.autocast(device.type, dtype=torch.@dtype@):  #? mixed
            loss = compute_loss(model, batch_on_device)  #? mixed
        loss = compute_loss(model, batch_on_device)  #? !mixed
        loss = loss * (count_samples(batch) / samples)
        scaler.scale(loss).backward()  #? fp16
        loss.backward()  #? !fp16
        total += loss.detach()
    #? end
    #? !accumulate
    """One optimizer step; returns the loss."""
    device = next(model.parameters()).device
    batch_on_device = to_device(batch, device)
    with torch.autocast(device.type, dtype=torch.@dtype@):  #? mixed
        loss = compute_loss(model, batch_on_device)  #? mixed
    loss = compute_loss(model, batch_on_device)  #? !mixed
    scaler.scale(loss).backward()  #? fp16
    loss.backward()  #? !fp16
    #? end
    scaler.unscale_(optimizer)  #? fp16 clip
    torch.nn.utils.clip_grad_norm_(model.parameters(), @clip@)  #? clip
    scaler.step(optimizer)  #? fp16
    scaler.update()  #? fp16
    optimizer.step()  #? !fp16
    optimizer.zero_grad()
    return total  #? accumulate
    return loss.detach()  #? !accumulate
