"""Losses over a large vocabulary behind a linear layer, as Liger-Kernel measures them in PyTorch.

Weights and inputs are bf16. The sources make a second set of layers, for their own implementation.
"""

import torch
from torch import nn
from torch.nn import functional

from workloads.measure import peak_of

BF16 = torch.bfloat16


def linear(hidden, vocabulary, bias=False):
    return nn.Linear(hidden, vocabulary, bias=bias, dtype=BF16, device="cuda")


def backward_of(forward):
    def step():
        loss = forward()
        loss.backward()

    return peak_of(step)


def linear_jsd(rows, hidden, vocabulary):
    """Jensen-Shannon divergence of a student and a teacher; both heads are trained."""
    student, teacher = linear(hidden, vocabulary), linear(hidden, vocabulary)
    student_input = torch.rand(rows, hidden, dtype=BF16, device="cuda", requires_grad=True)
    teacher_input = torch.rand(rows, hidden, dtype=BF16, device="cuda")
    divergence = nn.KLDivLoss(reduction="none", log_target=True)

    def jsd(log_q, log_p):
        log_p, log_q = log_p.to(torch.float), log_q.to(torch.float)
        middle = torch.lerp(torch.exp(log_q), torch.exp(log_p), 0.5)
        one = 0.5 * divergence(torch.log(middle), log_p).sum(dim=-1)
        loss = one + (1 - 0.5) * divergence(torch.log(middle), log_q).sum(dim=-1)
        return (loss / log_q.shape[0]).sum().to(BF16)

    def forward():
        student_logits = student(student_input)
        teacher_logits = teacher(teacher_input)
        student_log = torch.log_softmax(student_logits / 1.0, dim=-1)
        teacher_log = torch.log_softmax(teacher_logits / 1.0, dim=-1)
        return jsd(student_log, teacher_log)

    return backward_of(forward)


def token_logps(logits, labels, ignored=-100):
    """The mean log-probability of each sequence's labels."""
    mask = labels != ignored
    labels = torch.where(labels == ignored, 0, labels)
    logps = torch.gather(logits.log_softmax(-1), dim=2, index=labels.unsqueeze(2)).squeeze(2)
    return (logps * mask).sum(-1) / mask.sum(-1)


def odds_ratio(chosen, rejected):
    odds = (chosen - rejected) - (
        torch.log1p(-torch.exp(chosen)) - torch.log1p(-torch.exp(rejected))
    )
    return -0.1 * functional.logsigmoid(odds)


def contrastive(chosen, rejected):
    difference = chosen - rejected
    one, two = functional.logsigmoid(0.1 * difference), functional.logsigmoid(-0.1 * difference)
    return -(one + two * 0.0)


PREFERENCES = {"odds ratio": odds_ratio, "contrastive": contrastive, "simple": contrastive}


def odds_ratio_of_means(batch, length, hidden, vocabulary):
    """An earlier form: no copy in fp32, and the mean over the vocabulary in place of a label's."""
    head, other = linear(hidden, vocabulary), linear(hidden, vocabulary)
    x = torch.randn(batch, length, hidden, dtype=BF16, device="cuda", requires_grad=True)
    target = torch.randint(vocabulary, (batch, length), dtype=torch.long, device="cuda")

    def forward():
        half = batch // 2
        logits = head(x)
        likelihood = functional.cross_entropy(
            logits[:half].view(-1, vocabulary), target[:half].view(-1)
        )
        logps = functional.log_softmax(logits, dim=-1).mean(dim=-1)
        return likelihood + odds_ratio(logps[:half], logps[half:]).mean()

    figures = backward_of(forward)
    del other
    return figures


def preference(kind, batch, length, hidden, vocabulary):
    """A loss on pairs of sequences: the likelihood of the chosen half, and a comparison of both."""
    head, other = linear(hidden, vocabulary), linear(hidden, vocabulary)
    x = torch.randn(batch, length, hidden, dtype=BF16, device="cuda", requires_grad=True)
    target = torch.randint(vocabulary, (batch, length), dtype=torch.long, device="cuda")

    def forward():
        half = batch // 2
        outputs = x @ head.weight.t()
        logits = outputs.float()
        likelihood = functional.cross_entropy(
            logits[:half].view(-1, vocabulary), target[:half].view(-1)
        )
        logps = token_logps(logits, target)
        losses = PREFERENCES[kind](logps[:half], logps[half:])
        loss = likelihood * 1.0 + losses.mean()
        metrics = logits[:half].detach().mean(), logits[half:].detach().mean()
        del metrics
        return loss

    figures = backward_of(forward)
    del other
    return figures


def unpaired(batch, length, hidden, vocabulary):
    """Kahneman-Tversky optimization with a reference model; both heads have biases."""
    heads = [linear(hidden, vocabulary, bias=True) for _ in range(4)]
    head, reference = heads[:2]
    x = torch.randn(batch, length, hidden, dtype=BF16, device="cuda")
    reference_x = torch.randn(batch, length, hidden, dtype=BF16, device="cuda")
    target = torch.randint(vocabulary, (batch, length), dtype=torch.long, device="cuda")
    preferred = torch.randint(2, (batch,), dtype=torch.bool, device="cuda")
    kl = torch.randn(1, dtype=BF16, device="cuda")

    def forward():
        outputs = x @ head.weight.t()
        outputs = outputs + head.bias
        logits = outputs.float()
        logps = token_logps(logits, target, 42)
        chosen, rejected = logps[preferred], logps[~preferred]
        chosen_logits, rejected_logits = logits[preferred], logits[~preferred]
        with torch.no_grad():
            reference_logits = reference_x @ reference.weight.t()
            reference_logits = reference_logits + reference.bias
            reference_logps = token_logps(reference_logits, target, 42)
            del reference_logits
        won = 1 - functional.sigmoid(0.1 * ((chosen - reference_logps[preferred]) - kl))
        lost = 1 - functional.sigmoid(0.1 * (kl - (rejected - reference_logps[~preferred])))
        loss = torch.cat((won, lost), 0).mean()
        metrics = chosen_logits.detach().sum(), rejected_logits.detach().sum()
        del metrics
        return loss

    return backward_of(forward)


def divergence(student, teacher):
    student_log = functional.log_softmax(student, dim=-1)
    teacher_log = functional.log_softmax(teacher, dim=-1)
    mean = 0.5 * student_log.exp() + (1 - 0.5) * teacher_log.exp()
    log_mean = mean.log()
    one = functional.kl_div(log_mean, student_log, reduction="batchmean", log_target=True)
    two = functional.kl_div(log_mean, teacher_log, reduction="batchmean", log_target=True)
    return 0.5 * two + (1 - 0.5) * one


def cosine(student, teacher):
    student_norm = functional.normalize(student, p=2, dim=-1)
    teacher_norm = functional.normalize(teacher, p=2, dim=-1)
    similarity = functional.cosine_similarity(student_norm, teacher_norm, dim=-1)
    return (1.0 * (1 - similarity)).mean()


DISTANCES = {"jsd": divergence, "cosine": cosine}


def distillation(kind, rows, hidden, vocabulary, trained=False):
    """Cross entropy, and a distance from a teacher of twice the student's width."""
    heads = [linear(hidden // 2, vocabulary), linear(hidden, vocabulary)]
    others = [linear(hidden // 2, vocabulary), linear(hidden, vocabulary)]
    made = torch.rand(rows, hidden // 2, device="cuda", dtype=BF16)
    x = made.detach().clone().requires_grad_()
    other_x = made.detach().clone().requires_grad_()
    teacher_x = torch.rand(rows, hidden, device="cuda", dtype=BF16)
    target = torch.randint(0, vocabulary, (rows,), device="cuda")

    def forwards():
        student_outputs = x @ heads[0].weight.t()
        with torch.set_grad_enabled(trained):
            teacher_outputs = teacher_x @ heads[1].weight.t()
        student = student_outputs.view(rows, -1).float()
        teacher = teacher_outputs.view(rows, -1).float()
        return student, teacher, functional.cross_entropy(student, target)

    def forward():
        student, teacher, hard = forwards()
        student /= 1.0
        teacher /= 1.0
        soft = DISTANCES[kind](student, teacher)
        return 0.5 * hard + 0.5 * soft

    figures = backward_of(forward)
    del others, other_x
    return figures


def policy(level, batch, length, hidden, vocabulary):
    """Group relative policy optimization with a reference model."""
    heads = [linear(hidden, vocabulary) for _ in range(4)]
    head, reference = heads[:2]
    x = torch.randn(batch, length, hidden, dtype=BF16, device="cuda", requires_grad=True)
    tokens = torch.randint(0, vocabulary, (batch, length), dtype=torch.long, device="cuda")
    mask = torch.ones(batch, length, device="cuda")
    advantages = torch.randn(batch, dtype=BF16, device="cuda")
    reference_x = torch.randn(batch, length, hidden, dtype=BF16, device="cuda")

    def chosen(log_probabilities):
        return log_probabilities.gather(dim=-1, index=tokens.unsqueeze(-1)).squeeze(-1)

    def forward():
        logits = x @ head.weight.t()
        log_probabilities = functional.log_softmax(logits.float(), dim=-1)
        logps = chosen(log_probabilities)
        with torch.no_grad():
            reference_logits = reference_x @ reference.weight.t()
            reference_log = functional.log_softmax(reference_logits.float(), dim=-1)
            reference_logps = chosen(reference_log)
        ratio = logps - logps.detach()
        if level == "sequence":
            ratio = ((ratio * mask).sum(-1) / mask.sum(-1).clamp(min=1.0)).unsqueeze(-1)
        ratio = torch.exp(ratio)
        clipped = torch.clamp(ratio, 0.8, 1.2)
        gain = torch.min(ratio * advantages.unsqueeze(1), clipped * advantages.unsqueeze(1))
        kl = torch.exp(reference_logps - logps) - (reference_logps - logps) - 1.0
        return ((-gain + 0.1 * kl) * mask).sum() / torch.clamp(mask.sum(), min=1.0)

    return backward_of(forward)
