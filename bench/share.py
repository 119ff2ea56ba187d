"""(b) again: which share of a training step's CPU time is spent in the virtual GPU, sampled by perf."""

import collections
import shutil
import signal
import subprocess
import sys
import tempfile
import time

from processes import Child, Worker

LIBRARY = "libvramfit_vgpu"
FREQUENCY_HZ = 997
# Of the stack, kept with each sample: from a leaf to the virtual GPU's frame is never far.
STACK_BYTES = 8192
# Until perf has surely begun to watch; the process waits for its command meanwhile.
ATTACH_SECONDS = 1
CASES = [
    ("child", "resnet50", 32, "fp32"), ("child", "gpt2-small", 4, "bf16-autocast"),
    ("child", "mlp", 64, "fp32"),
    ("worker", "resnet50", 32, "fp32"), ("worker", "gpt2-small", 4, "bf16-autocast"),
]


def measure(workloads, seconds, say):
    """None where perf is missing or not allowed."""
    if not shutil.which("perf") or not works():
        return None
    return [measure_case(*case, workloads, seconds, say) for case in CASES]


def works():
    with tempfile.NamedTemporaryFile() as data:
        command = ["perf", "record", "-q", "-o", data.name, "-e", "task-clock", "--", "true"]
        return subprocess.run(command, capture_output=True).returncode == 0


def measure_case(who, model, batch, precision, workloads, seconds, say):
    say(f"share: {who}, {model}, {batch} samples, {precision}")
    if who == "worker":
        process = Worker(workloads[model], batch, precision)
        # One point of many steps, so that building the model hardly counts.
        process.point(3)
        step_seconds = process.point(3)["seconds"] / 3
        steps = max(3, int(seconds / step_seconds))
        train = lambda: process.point(steps)
    else:
        process = Child("virtual", model, batch, precision)
        process.steps(0.5)
        train = lambda: process.steps(seconds)
    counted = sample(process.hello["pid"], train)
    process.close()
    return {"who": who, "model": model, "batch": batch, "precision": precision, **counted}


def sample(pid, train):
    with tempfile.NamedTemporaryFile() as data:
        perf = subprocess.Popen(
            ["perf", "record", "-q", "-o", data.name, "-e", "task-clock", "-F", str(FREQUENCY_HZ),
             "--call-graph", f"dwarf,{STACK_BYTES}", "-p", str(pid)],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )
        time.sleep(ATTACH_SECONDS)
        train()
        perf.send_signal(signal.SIGINT)
        perf.wait()
        command = ["perf", "script", "--no-inline", "-i", data.name, "-F", "ip,sym,dso"]
        text = subprocess.run(command, capture_output=True, text=True).stdout
    return count(text)


def count(script):
    """Counts samples: each a block of lines, one a frame, the innermost first."""
    samples = own = below = 0
    entries = collections.Counter()
    for block in script.split("\n\n"):
        frames = [line.strip() for line in block.splitlines() if line.strip()]
        inside = [index for index, frame in enumerate(frames) if LIBRARY in frame]
        samples += bool(frames)
        if inside:
            own += inside[0] == 0
            below += inside[0] != 0
            entries[name(frames[inside[-1]])] += 1
    if not samples:
        sys.exit("error: perf saw nothing of the process")
    return {
        "samples": samples,
        "own_share": own / samples,
        "below_share": below / samples,
        "entry_points": [[entry, hits / samples] for entry, hits in entries.most_common(8)],
    }


def name(frame):
    return frame.split(" ", 1)[1].rsplit(" (", 1)[0]
