"""Trains a small Llama with a mask that masks nothing, and says what it took.

usage: masked.py
"""

import json

import torch
from transformers import LlamaConfig, LlamaForCausalLM

config = LlamaConfig(
    hidden_size=128,
    intermediate_size=256,
    num_hidden_layers=4,
    num_attention_heads=4,
    num_key_value_heads=4,
    vocab_size=1000,
)
model = LlamaForCausalLM(config).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(2):
    tokens = torch.randint(0, 1000, (4, 1024)).cuda()
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = model(input_ids=tokens, attention_mask=torch.ones_like(tokens), labels=tokens).loss
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
with torch.no_grad():
    model.eval()
    tokens = tokens[:1, :8]
    written = model.generate(tokens, attention_mask=torch.ones_like(tokens), max_new_tokens=4, do_sample=False)
print(json.dumps({"allocated": torch.cuda.max_memory_allocated(), "tokens": written.shape[1]}))
