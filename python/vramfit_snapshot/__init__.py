"""PyTorch's own memory snapshot of a program that knows nothing of it.

`VRAMFIT_SNAPSHOTS` names the folder for the files, one a process that uses CUDA; without it nothing
is done. It works on a real GPU as on a virtual one.
"""

from __future__ import annotations

import os
import sys


def after_torch() -> None:
    """Begins; called when `import torch` is done. A failure is said and never the program's."""
    folder = os.environ.get("VRAMFIT_SNAPSHOTS")
    if not folder:
        return
    try:
        from . import recording

        recording.begin(folder)
    except Exception as error:
        print(f"vramfit: no snapshot: {type(error).__name__}: {error}", file=sys.stderr)
