"""The models that are trained, each the same whatever device it is trained on."""

import contextlib
import importlib

import torch


class Workload:
    """A model in training. `build` under the device that is meant, `step` anywhere."""

    def __init__(self, name, batch, precision):
        self.name, self.batch_size, self.precision = name, batch, precision
        # Importing is part of a process's start, not of a point.
        for module in MODULES[name]:
            importlib.import_module(module)
        self.drop()

    def drop(self):
        self.model = self.optimizer = None

    def build(self, device):
        self.device = device
        with torch.device(device):
            self.model = BUILD[self.name]()
        if self.precision == "bf16-weights":
            self.model.to(torch.bfloat16)
        self.model.train()
        # What torch.optim takes by itself on a GPU; the other devices are told to do the same.
        self.optimizer = torch.optim.AdamW(self.model.parameters(), foreach=True)
        return self

    def step(self):
        self.optimizer.zero_grad()
        inputs, targets = BATCH[self.name](self.batch_size, self.device)
        if self.precision == "bf16-weights" and inputs.is_floating_point():
            inputs = inputs.to(torch.bfloat16)
        with self.autocast():
            loss = LOSS[self.name](self.model, inputs, targets)
        loss.backward()
        self.optimizer.step()

    def autocast(self):
        if self.precision == "bf16-autocast":
            return torch.autocast(torch.device(self.device).type, torch.bfloat16)
        return contextlib.nullcontext()


def resnet50():
    import torchvision

    return torchvision.models.resnet50()


def gpt2_small():
    import transformers
    from transformers import masking_utils

    # This looks for packed sequences by reading a tensor back from the device. There are none, and
    # a device that computes nothing (meta, fake, virtual) could not tell.
    masking_utils.find_packed_sequence_indices = lambda position_ids: None
    return transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))


def mlp():
    """Nothing but operators that have a meta kernel in C++; forward, backward and optimizer."""
    layers = (layer for _ in range(48) for layer in (torch.nn.Linear(1024, 1024), torch.nn.GELU()))
    return torch.nn.Sequential(*layers)


def images(batch, device):
    return torch.randn(batch, 3, 224, 224, device=device), torch.randint(1000, (batch,), device=device)


def tokens(batch, device):
    ids = torch.randint(50257, (batch, 1024), device=device)
    return ids, ids


def vectors(batch, device):
    return torch.zeros(batch, 1024, device=device), torch.zeros(batch, dtype=torch.long, device=device)


def classify(model, inputs, targets):
    return torch.nn.functional.cross_entropy(model(inputs), targets)


def predict_next(model, inputs, targets):
    return model(input_ids=inputs, labels=targets).loss


MODULES = {
    "resnet50": ["torchvision"], "gpt2-small": ["transformers.models.gpt2.modeling_gpt2"], "mlp": [],
}
BUILD = {"resnet50": resnet50, "gpt2-small": gpt2_small, "mlp": mlp}
BATCH = {"resnet50": images, "gpt2-small": tokens, "mlp": vectors}
LOSS = {"resnet50": classify, "gpt2-small": predict_next, "mlp": classify}
