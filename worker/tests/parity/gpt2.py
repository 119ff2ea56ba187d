"""Hugging Face's GPT2LMHeadModel in training; prints what PyTorch's allocator saw as JSON.

use_cache=False is what transformers' own Trainer sets.
"""

import torch
import transformers
from transformers import masking_utils

import common

args = common.arguments()
# This looks for packed sequences by reading a tensor back from the device. There are none, which a
# real GPU would find out; a virtual GPU computes nothing and could not tell.
masking_utils.find_packed_sequence_indices = lambda position_ids: None

model = transformers.GPT2LMHeadModel(transformers.GPT2Config())
model.cuda()
model.train()
if args.checkpoint == "full":
    model.gradient_checkpointing_enable({"use_reentrant": False})


def batch():
    ids = torch.randint(50257, (args.batch, args.sequence), device="cuda")
    return ids, ids.clone()


common.train(
    args, model, batch,
    lambda model, inputs: model(input_ids=inputs[0], labels=inputs[1], use_cache=False).loss,
)
