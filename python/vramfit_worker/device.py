"""The device: opening it, and what it and PyTorch are."""

from __future__ import annotations

import sys

from .faults import Refusal, Unusable, one_line

OTHER = "`VRAMFIT_PYTHON` names another Python"


def open_device() -> dict[str, str]:
    """Makes the CUDA context; versions and names as the protocol has them."""
    try:
        import torch
    except ImportError as error:
        raise Unusable(
            f"`{sys.executable}` has no PyTorch: {one_line(str(error))}", OTHER
        ) from error
    if torch.version.cuda is None:
        raise Unusable(f"the PyTorch of `{sys.executable}` is built without CUDA", OTHER)
    if not torch.cuda.is_available():
        raise Refusal("CUDA is not available: no driver, or no GPU that it can use")
    try:
        torch.zeros(1, device="cuda:0")
        torch.cuda.synchronize(0)
        torch.cuda.empty_cache()
        name = torch.cuda.get_device_name(0)
    except RuntimeError as error:
        raise Refusal(f"the GPU cannot be opened: {one_line(str(error))}") from error
    from vramfit_torch import about

    return {
        "torch": about.version(),
        "cuda": torch.version.cuda,
        "cudnn": about.cudnn(),
        "device": name,
    }


def is_usable() -> bool:
    """Whether the device still answers."""
    import torch

    try:
        torch.cuda.synchronize(0)
    except RuntimeError:
        return False
    return True


def reserved() -> int:
    """Bytes that the allocator holds now."""
    import torch

    return torch.cuda.memory_reserved(0)
