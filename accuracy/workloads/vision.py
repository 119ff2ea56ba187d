"""Convolutional networks of torchvision and timm, in fp32."""

import torch
import torchvision
from torch import nn


def model_of(name):
    """With random weights, made where no value is computed."""
    with torch.device("cuda"):
        if name == "xception":
            import timm

            return timm.create_model("xception", num_classes=1000)
        if name == "mnasnet":
            return torchvision.models.MNASNet(1.0, num_classes=10)
        return getattr(torchvision.models, name)(weights=None)


def epoch(name, batch):
    """A look at the model with two images, training with Adam, then a pass that evaluates."""
    model = model_of(name)
    model(torch.empty(2, 3, 224, 224).cuda())
    criterion = nn.CrossEntropyLoss()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.001)

    def samples():
        return torch.empty(batch, 3, 224, 224).cuda(), torch.randint(0, 1000, (batch,)).cuda()

    model.train()
    for _ in range(3):
        inputs, labels = samples()
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        for _ in range(2):
            inputs, labels = samples()
            outputs = model(inputs)
            loss = criterion(outputs, labels)
            torch.max(outputs.data, 1)
    return {"reserved peak": torch.cuda.max_memory_reserved()}


def steps(name, batch, size, optimizer, zero_before_backward=False):
    """A few training steps on small images."""
    model = model_of(name)
    criterion = nn.CrossEntropyLoss()
    optimizer = getattr(torch.optim, optimizer)(model.parameters(), lr=0.001)
    for _ in range(4):
        inputs = torch.empty(batch, 3, size, size).cuda()
        labels = torch.randint(0, 10, (batch,)).cuda()
        if not zero_before_backward:
            optimizer.zero_grad()
        loss = criterion(model(inputs), labels)
        if zero_before_backward:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return {"reserved peak": torch.cuda.max_memory_reserved()}
