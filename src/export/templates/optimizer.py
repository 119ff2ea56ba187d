
def make_optimizer(parameters: Iterable[torch.nn.Parameter], lr: float) -> torch.optim.Optimizer:
    """The planned optimizer; the learning rate is yours and does not change memory."""
    return torch.optim.@optimizer@(parameters, lr=lr@optimizer_arguments@)

