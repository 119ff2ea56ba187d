"""What `hf_trainer.py` trains, as a function for `vramfit plan --workload`."""

import torch
from transformers import GPT2Config, GPT2LMHeadModel

config = GPT2Config(
    n_layer=6,
    n_head=8,
    n_embd=512,
    n_positions=256,
    vocab_size=8192,
    bos_token_id=0,
    eos_token_id=0,
)


def batch(n: int) -> dict[str, torch.Tensor]:
    tokens = torch.randint(config.vocab_size, (n, 256))
    return {"input_ids": tokens, "labels": tokens}


def workload() -> dict[str, object]:
    return {"model": GPT2LMHeadModel(config), "batch": batch}
