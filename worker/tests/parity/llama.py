"""Hugging Face's LlamaForCausalLM as SmolLM-135M in training; prints what PyTorch's allocator saw."""

import torch
import transformers
from transformers import masking_utils

import common

args = common.arguments()
# See gpt2.py.
masking_utils.find_packed_sequence_indices = lambda position_ids: None

model = transformers.LlamaForCausalLM(transformers.LlamaConfig(
    vocab_size=49152, hidden_size=576, num_hidden_layers=30, num_attention_heads=9,
    num_key_value_heads=3, intermediate_size=1536, max_position_embeddings=2048,
    tie_word_embeddings=True,
))
model.cuda()
model.train()
if args.checkpoint == "full":
    model.gradient_checkpointing_enable({"use_reentrant": False})


def batch():
    ids = torch.randint(49152, (args.batch, args.sequence), device="cuda")
    return ids, ids.clone()


common.train(
    args, model, batch,
    lambda model, inputs: model(input_ids=inputs[0], labels=inputs[1], use_cache=False).loss,
)
