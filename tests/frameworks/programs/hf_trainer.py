"""Fine-tunes a small GPT-2 with Hugging Face's `Trainer`."""

import argparse
import json

import torch
from torch.utils.data import Dataset
from transformers import (
    GPT2Config,
    GPT2LMHeadModel,
    Trainer,
    TrainerCallback,
    TrainingArguments,
    set_seed,
)

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=4)
parser.add_argument("--accum", type=int, default=1)
parser.add_argument("--bf16", action="store_true")
parser.add_argument("--fp16", action="store_true")
parser.add_argument("--checkpointing", action="store_true")
parser.add_argument("--optim", default="adamw_torch")
parser.add_argument("--steps", type=int, default=3)
parser.add_argument("--workers", type=int, default=0)
args = parser.parse_args()

set_seed(0)
config = GPT2Config(
    n_layer=6,
    n_head=8,
    n_embd=512,
    n_positions=256,
    vocab_size=8192,
    bos_token_id=0,
    eos_token_id=0,
)


class Tokens(Dataset):
    def __len__(self) -> int:
        return 4096

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        generator = torch.Generator().manual_seed(index)
        tokens = torch.randint(config.vocab_size, (256,), generator=generator)
        return {"input_ids": tokens, "labels": tokens}


class Count(TrainerCallback):
    """Counts what was run: the state knows only the optimizer's steps."""

    micro_batches = 0

    def on_substep_end(self, *args, **kwargs) -> None:
        self.micro_batches += 1

    on_step_end = on_substep_end


count = Count()
trainer = Trainer(
    model=GPT2LMHeadModel(config),
    args=TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=args.batch_size,
        gradient_accumulation_steps=args.accum,
        max_steps=args.steps,
        bf16=args.bf16,
        fp16=args.fp16,
        gradient_checkpointing=args.checkpointing,
        optim=args.optim,
        learning_rate=3e-4,
        logging_steps=1,
        save_strategy="no",
        report_to="none",
        dataloader_num_workers=args.workers,
        disable_tqdm=True,
    ),
    train_dataset=Tokens(),
    callbacks=[count],
)
trainer.train()
print(
    json.dumps(
        {
            "steps": trainer.state.global_step,
            "micro_batches": count.micro_batches,
            "allocated": torch.cuda.max_memory_allocated(),
            "parameters": trainer.model.num_parameters(),
            "reserved": torch.cuda.max_memory_reserved(),
        }
    )
)
