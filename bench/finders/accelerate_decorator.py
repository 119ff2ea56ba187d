"""accelerate's own finder, as its guide shows it. usage: accelerate_decorator.py CASE OUTPUT"""

import itertools
import sys

import workload
from accelerate import Accelerator
from accelerate.utils import find_executable_batch_size
from torch.utils.data import DataLoader
from trials import Trials

PRECISIONS = {"fp32": "no", "bf16": "bf16"}


def main():
    name, output = sys.argv[1:]
    case, trials = workload.cases()[name], Trials()
    accelerator = Accelerator(mixed_precision=PRECISIONS[case.precision])

    @find_executable_batch_size
    def train(batch_size):
        trials.start(batch_size)
        accelerator.free_memory()
        model = case.model()
        model, optimizer, loader = accelerator.prepare(
            model, workload.optimizer(model.parameters()),
            DataLoader(case.samples, batch_size=batch_size),
        )
        for batch in itertools.islice(loader, workload.STEPS):
            optimizer.zero_grad()
            accelerator.backward(model(**batch)["loss"])
            optimizer.step()
        trials.went_through()
        return batch_size

    trials.write(output, train())


if __name__ == "__main__":
    main()
