"""What `vramfit watch` asks of a Python program: what it does with the GPU's memory, as it goes.

    after_torch -> steps: optimizers, loaders    -> lines: JSON lines in a file of the process
                   passes: models in evaluation     (an `Entry` of src/watch/recording.rs each)
                   graphs: those that are held        ^
                   kept: what is held, by line        |
                   memory: the allocator's numbers ---'

`VRAMFIT_WATCH_FOLDER` names the folder for the files; without it nothing is done. It needs PyTorch
and the standard library, and changes nothing that the program computes, allocates, saves or is told
of its memory. On a real GPU it waits for nothing that the GPU does.
"""

from __future__ import annotations

import os
import sys


def after_torch() -> None:
    """Begins; called when `import torch` is done. A failure is said and never the program's."""
    folder = os.environ.get("VRAMFIT_WATCH_FOLDER")
    if not folder:
        return
    try:
        from . import watching

        watching.begin(folder)
    except Exception as error:
        print(f"vramfit: PyTorch is not watched: {type(error).__name__}: {error}", file=sys.stderr)
