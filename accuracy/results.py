"""docs/accuracy.json: what the runs gave, one line each."""

import json

from machine import ROOT

PATH = ROOT / "docs" / "accuracy.json"
PARTS = ("runs", "rates")


def read(part, path=PATH):
    if not path.exists():
        return []
    return json.loads(path.read_text(encoding="utf-8")).get(part, [])


def write(part, items, path=PATH):
    """Replaces one part; the other stays as it is."""
    told = {name: items if name == part else read(name, path) for name in PARTS}
    lists = [
        f'"{name}": [\n' + ",\n".join(json.dumps(it) for it in told[name]) + "\n]"
        for name in PARTS
    ]
    path.write_text('{"schema": 1, ' + ", ".join(lists) + "}\n", encoding="utf-8")
