"""usage: python path/to/vramfit_worker FILE FUNCTION, where FILE is a path to Python source."""

import sys
from pathlib import Path

if __name__ == "__main__":
    # The user's file may import modules named like ours, so ours are reached through the package.
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    import vramfit_torch  # noqa: F401  (not found any more once the user's file has run)
    from vramfit_worker.serve import main

    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
