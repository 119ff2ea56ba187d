"""What really fits: whole optimizer steps in PyTorch alone. usage: whole_steps.py CASE OUTPUT MICRO_STEPS [BATCH...]

MICRO_STEPS is how many batches one optimizer step takes. Without a batch size it bisects for the
largest one that fits, and for the largest that does so without flushing. Each size begins with an empty allocator.
"""

import contextlib
import gc
import json
import pathlib
import sys

import torch
import workload

DEVICE = "cuda"
# Beyond the first size that fails as many more are tried: memory does not grow evenly.
BEYOND = 4


def main():
    name, output, micro_steps, *sizes = sys.argv[1:]
    case = workload.cases()[name]
    results = {}

    def attempt(size):
        if size not in results:
            results[size] = train(case, size, int(micro_steps))
        return results[size]["fits"]

    def without_flushing(size):
        return attempt(size) and not results[size]["flushed"]

    if sizes:
        for size in sizes:
            attempt(int(size))
    else:
        high = bisect(attempt)
        for size in range(high + 1, high + 1 + BEYOND):
            attempt(size)
        bisect(without_flushing)
    pathlib.Path(output).write_text(json.dumps(results))


def bisect(attempt):
    """The smallest size that fails after one that does not."""
    low, high = 0, 1
    while attempt(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if attempt(middle) else (low, middle)
    return high


def train(case, size, micro_steps):
    before = torch.cuda.memory_stats()
    state_bytes = None
    try:
        state_bytes = steps(case, size, micro_steps)
    except RuntimeError:
        # What cuDNN says when it has no memory is another error.
        if count(torch.cuda.memory_stats(), "num_ooms") == count(before, "num_ooms"):
            raise
    after = torch.cuda.memory_stats()
    empty()
    return {
        "fits": state_bytes is not None,
        # Only by giving back its cache and asking again did the allocator find the memory.
        "flushed": count(after, "num_alloc_retries") > count(before, "num_alloc_retries"),
        "optimizer_state_bytes": state_bytes,
        "reserved_peak_bytes": after["reserved_bytes.all.peak"],
    }


def steps(case, size, micro_steps):
    """Bytes of the optimizer's state after the last step."""
    model = case.model().train().to(DEVICE)
    optimizer = workload.optimizer(model.parameters())
    autocast = contextlib.nullcontext
    if case.precision == "bf16":
        autocast = lambda: torch.autocast(DEVICE, torch.bfloat16)
    for _ in range(workload.STEPS):
        optimizer.zero_grad()
        for _ in range(micro_steps):
            batch = {key: part.to(DEVICE) for key, part in case.batch(size).items()}
            with autocast():
                loss = model(**batch)["loss"] / micro_steps
            loss.backward()
        optimizer.step()
    parts = (part for state in optimizer.state.values() for part in state.values())
    return sum(part.nbytes for part in parts if part.device.type == DEVICE)


def empty():
    gc.collect()
    torch._C._cuda_clearCublasWorkspaces()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    if torch.cuda.memory_allocated() > 0:
        sys.exit(f"error: {torch.cuda.memory_allocated()} bytes of a batch size are left for the next")


def count(stats, name):
    return stats.get(name, 0)


if __name__ == "__main__":
    main()
