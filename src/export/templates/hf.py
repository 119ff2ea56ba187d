"""Arguments for the Trainer of transformers as vramfit planned them.

Usage:

    checkpoint_blocks(model.layers)  #? some
    args = training_arguments("output", learning_rate=1e-3, num_train_epochs=3)
    #? !own
    trainer = Trainer(model=model, args=args, train_dataset=dataset)
    #? end
    #? own
    optimizer = ...  # the one that the planned function makes
    trainer = Trainer(
        model=model, args=args, train_dataset=dataset, optimizers=(optimizer, None)
    )
    #? end
#? distributed

Start it with `torchrun --nproc-per-node @world_size@ train.py`.
#? end
"""

#+ evidence

import functools
import os
from collections.abc import Iterable
from typing import Any

#+ allocator
import torch
from torch.utils.checkpoint import checkpoint
from transformers import TrainingArguments

SEQUENCE = @sequence@  # tokens in one sample; longer ones take more memory  #? sequence
PLANNED = {
    "per_device_train_batch_size": @micro_batch@,
    "per_device_eval_batch_size": @micro_batch@,  # not measured; the default is 8
    #? remainder
    # The Trainer has micro-batches of one size: one optimizer step takes @whole_steps@ x @micro_batch@ samples on
    # each GPU, not the planned @accumulation@ x @micro_batch@ + @remainder@.
    #? end
    #? accumulate
    # Where the last step of an epoch has fewer micro-batches, the Trainer divides by their number,
    # or by their tokens for models that take `num_items_in_batch`.
    #? end
    "gradient_accumulation_steps": @whole_steps@,
    "bf16": True,  #? bf16
    "fp16": True,  # with a gradient scaler  #? fp16
    "tf32": True,  #? tf32
    #? some
    # The Trainer's own checkpointing takes all layers or every n-th, not those that were planned:
    # `checkpoint_blocks` is called on the model instead, before the Trainer is made.
    #? end
    "activation_checkpointing": True,  # `gradient_checkpointing` in older transformers  #? full
    "activation_checkpointing": True,  # `gradient_checkpointing` in older transformers  #? every
    "activation_checkpointing_kwargs": {"use_reentrant": False},  #? full
    "activation_checkpointing_kwargs": {"use_reentrant": False, "every_n_layers": @every@},  #? every
    #? adam
    # The Trainer has no Adam without decoupled weight decay; AdamW takes the same memory.
    #? end
    #? for_loop
    # Planned parameter by parameter; the Trainer steps all parameters at once, which takes more.
    #? end
    "optim": "@hf_optimizer@",  #? !own
    "optim_args": "momentum=0.9",  #? momentum
    "max_grad_norm": @clip@,  #? clip
    "max_grad_norm": 0.0,  # planned without clipping; the default is 1.0  #? !clip
    "dataloader_drop_last": True,  # a smaller last one was not measured
    "dataloader_pin_memory": True,
    "dataloader_num_workers": 2,  # not of the plan; they take no GPU memory
    "dataloader_persistent_workers": True,
}


#? some
#+ checkpoint_blocks

#? end
def training_arguments(output_dir: str, **more: Any) -> TrainingArguments:
    """The planned arguments, with more, or others in their place."""
    return TrainingArguments(output_dir, **(PLANNED | more))  #? !distributed
    args = TrainingArguments(output_dir, **(PLANNED | more))  #? distributed
    if args.world_size != @world_size@:  #? distributed
        raise ValueError(f"planned for @world_size@ processes, not {args.world_size}")  #? distributed
    return args  #? distributed
