"""The vramfit that is run, and the Python that it runs."""

import os
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent
# The folder of binaries, as for scripts/gpu-check.sh.
VRAMFIT = Path(os.environ.get("VRAMFIT_BIN", ROOT / "target" / "release")) / "vramfit"
PROCESSES = 2


def python(environment):
    if environment != "main":
        path = ROOT / ".venvs" / environment / "bin" / "python"
        if not path.exists():
            sys.exit(
                f"error: {environment} is not installed\nhint: scripts/frameworks.sh {environment}"
            )
        return path
    named = os.environ.get("VRAMFIT_PYTHON")
    if not named:
        sys.exit("error: VRAMFIT_PYTHON names no Python with PyTorch\nhint: make setup")
    return named
