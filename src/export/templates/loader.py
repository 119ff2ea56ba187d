
#? remainder
class MicroBatches(Sampler[list[int]]):
    """The indices of one micro-batch after the other, of the sizes of an optimizer step in turn."""

    def __init__(self, sampler: Sampler[int]) -> None:
        self.sampler = sampler

    def __iter__(self) -> Iterator[list[int]]:
        indices = iter(self.sampler)
        for size in itertools.cycle(@loader_sizes@):
            batch = list(itertools.islice(indices, size))
            if len(batch) < size:
                return  # smaller than any that was measured
            yield batch

    def __len__(self) -> int:
        sizes = @loader_sizes@
        steps, rest = divmod(len(self.sampler), sum(sizes))
        return steps * len(sizes) + sum(end <= rest for end in itertools.accumulate(sizes))


#? end
def make_loader(dataset: Dataset, **more: Any) -> DataLoader:
    """Loads micro-batches, with more arguments of the DataLoader, or others in their place."""
    sampler = DistributedSampler(dataset, num_replicas=WORLD_SIZE)  #? sharded
    sampler = RandomSampler(dataset)  #? remainder !sharded
    planned = {
        "batch_sampler": MicroBatches(sampler),  #? remainder
        "batch_size": MICRO_BATCH,  #? !remainder
        "sampler": sampler,  #? sharded !remainder
        "shuffle": True,  #? !sharded !remainder
        "drop_last": True,  # a smaller last one was not measured  #? !remainder
        "num_workers": WORKERS,
        "persistent_workers": True,
        "pin_memory": True,
    }
    return DataLoader(dataset, **(planned | more))

