"""The processes that are measured: Python children, the worker, and `vramfit plan`."""

import json
import os
import pathlib
import subprocess
import sys
import time

ROOT = pathlib.Path(__file__).resolve().parent.parent
VRAMFIT = ROOT / "target/release/vramfit"
WORKER = ROOT / "target/release/vramfit-worker"
# Large enough for all that is measured; which card it is has no influence on the time.
GPU = "rtx-4090"


class Process:
    """A running process that answers each line with one line of JSON."""

    def __init__(self, command):
        self.begun = time.perf_counter()
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            text=True, env=environment(),
        )
        self.hello = self.read()
        self.start_seconds = time.perf_counter() - self.begun

    def ask(self, line):
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()
        return self.read()

    def read(self):
        line = self.process.stdout.readline()
        if not line:
            sys.exit(f"error: {self.process.args} ended:\n{self.process.stderr.read()}")
        return json.loads(line)

    def close(self):
        self.process.stdin.close()
        self.process.wait()


class Child(Process):
    """A Python child of `child.py`."""

    def __init__(self, kind, model, batch, precision):
        command = [sys.executable, str(ROOT / "bench/child.py"), kind, model, str(batch), precision]
        # Without a CUDA device PyTorch's autograd refuses fake CUDA tensors too.
        super().__init__(on_virtual_gpu(command) if kind in ("virtual", "fake-cuda") else command)

    def point(self, steps):
        return self.ask(f"point {steps}")

    def steps(self, seconds):
        return self.ask(f"steps {seconds}")["seconds"]


class Worker(Process):
    """vramfit's worker, spoken to as the command line does."""

    def __init__(self, workload, batch, precision):
        self.request = {
            "request": "measure", "id": 0, "workload": workload,
            "point": {
                "setting": {"precision": precision.split("-")[0], "checkpointing": "none"},
                "micro_batch": batch, "accumulation": 1, "remainder": None,
            },
        }
        super().__init__(on_virtual_gpu([str(WORKER)]))

    def point(self, steps):
        begun = time.perf_counter()
        reply = self.ask(json.dumps({**self.request, "steps": steps}))
        seconds = time.perf_counter() - begun
        try:
            ran = reply["outcome"]["ran"]
        except (KeyError, TypeError):
            sys.exit(f"error: the worker says {reply}")
        return {"seconds": seconds, "peak_bytes": ran["memory"]["allocated_peak"]}


def on_virtual_gpu(command):
    # What is measured is the virtual GPU, not the computing of small tensors for Python beside it.
    return [str(VRAMFIT), "run", "--no-shadow", "--gpu", GPU, "--", *command]


def plan(model):
    """One whole `vramfit plan`; its wall time in seconds and what it says."""
    command = [str(VRAMFIT), "plan", "--model", model, "--target-batch", "64",
               "--gpu", "rtx-3050-laptop-4gb", "--json"]
    begun = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment())
    seconds = time.perf_counter() - begun
    if done.returncode not in (0, 1):
        sys.exit(f"error: {' '.join(command)} ended with {done.returncode}:\n{done.stderr}")
    return seconds, json.loads(done.stdout)


def environment():
    """The same for all, whatever the shell has set."""
    unwanted = ("PYTORCH_", "CUDA_", "VRAMFIT_", "LD_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(unwanted)}
    return {**kept, "PYTHONDONTWRITEBYTECODE": "1", "HF_HUB_OFFLINE": "1"}
