"""Training and inference as NVIDIA's DeepLearningExamples do them."""

import torch
import torchvision
from torch import nn

from workloads import stopwatch
from workloads.bert import Bert
from workloads.images import FORMATS, images


def tensor_cores_for(precision):
    """The containers let matrix products of fp32 use TF32."""
    torch.backends.cuda.matmul.allow_tf32 = precision != "fp32"
    torch.backends.cudnn.allow_tf32 = precision != "fp32"


def convnet(model, input, batch, precision, layout):
    """The model, images, their classes, and the loss."""
    tensor_cores_for(precision)
    with torch.device("cuda"):
        made = getattr(torchvision.models, model)(weights=None)
    made = made.to(memory_format=FORMATS[layout])
    x = images(batch, input, layout)
    target = torch.randint(1000, (batch,), device="cuda")
    return made, x, target, nn.CrossEntropyLoss().cuda()


def convnet_train(model, input, batch, precision, layout, **_):
    """With SGD and, in mixed precision, a scaler; the loss is read after each step. Images are there."""
    model, x, target, criterion = convnet(model, input, batch, precision, layout)
    model.train()
    optimizer = torch.optim.SGD(
        model.parameters(), lr=0.1, momentum=0.875, weight_decay=1e-4, foreach=False
    )
    mixed = precision == "amp-fp16"
    scaler = torch.amp.GradScaler("cuda", init_scale=256, growth_interval=10**8, enabled=mixed)

    def step():
        with torch.autocast("cuda", dtype=torch.float16, enabled=mixed):
            loss = criterion(model(x), target)
        scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad(set_to_none=False)
        torch.cuda.synchronize()
        loss.item()

    return stopwatch.time(step)


def convnet_infer(model, input, batch, precision, layout, **_):
    """A forward pass with its loss and accuracy, which are read."""
    model, x, target, criterion = convnet(model, input, batch, precision, layout)
    model.eval()
    mixed = precision == "amp-fp16"

    def step():
        with torch.no_grad(), torch.autocast("cuda", dtype=torch.float16, enabled=mixed):
            output = model(x)
            loss = criterion(output, target)
        _, found = output.topk(min(5, batch), 1, True, True)
        hits = found.t().eq(target.view(1, -1))
        for k in (1, 5):
            hits[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100 / batch).item()
        loss.item()

    return stopwatch.time(step)


def squad(model, input, batch, precision, **_):
    """BERT with a head for questions on sequences of full length.

    In fp16 all parameters are fp16, as apex's level O2 keeps them, and a fused Adam steps fp32 copies; in
    fp32 their BertAdam steps parameter by parameter. Gradients are clipped together.
    """
    tensor_cores_for(precision)
    with torch.device("cuda"):
        made = Bert(model)
    made = (made.half() if precision == "fp16" else made).train()
    length = input
    ids = torch.randint(30522, (batch, length), device="cuda")
    mask, segments = torch.ones_like(ids), torch.zeros_like(ids)
    first, last = (torch.randint(length, (batch,), device="cuda") for _ in range(2))
    parameters = list(made.parameters())
    update = on_masters(parameters) if precision == "fp16" else BertAdam(parameters).step

    def step():
        loss = made(ids, mask, segments, first, last)
        (loss.float() * 65536 if precision == "fp16" else loss).backward()
        update()
        for parameter in parameters:
            parameter.grad = None

    return stopwatch.time(step)


def clip(gradients):
    norms = torch._foreach_norm(gradients)
    total = torch.linalg.vector_norm(torch.stack(norms))
    torch._foreach_mul_(gradients, 1.0 / (total + 1e-6))


def on_masters(parameters):
    """Copies gradients to fp32, looks whether they are finite, clips, steps, and copies back."""
    masters = [parameter.detach().float() for parameter in parameters]
    for master in masters:
        master.grad = torch.empty_like(master)
    optimizer = torch.optim.AdamW(masters, lr=0.0, fused=True)
    gradients = [master.grad for master in masters]

    def update():
        torch._foreach_copy_(gradients, [parameter.grad for parameter in parameters])
        sum(torch._foreach_norm(gradients)).isfinite().item()
        clip(gradients)
        optimizer.step()
        with torch.no_grad():
            torch._foreach_copy_(parameters, masters)

    return update


class BertAdam:
    """Adam without correction of the bias, its decay added to the step."""

    def __init__(self, parameters):
        self.parameters = parameters
        self.first = [torch.zeros_like(parameter) for parameter in parameters]
        self.second = [torch.zeros_like(parameter) for parameter in parameters]

    @torch.no_grad()
    def step(self):
        clip([parameter.grad for parameter in self.parameters])
        for parameter, first, second in zip(self.parameters, self.first, self.second):
            first.mul_(0.9).add_(parameter.grad, alpha=0.1)
            second.mul_(0.999).addcmul_(parameter.grad, parameter.grad, value=0.001)
            update = first / (second.sqrt() + 1e-6)
            update += 0.01 * parameter
            parameter.add_(-0.0 * update)
