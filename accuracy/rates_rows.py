"""From what the steps of published rates launch to rows that examples/calibrate.rs fits constants to.

usage: rates_rows.py FOLDER > ROWS.jsonl

FOLDER is what `rates_run.py --works FOLDER` wrote. Rates without a file there are passed over.
"""

import json
import sys
from collections import Counter
from pathlib import Path

import rates as published


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__.strip())
    folder = Path(sys.argv[1])
    for rate in published.read():
        path = folder / f"{rate.id}.json"
        if path.exists():
            print(json.dumps(row(rate, json.loads(path.read_text(encoding="utf-8"))["work"])))


def row(rate, launches):
    """One rate beside the works of its step, alike works counted together."""
    counts = Counter()
    for launch in launches:
        counts[json.dumps(launch["work"], sort_keys=True)] += launch["count"]
    return {
        "id": rate.id,
        "gpu": rate.profile,
        "seconds": rate.ms / 1e3,
        "split": rate.split,
        "works": [{"work": json.loads(work), "count": count} for work, count in counts.items()],
    }


if __name__ == "__main__":
    main()
