"""Lightning's own finder, with its defaults. usage: lightning_tuner.py CASE OUTPUT power|binsearch"""

import sys
import tempfile

import lightning
import workload
from lightning.pytorch.tuner import Tuner
from torch.utils.data import DataLoader
from trials import Trials

PRECISIONS = {"fp32": "32-true", "bf16": "bf16-mixed"}


class Module(lightning.LightningModule):
    def __init__(self, case, trials):
        super().__init__()
        self.model, self.samples, self.trials = case.model(), case.samples, trials
        # The attribute that the tuner changes.
        self.batch_size = 2

    def train_dataloader(self):
        return DataLoader(self.samples, batch_size=self.batch_size)

    def training_step(self, batch):
        return self.model(**batch)["loss"]

    def configure_optimizers(self):
        return workload.optimizer(self.parameters())

    def on_train_start(self):
        self.trials.start(self.batch_size)

    def on_train_end(self):
        self.trials.went_through()


def main():
    name, output, mode = sys.argv[1:]
    case, trials = workload.cases()[name], Trials()
    with tempfile.TemporaryDirectory() as folder:
        trainer = lightning.Trainer(
            precision=PRECISIONS[case.precision], max_epochs=1, default_root_dir=folder,
            logger=False, enable_checkpointing=False, enable_progress_bar=False,
        )
        answer = Tuner(trainer).scale_batch_size(Module(case, trials), mode=mode)
    trials.write(output, answer)


if __name__ == "__main__":
    main()
