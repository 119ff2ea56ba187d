"""Hugging Face's Trainer with evaluation and checkpoints."""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments


class Tokens(torch.utils.data.Dataset[dict[str, torch.Tensor]]):
    def __len__(self) -> int:
        return 64

    def __getitem__(self, index: int) -> dict[str, torch.Tensor]:
        tokens = torch.arange(index, index + 128) % 500
        return {"input_ids": tokens, "labels": tokens}


config = GPT2Config(vocab_size=500, n_positions=128, n_embd=512, n_layer=4, n_head=8)
with tempfile.TemporaryDirectory() as folder:
    arguments = TrainingArguments(
        folder,
        per_device_train_batch_size=8,
        per_device_eval_batch_size=8,
        num_train_epochs=3,
        eval_strategy="epoch",
        save_strategy="epoch",
        logging_steps=5,
        report_to=[],
        disable_tqdm=True,
    )
    trainer = Trainer(GPT2LMHeadModel(config), arguments, train_dataset=Tokens(), eval_dataset=Tokens())
    trainer.train()
