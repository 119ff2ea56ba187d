"""usage: python path/to/vramfit_equivalence < REQUEST."""

import sys
from pathlib import Path

if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parent.parent)
    # Where the user's file takes the first place.
    sys.path.append(sys.path[0])
    from vramfit_equivalence.serve import main

    sys.exit(main())
