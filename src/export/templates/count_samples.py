def count_samples(batch: Any) -> int:
    """Samples in a batch. Where the loss is a mean over tokens, and texts differ, count tokens."""
    while not isinstance(batch, torch.Tensor):
        batch = next(iter(batch.values() if isinstance(batch, Mapping) else batch))
    return len(batch)

