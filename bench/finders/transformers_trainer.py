"""transformers' own finder. usage: transformers_trainer.py CASE OUTPUT [START]

START is the batch size of the arguments, which the Trainer takes as its first try; 8 by default.
"""

import sys
import tempfile

import transformers
import workload
from torch.utils.data import default_collate
from trials import Trials


class Trainer(transformers.Trainer):
    trials = None

    def _inner_training_loop(self, batch_size=None, **rest):
        self.trials.start(batch_size)
        output = super()._inner_training_loop(batch_size=batch_size, **rest)
        self.trials.went_through()
        return output


def main():
    name, output, *start = sys.argv[1:]
    case, trials = workload.cases()[name], Trials()
    Trainer.trials = trials
    how = {"per_device_train_batch_size": int(start[0])} if start else {}
    with tempfile.TemporaryDirectory() as folder:
        arguments = transformers.TrainingArguments(
            output_dir=folder, auto_find_batch_size=True, max_steps=workload.STEPS,
            bf16=case.precision == "bf16", optim="adamw_torch", learning_rate=1e-3, max_grad_norm=0.0,
            weight_decay=0.01, save_strategy="no", report_to="none", disable_tqdm=True, **how,
        )
        trainer = Trainer(
            model=case.model(), args=arguments, train_dataset=case.samples, data_collator=default_collate
        )
        trainer.train()
    trials.write(output, trials.tried[-1]["batch"])


if __name__ == "__main__":
    main()
