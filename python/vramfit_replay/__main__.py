"""usage: python path/to/vramfit_replay < JOBS."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    from vramfit_replay.serve import main

    main()
