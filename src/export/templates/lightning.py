"""Training with Lightning as vramfit planned it: import it, or paste it into a program.

Usage:

    class MyModule(L.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = MyModel()
            checkpoint_blocks(self.model.blocks)  #? checkpoint

        def training_step(self, batch, batch_idx):
            loss = ...  # the mean loss of the batch
            return loss * weight(batch, batch_idx, self.trainer)  #? accumulate
            return loss  #? !accumulate

        def configure_optimizers(self):
            return make_optimizer(self.parameters(), lr=1e-3)  #? !own
            return ...  # the one that the planned function makes  #? own

        def train_dataloader(self):  #? sharded
            return make_loader(dataset)  #? sharded

    make_trainer(max_epochs=3).fit(MyModule(), make_loader(dataset))  #? !sharded
    make_trainer(max_epochs=3).fit(MyModule())  #? sharded
"""

#+ evidence

import functools
import itertools
import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

#+ allocator
import lightning as L
import torch
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, Dataset, RandomSampler, Sampler
from torch.utils.data.distributed import DistributedSampler

#+ constants
#? tf32
torch.set_float32_matmul_precision("high")  # tf32 in matrix products
#? end

#+ loader
#+ optimizer
#+ checkpoint_blocks
#? accumulate

#+ count_samples

def weight(batch: Any, batch_idx: int, trainer: L.Trainer) -> float:
    """What to multiply the loss of a micro-batch by.

    Lightning divides each loss by `accumulate_grad_batches`. With this each micro-batch weighs as
    much as it has samples, also where the last ones of an epoch are fewer or smaller. The dataset
    needs a length.
    """
    step = batch_idx // MICRO_STEPS
    sizes = @sizes@
    samples_left = len(trainer.train_dataloader.batch_sampler.sampler) - step * sum(sizes)
    batches_left = int(trainer.num_training_batches) - step * MICRO_STEPS
    return count_samples(batch) * MICRO_STEPS / min(sum(sizes[:batches_left]), samples_left)

#? end

class FreeGradients(L.Callback):
    """Frees the gradients before the forward pass; Lightning itself does so after it."""

    def on_train_batch_start(
        self, trainer: L.Trainer, pl_module: L.LightningModule, batch: Any, batch_idx: int
    ) -> None:
        if batch_idx % trainer.accumulate_grad_batches == 0:
            for optimizer in trainer.optimizers:
                optimizer.zero_grad()


def make_trainer(callbacks: Iterable[L.Callback] = (), **more: Any) -> L.Trainer:
    """The planned Trainer, with more arguments of it, or others in their place."""
    planned = {
        "accelerator": "gpu",
        "devices": 1,  #? !distributed
        "devices": WORLD_SIZE,  #? distributed
        "strategy": "ddp",  #? distributed
        "use_distributed_sampler": False,  # the loader has one already  #? sharded
        "precision": "@lightning_precision@",
        "accumulate_grad_batches": MICRO_STEPS,  #? accumulate
        "gradient_clip_val": @clip@,  #? clip
        "callbacks": [FreeGradients(), *callbacks],
    }
    return L.Trainer(**(planned | more))
