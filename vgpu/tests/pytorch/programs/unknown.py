"""Reads values that large activations would decide, which nothing computes."""

import torch

activations = torch.empty(1 << 20, device="cuda")


def epoch():
    loss = activations.sum()
    for _ in range(3):
        loss.item()
    kept = activations[activations > 0.5]
    return torch.nn.functional.mse_loss(activations, activations).item(), kept.shape[0]


loss, kept = epoch()
counter = torch.zeros(1, dtype=torch.long, device="cuda")
counter += kept
flag = torch.zeros(4, device="cuda")
flag[0] = activations.max()
print(loss, kept, counter.item(), flag.cpu()[1].item(), bool((activations > 0).all()))
