"""Numbers and tables in Markdown."""


def seconds(value):
    return f"{value:.2f} s" if value >= 1 else f"{1e3 * value:.3g} ms"


def percent(value):
    return f"{100 * value:.1f} %"


def mib(value):
    return f"{value / 2**20:.0f} MiB"


def gib(value):
    return f"{value / 2**30:.1f} GiB"


def table(header, rows, alignment):
    """A Markdown table; `alignment` has an l or an r for each column."""
    cells = [header, *rows]
    widths = [max(3, *(len(row[column]) for row in cells)) for column in range(len(header))]
    pad = lambda text, column: (str.ljust if alignment[column] == "l" else str.rjust)(text, widths[column])
    line = lambda row: "| " + " | ".join(pad(text, column) for column, text in enumerate(row)) + " |"
    rule = "|".join(
        "-" * (width + 1) + (":" if side == "r" else "-") for width, side in zip(widths, alignment)
    )
    return "\n".join([line(header), f"|{rule}|", *map(line, rows)]) + "\n"
