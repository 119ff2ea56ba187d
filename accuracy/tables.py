"""Tables of the page."""


def table(header, lines, align):
    rule = ["---:" if side == "r" else "---" for side in align]
    return "\n".join("| " + " | ".join(cells) + " |" for cells in [header, rule, *lines])


def by(items, key):
    found = {}
    for it in items:
        found.setdefault(key(it), []).append(it)
    return found
