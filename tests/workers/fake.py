#!/usr/bin/env python3
"""A worker whose memory is affine in the micro-batch, and which fails where it is told to.

FAKE_FIXED, FAKE_SAMPLE, FAKE_CAPACITY: MiB; bf16 and fp16 halve what a sample takes. A sample of
tokens is one of 1024 and takes as much less or more as it is shorter or longer.
FAKE_CARD, FAKE_CARD_SAMPLE: where `$VRAMFIT_VGPU` is FAKE_CARD, this sample counts, not its twin's.
FAKE_CARD_TIME: by which factor steps take longer there.
FAKE_FAULT: `<what>` when starting, or `<what>@<micro-batch>`, or `<what>@<micro-batch>!once`; the
micro-batch may be `any`. With FAKE_FAULT_TOKENS only at that length.
`interrupt-fused` interrupts where a fused optimizer step is tried.
FAKE_TIMES: `even` answers modelled step times too; `<micro-batch>`, that this size and those above it are slow.
FAKE_BLOCKS: blocks of the model, which share three quarters of what a sample takes; 0 are none to see.
FAKE_NO_SURVEY: why the blocks cannot be surveyed.
FAKE_PIDS: file to which each worker appends its process id.
FAKE_IMPORT: seconds that it takes to be ready, as one in Python does that imports a user's file.
"""

import json
import os
import signal
import subprocess
import sys
import time

MIB = 1 << 20


def say(**reply):
    print(json.dumps(reply), flush=True)


def fail(what, request_id=None):
    if what == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif what == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    elif what == "exit":
        print("torch fell over\nCUDA error: misaligned address", file=sys.stderr, flush=True)
        sys.exit(7)
    elif what == "silent-exit":
        sys.exit(0)
    elif what == "rubbish":
        print("Hello, I am no worker", flush=True)
        time.sleep(60)
    elif what == "flood":
        while True:
            sys.stdout.write("x" * 65536)
    elif what == "hang":
        # With a child of its own, which must not be left either, and deaf to polite requests.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen(["sleep", "600"])
        note_pid(child.pid)
        time.sleep(600)
    elif what == "terminal":
        print("\x1b[2J\u202ewiped", file=sys.stderr, flush=True)
        os.kill(os.getpid(), signal.SIGSEGV)
    elif what == "refuse":
        say(reply="refused", message="the GPU is on fire")
        sys.exit(3)
    elif what == "other-id":
        say(reply="measured", id=request_id + 100, outcome={"failed": {"message": "?"}}, reserved=0)
    elif what == "interrupt":
        os.kill(os.getppid(), signal.SIGINT)
        time.sleep(600)


def note_pid(pid):
    if "FAKE_PIDS" in os.environ:
        with open(os.environ["FAKE_PIDS"], "a") as file:
            file.write(f"{pid}\n")


def on_card():
    return "FAKE_CARD" in os.environ and os.environ["VRAMFIT_VGPU"] == os.environ["FAKE_CARD"]


def outcome(point, tokens):
    number = lambda name, default: int(os.environ.get(name, default)) * MIB
    size, setting = point["micro_batch"], point["setting"]
    sample = number("FAKE_SAMPLE", 100)
    if on_card():
        sample = number("FAKE_CARD_SAMPLE", 100)
    if setting["precision"] in ("bf16", "fp16"):
        sample //= 2
    checkpointing = setting["checkpointing"]
    if isinstance(checkpointing, dict) and "blocks" in checkpointing:
        chosen = checkpointing["blocks"]
        sample -= sample * 3 * len(chosen) // (4 * int(os.environ["FAKE_BLOCKS"]))
    elif checkpointing != "none":
        sample //= 4
    if tokens is not None:
        sample = sample * tokens // 1024
    peak = number("FAKE_FIXED", 500) + sample * size
    if peak > number("FAKE_CAPACITY", 3000):
        return {"out-of-memory": {"message": "CUDA out of memory. Tried to allocate much"}}, 0
    parts = "context weights gradients optimizer_state activations workspace allocated_peak"
    memory = dict.fromkeys(parts.split(), 0)
    memory.update(
        weights=100 * MIB,
        gradients=100 * MIB,
        optimizer_state=200 * MIB,
        activations=sample * size,
        allocated_peak=peak,
        reserved_peak=peak,
        device_peak=0,
    )
    ran = {"memory": memory} | times(point)
    retries = int(size == int(os.environ.get("FAKE_TIGHT", 0)))
    return {"ran": ran | {"allocator_retries": retries}}, peak


def times(point):
    """Milliseconds a sample, a micro-step and a step, as the cost model of a virtual GPU has them."""
    what = os.environ.get("FAKE_TIMES", "")
    if not what:
        return {"step_seconds": 0.01}
    rest, setting = point["remainder"] or 0, point["setting"]
    samples = point["micro_batch"] * point["accumulation"] + rest
    micro_steps = point["accumulation"] + int(rest > 0)
    mixed = setting["precision"] in ("bf16", "fp16")
    forward = 4 if setting["checkpointing"] != "none" else 3
    slow = 2 if what != "even" and point["micro_batch"] >= int(what) else 1
    split = {
        "compute": samples * forward * (1 if mixed else 2.5) * slow,
        "memory": samples * (0.5 if mixed else 1) + 10,
        "launch": 1 * micro_steps,
        "transfer": 0,
        "host": 4 * micro_steps,
    }
    slower = float(os.environ.get("FAKE_CARD_TIME", 1)) if on_card() else 1
    split = {name: slower * milliseconds / 1e3 for name, milliseconds in split.items()}
    total = sum(split.values())
    step_time = split | {"total": total, "dispatch": 0.02 * micro_steps}
    return {"step_seconds": total, "step_time": step_time}


def survey(point):
    if "FAKE_NO_SURVEY" in os.environ:
        return [], os.environ["FAKE_NO_SURVEY"]
    count = int(os.environ.get("FAKE_BLOCKS", 0))
    sample = int(os.environ.get("FAKE_SAMPLE", 100)) * MIB * point["micro_batch"]
    if point["setting"]["precision"] in ("bf16", "fp16"):
        sample //= 2
    block = {"saved": sample * 3 // (4 * (count or 1)), "output": 0, "seconds": 0.001}
    return [block] * count, None


def main():
    note_pid(os.getpid())
    what, _, rest = os.environ.get("FAKE_FAULT", "").partition("@")
    where, _, once = rest.partition("!")
    if what and not where:
        fail(what)
    time.sleep(float(os.environ.get("FAKE_IMPORT", 0)))
    say(
        reply="ready",
        protocol=99 if what == "protocol" else 3,
        version="9.9.9" if what == "version" else os.environ.get("FAKE_VERSION", "0.1.0"),
        pid=os.getpid(),
        torch="2.11.0",
        cuda="13.0",
        cudnn="9.19.0",
        device="fake",
    )
    for line in sys.stdin:
        request = json.loads(line)
        if request["request"] == "quit":
            return
        if request["request"] == "build":
            say(reply="built", built=None)
            continue
        if request["request"] == "release":
            say(reply="released")
            continue
        if request["request"] == "survey":
            blocks, reason = survey(request["point"])
            say(reply="surveyed", id=request["id"], blocks=blocks, reason=reason)
            continue
        fused = request["workload"]["optimizer_implementation"] == "fused"
        if what == "interrupt-fused" and fused:
            fail("interrupt")
        tokens = request["workload"]["sequence"]
        here = where in ("any", str(request["point"]["micro_batch"]))
        if where and here and os.environ.get("FAKE_FAULT_TOKENS", str(tokens)) == str(tokens):
            if not once or not os.path.exists("failed-once"):
                open("failed-once", "w").close()
                fail(what, request["id"])
        result, reserved = outcome(request["point"], tokens)
        say(reply="measured", id=request["id"], outcome=result, reserved=reserved)


main()
