"""Words the comparisons as docs/accuracy.md.

usage: page.py     (writes the page anew from docs/accuracy.json, without a run)
"""

import json
import statistics

import causes
import rates
import rows as published
import speed
from machine import HERE, ROOT
from tables import by, table


def write():
    """From the results of all runs, memory and speed."""
    import rates_run
    import run

    text = render(published.read(), run.load(), rates_run.load())
    (ROOT / "docs" / "accuracy.md").write_text(text, encoding="utf-8")


def render(rows, runs, speeds):
    comparisons = published.compare(rows, runs)
    text = (HERE / "page.md").read_text(encoding="utf-8")
    parts = {
        "count": str(len(comparisons)),
        "families": families(comparisons),
        "gaps": gaps(comparisons),
        "constants": constants(rows, runs),
        "sources": sources(rows, comparisons),
        "rows": every_row(comparisons),
        "cards": cards(HERE / "gpu-check"),
        **speed.parts(rates.read(), speeds),
    }
    for name, part in parts.items():
        text = text.replace(f"{{{{{name}}}}}", part)
    return text


LEVELS = {
    "allocated peak": "allocated", "allocated": "allocated", "allocated by the graph": "allocated",
    "requested peak": "requested", "reserved peak": "reserved", "process peak": "NVML",
}


def level(it):
    name = "nvidia-smi" if it.row.source == "gpumemnet" else LEVELS[it.row.quantity]
    return f"{name}, a constant added" if it.row.base else name


def families(comparisons):
    groups = by(comparisons, lambda it: (it.row.family, level(it)))
    lines = [
        [
            family, what, str(len(group)), str(sum(it.exact for it in group)),
            percent(median(group), sign=False), percent(worst(group).percent),
            f"`{worst(group).row.id}`",
        ]
        for (family, what), group in sorted(groups.items())
    ]
    everything = ["**all**", "", str(len(comparisons)), str(sum(it.exact for it in comparisons)),
                  percent(median(comparisons), sign=False), percent(worst(comparisons).percent),
                  f"`{worst(comparisons).row.id}`"]
    header = ["family", "what was read", "rows", "equal as printed", "median, without sign", "worst",
              "at"]
    return table(header, [*lines, everything], "llrrrrl")


def median(group):
    return statistics.median(abs(it.percent) for it in group)


def worst(group):
    return max(group, key=lambda it: abs(it.percent))


def percent(value, sign=True):
    if abs(value) < 0.005:
        return "0"
    return f"{value:+.2f} %" if sign else f"{value:.2f} %"


def mib(value, sign=False):
    return f"{value / 2**20:{'+' if sign else ''},.3f}"


def gaps(comparisons):
    """The rows that are not equal, by what explains them."""
    found = by([it for it in comparisons if not it.exact], lambda it: it.row.cause or "unexplained")
    lines = [
        [
            words, str(len(found[cause])),
            " to ".join(percent(end(it.percent for it in found[cause])) for end in (min, max)),
        ]
        for cause, words in causes.CAUSES.items()
        if cause in found
    ]
    return table(["cause", "rows", "errors"], lines, "lrr")


def constants(rows, runs):
    """What each series holds beside its workloads."""
    by_id = {row.id: row for row in rows}
    bases = list(dict.fromkeys(row.base for row in rows if row.base and row.job in runs))
    lines = []
    for name in bases:
        series = [row for row in rows if row.base == name]
        compared = [published.comparison(it, by_id[name], runs) for it in series if it.job in runs]
        exact = sum(it.exact for it in compared)
        lines.append([
            f"`{name}`", f"{by_id[name].source}, {by_id[name].workload.partition('.')[2]}",
            mib(published.constant(by_id[name], runs)), f"{exact} of {len(series)}",
        ])
    return table(["first row", "series", "MiB", "rows that it makes equal"], lines, "llrr")


def sources(rows, comparisons):
    told = published.sources()
    lines = []
    for source, group in by(comparisons, lambda it: it.row.source).items():
        it = told[source]
        environments = ", ".join(sorted({named(row.row.environment) for row in group}))
        lines.append([f"[{it['title']}]({it['url']})", str(len(group)), it["torch"], environments])
    return table(["source", "rows", "its PyTorch", "here"], lines, "lrll")


def named(environment):
    return environment.removeprefix("torch-") if environment != "main" else "2.11"


def every_row(comparisons):
    parts = []
    groups = by(comparisons, lambda it: (it.row.family, it.row.source))
    for (family, source), group in groups.items():
        lines = [
            [
                it.row.id, it.row.card, it.row.profile, named(it.row.environment), workload(it.row),
                it.row.quantity, f"{it.row.published} {it.row.unit}", ours(it),
                "=" if it.exact else f"{mib(it.error, sign=True)} MiB ({percent(it.percent)})",
                "" if it.exact else it.row.cause or "unexplained",
            ]
            for it in group
        ]
        header = ["row", "card", "virtual card", "PyTorch", "workload", "read", "published", "vramfit",
                  "difference", "cause"]
        parts.append(
            f"<details><summary>{family}, {source}: {len(group)} rows</summary>\n\n"
            f"{table(header, lines, 'llllllrrrl')}\n\n</details>"
        )
    return "\n\n".join(parts)


def ours(it):
    return f"{it.ours / published.UNITS[it.row.unit]:.{max(it.row.digits, 3)}f}"


def workload(row):
    values = ", ".join(f"{name} {value}" for name, value in json.loads(row.parameters).items())
    return f"{row.workload.partition('.')[2]}: {values}"


CARD = "allocated", "reserved", "context", "device"


def cards(folder):
    """What `vramfit gpu-check` found on real GPUs: one table for each file of the folder."""
    parts = []
    for path in sorted(folder.glob("*.json")):
        it = json.loads(path.read_text(encoding="utf-8"))
        if it["rehearsal"]:
            continue
        summary = it["summary"]
        lines = [
            [
                name, f"{summary[name]['exact']} of {summary['compared']}",
                percent(summary[name]["median_percent"], sign=False),
                percent(summary[name]["worst_percent"]),
            ]
            for name in CARD
            if summary.get(name)
        ]
        header = table(["peak", "exact", "median, without sign", "worst"], lines, "lrrr")
        parts.append(f"### {path.stem}\n\n{header}")
    return "\n\n".join(parts) or "None yet."


if __name__ == "__main__":
    write()
