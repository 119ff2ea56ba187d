"""Words the comparison of modelled with published rates: the part on speed of docs/accuracy.md."""

import rates as published
from tables import by, table

# Rates without a run that are named one by one.
LISTED = 20
SPLITS = {"fit": "fitted", "test": "held back"}


def parts(rates, runs):
    """What stands for the names in braces of page.md."""
    compared = published.compare(rates, runs)
    return {
        "speed-count": str(len(compared)),
        "speed-sources": grouped(compared, "source", lambda it: link(it.rate.source)),
        "speed-cards": grouped(compared, "card", lambda it: it.rate.profile),
        "speed-families": grouped(compared, "family", lambda it: it.rate.family),
        "speed-rows": every_row(compared),
        "speed-missing": missing(rates, runs),
    }


def link(source):
    told = published.sources()[source]
    return f"[{told['title']}]({told['url']})"


def grouped(compared, what, key):
    """One line for each group and one for all: errors and ranking of fitted and held back rates apart."""
    if not compared:
        return "None yet."
    lines = [[name, *figures(group)] for name, group in sorted(by(compared, key).items())]
    header = [what]
    for words in SPLITS.values():
        header += [words, "median error", "ranked right"]
    return table(header, [*lines, ["**all**", *figures(compared)]], "l" + "rrr" * len(SPLITS))


def figures(group):
    cells = []
    for split in SPLITS:
        members = [it for it in group if it.rate.split == split]
        error = f"{published.median_error(members):.1f} %" if members else ""
        right, total = published.ranked(members)
        cells += [str(len(members)), error, share(right, total)]
    return cells


def share(right, total):
    return f"{100 * right / total:.0f} % of {total}" if total else ""


def every_row(compared):
    parts = []
    for (source, profile), group in by(compared, lambda it: (it.rate.source, it.rate.profile)).items():
        lines = [line(it) for it in sorted(group, key=lambda it: it.rate.family)]
        header = ["family", "model", "input", "batch", "numbers", "layout", "published", "vramfit",
                  "time to published", "", "note"]
        parts.append(
            f"<details><summary>{profile}, {source}: {len(group)} rates</summary>\n\n"
            f"{table(header, lines, 'llrrllrrrll')}\n\n</details>"
        )
    return "\n\n".join(parts) or "None yet."


def line(it):
    rate = it.rate
    compiled = ", compiled" if rate.compiled == "yes" else ""
    return [
        rate.family, rate.model, rate.input, rate.batch, rate.precision + compiled, rate.layout,
        f"{it.published:g} {rate.quantity}", number(it.modelled), f"{it.ratio:.2f}",
        SPLITS[rate.split], rate.note,
    ]


def number(value):
    """Three digits: the model knows no more."""
    digits = max(0, 2 - len(str(int(value))) + 1)
    return f"{value:.{digits}f}"


def missing(rates, runs):
    """The rates that could not be compared, if any."""
    names = [rate.id for rate in rates if not runs.get(rate.id, {}).get("ms")]
    if not names:
        return ""
    if len(names) == len(rates):
        return f"None of {len(rates)} rates was run yet."
    if len(names) > LISTED:
        return f"Not compared: {len(names)} of {len(rates)}."
    return f"Not compared, {len(names)}: " + ", ".join(f"`{name}`" for name in names) + "."
