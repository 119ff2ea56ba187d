"""The published measurements that are compared, and the jobs that reproduce them."""

import csv
import json
import math
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).resolve().parent
UNITS = {"MiB": 2**20, "GB": 10**9, "GiB": 2**30}


@dataclass(frozen=True)
class Row:
    """One published figure, and the workload that stands for it."""

    id: str
    source: str
    family: str
    card: str
    profile: str
    environment: str
    workload: str
    parameters: str
    quantity: str
    published: str
    unit: str
    base: str
    cause: str

    def __post_init__(self):
        # Read once and written again, so that rows and results agree on how it is written.
        object.__setattr__(self, "parameters", json.dumps(json.loads(self.parameters)))

    @property
    def job(self):
        """What has to be run for it; rows may share a run."""
        return self.environment, self.profile, self.workload, self.parameters

    @property
    def digits(self):
        return len(self.published.partition(".")[2])


def read():
    """All rows, in the order of their files; rates and times of kernels are elsewhere."""
    found = []
    files = (path for path in (HERE / "published").glob("*.csv") if not timed(path))
    for path in sorted(files):
        with path.open(encoding="utf-8", newline="") as file:
            found += [Row(**fields) for fields in csv.DictReader(file)]
    return found


def timed(path):
    return path.name.startswith(("throughput-", "kernels-"))


def sources():
    return json.loads((HERE / "sources.json").read_text(encoding="utf-8"))


def jobs(rows):
    """The runs that the rows need, each once, in the order of the rows."""
    return list(dict.fromkeys(row.job for row in rows))


def read_of(rows, runs):
    """The figures of the runs that rows read; the others are not kept."""
    names = {}
    for row in rows:
        names.setdefault(row.job, []).append(row.quantity)
    return {
        job: {name: runs[job][name] for name in dict.fromkeys(names[job])}
        for job in jobs(rows)
        if job in runs
    }


@dataclass(frozen=True)
class Comparison:
    """Bytes on both sides: as printed in its source, and of the virtual GPU."""

    row: Row
    published: float
    ours: float
    exact: bool

    @property
    def error(self):
        return self.ours - self.published

    @property
    def percent(self):
        """Of the published figure; nothing where only the source's rounding lies between."""
        return 0.0 if self.exact else 100 * self.error / self.published


def compare(rows, runs):
    """Each row beside its run; rows that are the base of others are no comparison themselves.

    `base` is a row of a series all of whose figures hold the same bytes beside the workload's own.
    What it has more than its own run is taken as that constant, and added to the others.
    """
    by_id = {row.id: row for row in rows}
    bases = {row.base for row in rows if row.base}
    return [
        comparison(row, by_id.get(row.base), runs)
        for row in rows
        if row.id not in bases and row.job in runs
    ]


def comparison(row, base, runs):
    size = UNITS[row.unit]
    published = float(row.published) * size
    ours = runs[row.job][row.quantity]
    rounded = rounding(row)
    if base is not None:
        ours += constant(base, runs)
        rounded += rounding(base)
    return Comparison(row, published, ours, abs(ours - published) <= rounded)


def constant(base, runs):
    """What a series' figures hold beside the workload's own bytes."""
    return float(base.published) * UNITS[base.unit] - runs[base.job][base.quantity]


def rounding(row):
    """How far a source's figure may be from the bytes that it stands for."""
    units = 0.500001 * 10**-row.digits
    if row.source == "liger":
        # Its medians are interpolated in single precision.
        units += 2.0 ** (math.frexp(float(row.published))[1] - 24)
    return units * UNITS[row.unit]
