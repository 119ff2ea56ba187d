"""Answers in one line of JSON; its fields are read by `vramfit::doctor`."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import json
import platform
import sys
from typing import Any


def about_torch(opens: bool) -> dict[str, Any]:
    """What PyTorch was built for, asked in ways that leave the driver alone unless `opens`."""
    import torch

    build = torch.version
    described: dict[str, Any] = {
        "version": torch.__version__,
        "cuda": getattr(build, "cuda", None),
        "rocm": getattr(build, "hip", None),
        "cudnn": cudnn(torch),
        "architectures": architectures(torch),
        "flash_attention": flash_attention(torch),
        "flash_attn": installed("flash-attn"),
        "opened": None,
    }
    if opens and described["cuda"]:
        described["opened"] = opened(torch)
    return described


def cudnn(torch: Any) -> str | None:
    """cuDNN's version, e.g. `9.19.0`: 8.9.7 is 8907, 9.1.0 is 90100."""
    number = torch.backends.cudnn.version() if torch.backends.cudnn.is_available() else None
    if number is None:
        return None
    major, rest = divmod(number, 10_000 if number >= 90_000 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def architectures(torch: Any) -> list[str]:
    """As `torch.cuda.get_arch_list()`, which says nothing where there is no GPU, and wakes one."""
    flags = getattr(torch._C, "_cuda_getArchFlags", lambda: None)()
    return flags.split() if flags else []


def flash_attention(torch: Any) -> bool | None:
    """Whether PyTorch was built with it; none from a PyTorch that does not tell."""
    asked = getattr(torch.backends.cuda, "is_flash_attention_available", None)
    return None if asked is None else bool(asked())


def installed(package: str) -> str | None:
    """Version of an installed package."""
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None


def opened(torch: Any) -> dict[str, Any]:
    """The devices that CUDA has, or why it does not start."""
    try:
        torch.cuda.init()
        devices = [
            torch.cuda.get_device_properties(index) for index in range(torch.cuda.device_count())
        ]
    except Exception as error:
        return {"failure": str(error) or type(error).__name__, "devices": []}
    return {
        "failure": None,
        "devices": [{"name": it.name, "total": it.total_memory} for it in devices],
    }


def main() -> None:
    """Says what there is, or what is missing."""
    answer: dict[str, Any] = {"python": platform.python_version()}
    if importlib.util.find_spec("torch") is not None:
        try:
            answer["torch"] = about_torch(opens="open" in sys.argv[1:])
        except Exception as error:
            answer["broken"] = f"{type(error).__name__}: {error}"
    print("\n" + json.dumps(answer), flush=True)


main()
