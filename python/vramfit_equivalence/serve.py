"""A request in, how far it is and what was measured out."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from vramfit_worker import user_code
from vramfit_worker.faults import PointFault, Raised, Unusable, in_words, one_line, users_place
from vramfit_worker.faults import users_traceback as traceback_of
from vramfit_worker.streams import Channel

FAILED = 3
# As virtual GPUs are named.
VIRTUAL = "(virtual)"


def main() -> int:
    """Does all that the one request asks for."""
    channel = Channel()
    request = next(channel.requests())
    try:
        channel.say("answer", answer=_answer(channel, request))
        return 0
    except Unusable as error:
        _refuse(channel, error.message, error.hint, error.traceback, error.bad_input)
    except PointFault as error:
        _refuse(channel, error.message, None, error.traceback, False)
    except Raised as raised:
        place = users_place(raised.error)
        message = f"{raised.doing} failed: {in_words(raised.error)}{f' ({place})' if place else ''}"
        _refuse(channel, message, None, traceback_of(raised.error), False)
    return FAILED


def _refuse(
    channel: Channel, message: str, hint: str | None, traceback: str | None, bad_input: bool
) -> None:
    channel.say(
        "unusable", message=message, hint=hint, traceback=traceback, bad_input=bad_input
    )


def _answer(channel: Channel, request: dict[str, Any]) -> dict[str, Any]:
    own = request["own"]
    # It is imported before PyTorch, as it would be run.
    function = user_code.find(Path(own["file"]), own["function"]) if own else None
    torch = _torch()
    device = _device(torch, request["device"])
    seed = request["seed"]
    torch.set_num_threads(request["threads"])

    def tell(part: str, done: int, of: int) -> None:
        channel.say("progress", part=part, done=done, of=of)

    answer = {"about": _about(torch, device), "gradients": None, "training": None, "peaks": None}
    answer["own"] = None
    if function is not None:
        from .own import compare

        answer["own"] = compare(function, own, device, seed)
    if "gradients" in request["parts"]:
        from .cases import measure_all

        answer["gradients"] = measure_all(device, seed, lambda *it: tell("gradients", *it))
    if "training" in request["parts"]:
        from .training import train

        answer["training"] = train(
            device, request["steps"], seed, lambda *it: tell("training", *it)
        )
    # A CPU has no allocator that could tell.
    if "peaks" in request["parts"] and device.type == "cuda":
        from .peaks import peaks

        answer["peaks"] = peaks(device, seed)
    return answer


def _torch() -> Any:
    try:
        import torch
    except ImportError as error:
        raise Unusable(
            f"`{sys.executable}` has no PyTorch: {one_line(str(error))}",
            "`VRAMFIT_PYTHON` names another Python",
        ) from error
    return torch


def _device(torch: Any, wanted: str) -> Any:
    """The device that is asked for: `cpu`, `gpu`, `virtual` or `auto`."""
    if wanted == "cpu":
        return torch.device("cpu")
    if wanted == "virtual" and torch.version.cuda is None:
        raise Unusable(f"the PyTorch of `{sys.executable}` is built without CUDA")
    there = torch.cuda.is_available()
    device = torch.device("cuda", 0)
    real = there and not torch.cuda.get_device_name(device).endswith(VIRTUAL)
    if wanted == "auto":
        return device if real else torch.device("cpu")
    if wanted == "gpu" and not real:
        raise Unusable(
            "PyTorch computes nothing on a virtual GPU"
            if there
            else "PyTorch finds no GPU that it can use",
            "`--device cpu` trains without one; `vramfit doctor` says what is wrong",
        )
    return device


def _about(torch: Any, device: Any) -> dict[str, Any]:
    from vramfit_torch import about

    on_gpu = device.type == "cuda"
    return {
        "torch": about.version(),
        "device": "gpu" if on_gpu else "cpu",
        "name": torch.cuda.get_device_name(device) if on_gpu else torch.backends.cpu.get_cpu_capability(),
        "threads": torch.get_num_threads(),
    }
