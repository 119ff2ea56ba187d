"""What a process and its PyTorch are, as vramfit writes it."""

from __future__ import annotations

import os

import torch

# cuDNN 8.9.7 is 8907, 9.1.0 is 90100.
FIRST_OF_CUDNN_9 = 90_000


def version() -> str:
    """PyTorch's version without what was built into it, e.g. `2.11.0`."""
    return torch.__version__.partition("+")[0]


def cudnn() -> str:
    """cuDNN's version, e.g. `9.19.0`."""
    version = torch.backends.cudnn.version()
    if version is None:
        return "none"
    major, rest = divmod(version, 10_000 if version >= FIRST_OF_CUDNN_9 else 1000)
    return f"{major}.{rest // 100}.{rest % 100}"


def rank() -> int | None:
    """Which of a launcher's processes this is."""
    text = os.environ.get("RANK", "")
    return int(text) if text.isdecimal() else None
