"""What vramfit asks of a Python program that it plans for by running it: to say how far it is.

    after_torch -> hooks: what the program calls      -> progress: what is told of it, in a file
                                                         memory: whose bytes are whose

`VRAMFIT_STEPS_FOLDER` names the folder for the files, one a process; without it nothing is done.
After `VRAMFIT_STEPS_TO_SEE` optimizer steps the process waits to be ended, so that it does nothing
more: no evaluation, no saving. Without that variable it runs to its own end. It needs PyTorch and
the standard library, and changes nothing that the program computes or allocates.
"""

from __future__ import annotations

import os
import sys


def after_torch() -> None:
    """Begins; called when `import torch` is done. A failure is said and never the program's."""
    folder = os.environ.get("VRAMFIT_STEPS_FOLDER")
    if not folder:
        return
    try:
        from . import hooks

        hooks.begin(folder)
    except Exception as error:
        print(f"vramfit: steps are not counted: {type(error).__name__}: {error}", file=sys.stderr)
