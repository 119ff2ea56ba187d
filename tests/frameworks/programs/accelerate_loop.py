"""Trains a small BERT classifier with a loop of accelerate's kind."""

import argparse
import json

import torch
from accelerate import Accelerator
from accelerate.utils import set_seed
from torch.utils.data import DataLoader, TensorDataset
from transformers import BertConfig, BertForSequenceClassification, get_linear_schedule_with_warmup

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--accum", type=int, default=1)
parser.add_argument("--precision", default="no", choices=["no", "fp16", "bf16"])
parser.add_argument("--steps", type=int, default=3)
args = parser.parse_args()

set_seed(0)
accelerator = Accelerator(mixed_precision=args.precision, gradient_accumulation_steps=args.accum)
config = BertConfig(
    hidden_size=256,
    num_hidden_layers=4,
    num_attention_heads=4,
    intermediate_size=1024,
    num_labels=3,
)
model = BertForSequenceClassification(config)
samples = args.batch_size * args.accum * args.steps
tokens = torch.randint(config.vocab_size, (samples, 128))
# As a tokenizer pads: sentences end somewhere.
mask = (torch.arange(128) < torch.randint(16, 129, (samples, 1))).long()
labels = torch.randint(3, (samples,))
loader = DataLoader(TensorDataset(tokens, mask, labels), args.batch_size, shuffle=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
schedule = get_linear_schedule_with_warmup(optimizer, 1, args.steps)
model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)

model.train()
steps = micro_batches = skipped = 0
for input_ids, attention_mask, target in loader:
    with accelerator.accumulate(model):
        loss = model(input_ids=input_ids, attention_mask=attention_mask, labels=target).loss
        accelerator.backward(loss)
        if accelerator.sync_gradients:
            accelerator.clip_grad_norm_(model.parameters(), 1.0)
            steps += 1
        optimizer.step()
        skipped += accelerator.optimizer_step_was_skipped
        schedule.step()
        optimizer.zero_grad()
    micro_batches += 1
    accelerator.print(f"loss {accelerator.gather(loss.detach()).mean().item():.3f}")
print(
    json.dumps(
        {
            "steps": steps,
            "micro_batches": micro_batches,
            "skipped": skipped,
            "allocated": torch.cuda.max_memory_allocated(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
    )
)
