"""Originals of built-in models as a user of vramfit hands them over."""

import torch


def gpt2(sequence=512):
    import transformers
    from transformers import masking_utils

    # This looks for packed sequences by reading a tensor back from the device. There are none, which
    # a real GPU would find out; a virtual GPU computes nothing and could not tell.
    masking_utils.find_packed_sequence_indices = lambda position_ids: None

    def batch(samples):
        ids = torch.randint(50257, (samples, sequence))
        return {"input_ids": ids, "labels": ids.clone()}

    model = transformers.GPT2LMHeadModel(transformers.GPT2Config(use_cache=False))
    return {"model": model, "batch": batch}


def resnet50():
    import torchvision

    def batch(samples):
        return torch.randn(samples, 3, 224, 224), torch.randint(1000, (samples,))

    def loss(model, batch):
        images, labels = batch
        return torch.nn.functional.cross_entropy(model(images), labels)

    return {"model": torchvision.models.resnet50(), "batch": batch, "loss": loss}
