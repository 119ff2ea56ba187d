"""The published rates of training and inference, and how modelled ones compare with them."""

import csv
import hashlib
import json
import math
import statistics
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

HERE = Path(__file__).resolve().parent
# Two rates that are nearer than this are not ranked.
APART = 1.05


@dataclass(frozen=True)
class Rate:
    """One published rate, with the settings that it was measured with."""

    id: str
    source: str
    family: str
    profile: str
    torch: str
    cuda: str
    environment: str
    workload: str
    model: str
    input: str
    batch: str
    precision: str
    layout: str
    attention: str
    compiled: str
    optimizer: str
    quantity: str
    value: str
    split: str
    note: str

    @property
    def settings(self):
        """The arguments of its workload."""
        names = ("model", "input", "batch", "precision", "layout", "attention", "compiled",
                 "optimizer")
        stated = {name: getattr(self, name) for name in names}
        return {
            name: int(value) if value.isdigit() else value
            for name, value in stated.items() if value
        }

    @property
    def samples(self):
        """Samples of a step, all micro-batches of it counted."""
        return math.prod(int(part) for part in self.batch.split("x"))

    @property
    def ms(self):
        """Milliseconds of a step, as published."""
        value = float(self.value)
        if self.quantity == "ms/step":
            return value
        return 1000 * self.samples / value


def read():
    """All rates, in the order of their files."""
    found = []
    for path in sorted((HERE / "published").glob("throughput-*.csv")):
        with path.open(encoding="utf-8", newline="") as file:
            found += [Rate(**fields) for fields in csv.DictReader(file)]
    return found


def sources():
    return json.loads((HERE / "sources.json").read_text(encoding="utf-8"))


def held_back(rates):
    """The rates that no constant was fitted to: a third, chosen by SHA-256 before anything was fitted.

    Of timm's tables whole families of models, so that a model's kin do not give it away; of the others,
    rows of each card of a source, unless it has but one.
    """
    families = first_third(rate.family for rate in rates if rate.source.startswith("timm"))
    series = {}
    for rate in rates:
        series.setdefault((rate.source, rate.profile), []).append(rate.id)
    ids = set().union(*(first_third(series[it]) for it in series))
    return {
        rate.id for rate in rates
        if (rate.family in families if rate.source.startswith("timm") else rate.id in ids)
    }


def first_third(names):
    ordered = sorted(set(names), key=lambda name: hashlib.sha256(name.encode()).hexdigest())
    return set(ordered[: -(-len(ordered) // 3)]) if len(ordered) > 1 else set()


@dataclass(frozen=True)
class Compared:
    """A published rate beside the modelled one."""

    rate: Rate
    ms: float

    @property
    def ratio(self):
        """Modelled time over published: above 1, the model is slower than the card."""
        return self.ms / self.rate.ms

    @property
    def error(self):
        """Percent of the published rate by which the modelled one differs, without sign."""
        return 100 * abs(1 / self.ratio - 1)

    @property
    def published(self):
        """As its source gives it: samples/s, or ms of a step."""
        return float(self.rate.value)

    @property
    def modelled(self):
        """What stands for the published figure, in its unit."""
        return self.ms if self.rate.quantity == "ms/step" else 1000 * self.rate.samples / self.ms


def compare(rates, runs):
    """Each rate whose workload was run, beside its run."""
    return [
        Compared(rate, runs[rate.id]["ms"])
        for rate in rates
        if runs.get(rate.id, {}).get("ms")
    ]


def median_error(group):
    return statistics.median(it.error for it in group)


def ranked(group):
    """Pairs of one source and card that differ enough, and how many of them are ranked right.

    Samples are compared: a step of more samples may well take longer. Where samples are not the same,
    that is images of another size or sequences of another length, it is still what a person chooses by.
    """
    series = {}
    for it in group:
        series.setdefault((it.rate.source, it.rate.profile), []).append(it)
    right = total = 0
    for members in series.values():
        for one, other in combinations(members, 2):
            published = per_sample(one.rate.ms, one) / per_sample(other.rate.ms, other)
            if 1 / APART < published < APART:
                continue
            total += 1
            right += (published > 1) == (per_sample(one.ms, one) > per_sample(other.ms, other))
    return right, total


def per_sample(ms, it):
    return ms / it.rate.samples
