def count_samples(batch: Any) -> int:
    """Samples in a batch. For a loss that is a mean over tokens of uneven texts, count those tokens."""
    while not isinstance(batch, torch.Tensor):
        batch = next(iter(batch.values() if isinstance(batch, Mapping) else batch))
    return len(batch)

