"""Multilayer perceptrons of four outlines, trained with Adam on random samples, in fp32."""

import torch
from torch import nn

ACTIVATIONS = {
    "relu": nn.ReLU, "leaky_relu": nn.LeakyReLU, "prelu": nn.PReLU, "elu": nn.ELU, "selu": nn.SELU,
    "tanh": nn.Tanh, "softplus": nn.Softplus, "swish": nn.SiLU, "mish": nn.Mish, "gelu": nn.GELU,
    "identity": nn.Identity,
}
SAMPLES = 4096


def widths(outline, depth, inputs, outputs):
    """The widths of the hidden layers."""
    if outline == "uniform":
        return [inputs] * depth
    found, width = [], inputs
    step = (inputs - outputs) // depth
    layers = depth + 1 if outline == "bottleneck" else depth
    for _ in range(layers):
        width = max(width - step if outline == "gradual" else int(width * 0.5), outputs)
        found.append(width)
    return found


def perceptron(outline, depth, inputs, outputs, activation, dropout, batch_norm, softmax):
    layers, width = [], inputs
    for following in widths(outline, depth, inputs, outputs):
        layers.append(nn.Linear(width, following))
        if batch_norm:
            layers.append(nn.BatchNorm1d(following))
        layers.append(ACTIVATIONS[activation]())
        if dropout:
            layers.append(nn.Dropout(dropout))
        width = following
    layers.append(nn.Linear(width, outputs))
    if softmax:
        layers.append(nn.Softmax(dim=1))
    return nn.Sequential(*layers)


def train(outline, depth, inputs, outputs, batch, activation="relu", dropout=0.0,
          batch_norm=False, softmax=False):
    """A look at the model with two samples, as a summary takes it, then an epoch and a bit."""
    with torch.device("cuda"):
        model = perceptron(
            outline, depth, inputs, outputs, activation, dropout, batch_norm, softmax
        )
    model(torch.rand(2, inputs, device="cuda"))
    optimizer = torch.optim.Adam(model.parameters())
    criterion = nn.CrossEntropyLoss()
    epoch = [batch] * (SAMPLES // batch)
    if SAMPLES % batch:
        epoch.append(SAMPLES % batch)
    # Of equal batches four show all there is to see.
    epoch = epoch[:4] + epoch[-1:]
    for size in epoch + epoch:
        samples = torch.empty(size, inputs).cuda()
        labels = torch.randint(0, outputs, (size,)).cuda()
        optimizer.zero_grad()
        predicted = model(samples)
        loss = criterion(predicted, labels)
        loss.backward()
        optimizer.step()
    return {"reserved peak": torch.cuda.max_memory_reserved()}
