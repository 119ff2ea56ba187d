"""Trains for one epoch by each thing that `vramfit export` wrote for one framework.

train.py FORMAT (FILE SAMPLES REPORT)...

Each is trained by in a process of its own, forked once the framework is imported, which takes most
of the time.
"""

from __future__ import annotations

import importlib.util
import json
import os
import sys
from types import ModuleType

import torch

from subject import Texts, compute_loss, make_model, observed


def load(path: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location("planned", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules["planned"] = module
    spec.loader.exec_module(module)
    return module


def pytorch(path: str, samples: int, report: str) -> None:
    planned = load(path)
    model = make_model("cuda")
    if hasattr(planned, "checkpoint_blocks"):
        planned.checkpoint_blocks(model.transformer.h)
    optimizer = planned.make_optimizer(model.parameters(), lr=1e-3)
    scaler = [torch.amp.GradScaler()] if "scaler" in planned.train_step.__annotations__ else []
    loader = planned.make_loader(Texts(samples))
    with observed(model, report):
        if hasattr(planned, "optimizer_steps"):
            for micro_batches in planned.optimizer_steps(loader):
                planned.train_step(model, optimizer, *scaler, micro_batches, compute_loss)
        else:
            for batch in loader:
                planned.train_step(model, optimizer, *scaler, batch, compute_loss)


def hf(path: str, samples: int, report: str) -> None:
    from transformers import Trainer

    planned = load(path)
    model = make_model("cpu")
    if hasattr(planned, "checkpoint_blocks"):
        planned.checkpoint_blocks(model.transformer.h)
    args = planned.training_arguments(
        "output", num_train_epochs=1, save_strategy="no", report_to="none", disable_tqdm=True
    )
    trainer = Trainer(model=model, args=args, train_dataset=Texts(samples))
    with observed(model, report):
        trainer.train()


def accelerate(path: str, samples: int, report: str) -> None:
    planned = load(path)
    accelerator = planned.make_accelerator()
    model = make_model("cpu")
    if hasattr(planned, "checkpoint_blocks"):
        planned.checkpoint_blocks(model.transformer.h)
    optimizer = planned.make_optimizer(model.parameters(), lr=1e-3)
    loader = planned.make_loader(Texts(samples))
    model, optimizer, loader = planned.prepare(accelerator, model, optimizer, loader)
    with observed(model, report):
        if hasattr(planned, "optimizer_steps"):
            for micro_batches in planned.optimizer_steps(loader):
                planned.train_step(accelerator, model, optimizer, micro_batches, compute_loss)
        else:
            for batch in loader:
                planned.train_step(accelerator, model, optimizer, batch, compute_loss)


def lightning(path: str, samples: int, report: str) -> None:
    planned = load(path)

    class Module(planned.L.LightningModule):
        def __init__(self) -> None:
            super().__init__()
            self.model = make_model("cpu")
            if hasattr(planned, "checkpoint_blocks"):
                planned.checkpoint_blocks(self.model.transformer.h)

        def training_step(self, batch: dict, batch_idx: int) -> torch.Tensor:
            loss = compute_loss(self.model, batch)
            if not hasattr(planned, "weight"):
                return loss
            return loss * planned.weight(batch, batch_idx, self.trainer)

        def configure_optimizers(self) -> torch.optim.Optimizer:
            return planned.make_optimizer(self.parameters(), lr=1e-3)

    module = Module()
    trainer = planned.make_trainer(
        max_epochs=1, logger=False, enable_checkpointing=False, enable_progress_bar=False,
        enable_model_summary=False,
    )
    with observed(module.model, report):
        trainer.fit(module, planned.make_loader(Texts(samples)))


def deepspeed(path: str, samples: int, report: str) -> None:
    # As the launcher `deepspeed` sets them.
    os.environ |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "MASTER_ADDR": "127.0.0.1"}
    os.environ.setdefault("MASTER_PORT", "29500")
    import deepspeed

    with open(path) as file:
        config = json.load(file)
    model = make_model("cpu")
    # What the configuration cannot say, and `to_do` in it does.
    to_do = " ".join(config["vramfit"]["to_do"])
    if "gradient_checkpointing_enable" in to_do:
        model.gradient_checkpointing_enable({"use_reentrant": False})
    elif "checkpoint_blocks" in to_do:
        load(path.replace("deepspeed.json", "pytorch.py")).checkpoint_blocks(model.transformer.h)
    if "set_float32_matmul_precision" in to_do:
        torch.set_float32_matmul_precision("high")
    engine, _, loader, _ = deepspeed.initialize(
        model=model, model_parameters=model.parameters(), training_data=Texts(samples), config=config
    )
    with observed(model, report):
        for batch in loader:
            batch = {key: value.to(engine.device) for key, value in batch.items()}
            engine.backward(compute_loss(engine, batch))
            engine.step()
    torch.distributed.destroy_process_group()


def main() -> None:
    form, *rest = sys.argv[1:]
    framework = {"pytorch": "torch", "hf": "transformers.trainer"}.get(form, form)
    importlib.import_module(framework)
    for path, samples, report in zip(rest[::3], rest[1::3], rest[2::3], strict=True):
        if child := os.fork():
            if os.waitpid(child, 0)[1]:
                raise SystemExit(f"{path} failed")
        else:
            globals()[form](path, int(samples), report)
            return


if __name__ == "__main__":
    main()
