
#? remainder
class MicroBatches(Sampler[list[int]]):
    """The indices of one micro-batch after the other, of the sizes of an optimizer step in turn."""

    def __init__(self, sampler: Sampler[int]) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        for size in itertools.cycle(@loader_sizes@):
            if not (batch := list(itertools.islice(indices, size))):
                return
            yield batch

    def __len__(self) -> int:
        sizes = @loader_sizes@
        steps, rest = divmod(len(self.sampler), sum(sizes))
        started = sum(1 for start in itertools.accumulate(sizes[:-1], initial=0) if start < rest)
        return steps * len(sizes) + started


#? end
def make_loader(dataset: Dataset, **more: Any) -> DataLoader:
    """Loads micro-batches, with more arguments of the DataLoader, or others in their place."""
    #? batch_norm
    # Batch norm needs two samples at least: where the last micro-batch has one, drop it.
    #? end
    sampler = DistributedSampler(dataset)  #? sharded
    sampler = RandomSampler(dataset)  #? remainder !sharded
    planned = {
        "batch_sampler": MicroBatches(sampler),  #? remainder
        "batch_size": MICRO_BATCH,  #? !remainder
        "sampler": sampler,  #? sharded !remainder
        "shuffle": True,  #? !sharded !remainder
        "drop_last": False,  # the rest of an epoch is weighed by its size  #? !remainder accumulate
        "drop_last": False,  #? !remainder !accumulate
        "num_workers": WORKERS,
        "persistent_workers": True,
        "pin_memory": True,
    }
    return DataLoader(dataset, **(planned | more))

