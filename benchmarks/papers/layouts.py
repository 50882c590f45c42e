"""The tables and figures of the papers in their own layout: ours, and the printed figure beside it.

A layout says which rows of the results stand in it, what names a line and what a column. Sizes are
in numerical order. In each group of Table 2 of [YYTKW06] the best of ours is bold, and a star says
that it is better than every other by Wilcoxon's rank sum test (p < 0.01), as in the paper; that
needs the values of all splits, which older rows do not have.
"""

from collections.abc import Callable
from itertools import groupby
from typing import NamedTuple

from benchmarks.papers.published_yytkw06 import MARKED, METHODS
from scipy.stats import ranksums

LEVEL = 0.01
# As Markdown takes it.
STAR = r"\*"
MEASURES_3 = ("F1 macro", "F1 micro", "AUC")


class Layout(NamedTuple):
    """A title, the rows that it holds, a row's line and column; methods compared.

    A line has a number by which lines are in order, and a name.
    """

    title: str
    holds: Callable
    line: Callable
    column: Callable
    compared: tuple = ()


def of(table, measure=None, **fixed):
    """Whether a row is of this table, measure and data."""

    def holds(row):
        same = all(row[name] == value for name, value in fixed.items())
        return row["table"] == table and measure in (None, row["measure"]) and same

    return holds


def by_data(row):
    return 0, row["data"]


def by_method(row):
    return 0, row["method"]


def printed(row):
    return row["method"] in METHODS


def yytkw06():
    for size in (5, 10, 20):
        holds = of("Table 2", "error")
        yield Layout(
            f"Table 2, K = {size}: error of the nearest neighbour",
            lambda row, q=size, h=holds: h(row) and printed(row) and row["size"] in (0, q),
            by_data,
            lambda row: row["method"],
            METHODS,
        )
    yield Layout(
        "Table 3: several labels",
        lambda row: of("Table 3")(row) and printed(row) and row["measure"] in MEASURES_3,
        lambda row: (row["size"], f"{row['size']}, {row['method']}".removeprefix("0, ")),
        lambda row: f"{row['data']}, {row['measure']}",
    )


def lyz09():
    by_size = {"line": by_data, "column": lambda row: row["size"]}
    yield Layout("Figure 2: accuracy after steps of EM", of("Figure 2"), **by_size)
    yield Layout("Footnote 3: accuracy by alpha (gamma = 1e-6)", of("alpha"), **by_size)
    yield Layout("Remark 1: accuracy by gamma (alpha = 1)", of("gamma"), **by_size)
    yield Layout(
        "Figure 4: accuracy by the number of components",
        of("Figure 4"),
        lambda row: (0, f"{row['data']}, {row['method']}"),
        lambda row: row["size"],
    )
    yield Layout(
        "Figure 5: accuracy at q = 50",
        of("Figure 5"),
        by_method,
        lambda row: row["data"],
    )
    yield Layout(
        "Table 3: area under the curve, the books",
        of("Table 3"),
        by_method,
        lambda row: row["measure"],
    )


def g13():
    yield Layout(
        "Table II: accuracy",
        of("Table II"),
        lambda row: (row["size"], f"R = {row['size']}, {row['method']}"),
        lambda row: row["data"],
    )
    yield Layout(
        "Table III: accuracy by training rows of each class",
        of("Table III"),
        by_method,
        lambda row: row["size"],
    )
    yield Layout(
        "Table IV, on Isolet: accuracy and average precision",
        of("Table IV"),
        by_method,
        lambda row: f"{row['measure']}, R = {row['size']}" if row["size"] else row["measure"],
    )
    for name, figure in (("MNP accuracy", "Figure 2"), ("5-NN accuracy", "Figure 3")):
        for data in ("vowel_vj", "mfeat", "usps"):
            yield Layout(
                f"{figure}, {data}: {name} by R",
                of("Figure 2", name, data=data),
                by_method,
                lambda row: row["size"] or "all features",
            )
    yield Layout(
        "Figure 7: steps to within one per cent of the gain of the bound",
        of("Figure 7", "steps"),
        by_method,
        lambda row: f"R = {row['size']}",
    )


LAYOUTS = {"YYTKW06": yytkw06, "LYZ09": lyz09, "G13": g13}


def drawn(paper, rows):
    """All layouts of a paper that hold rows, as Markdown."""
    parts = []
    for layout in LAYOUTS[paper]():
        held = [row for row in rows if layout.holds(row)]
        if held:
            title = f"### {layout.title} ({splits(held)})"
            parts.append(f"{title}\n\n{grid(held, layout)}\n\n")
    return "".join(parts)


def splits(rows):
    """How many splits the cells are means of."""
    least, most = (pick(row["repeats"] for row in rows) for pick in (min, max))
    word = "split" if most == 1 else "splits"
    return f"{most} {word}" if least == most else f"{least} to {most} {word}"


def grid(rows, layout):
    """One layout as a table: a line for each name of a line, a column for each name of a column."""
    rows = sorted(rows, key=lambda row: (float(row["size"]), order(row, layout)))
    columns = list(dict.fromkeys(layout.column(row) for row in rows))
    if layout.compared:
        columns = [name for name in layout.compared if name in columns]
    lines = [f"| | {' | '.join(map(str, columns))} |", "|---" * (1 + len(columns)) + "|"]
    for (_, name), group in groupby(sorted(rows, key=layout.line), key=layout.line):
        own = {layout.column(row): row for row in group}
        best = leading(own) if layout.compared else None
        cells = [cell(own.get(column), column == best) for column in columns]
        mark = f" {STAR}" if best and is_marked(own, best) else ""
        lines.append(f"| {name}{mark} | {' | '.join(cells)} |")
    return "\n".join(lines)


def order(row, layout):
    return str(layout.column(row))


def cell(row, is_best):
    """Ours, the printed one in brackets; a star for the paper's own mark."""
    if row is None:
        return ""
    ours = f"{row['ours']:.3f}" if row["ours"] < 10 else f"{row['ours']:.0f}"
    text = f"**{ours}**" if is_best else ours
    if "paper" in row:
        mark = STAR if (row["data"], row["method"], row["size"]) in MARKED else ""
        text += f" [{row['paper']:.3f}{mark}]"
    return text


def leading(own):
    """The method with the lowest error, all features apart, as in the paper."""
    reduced = {name: row for name, row in own.items() if row["size"]}
    return min(reduced, key=lambda name: reduced[name]["ours"])


def is_marked(own, best):
    """Whether the best is better than each other projection by the rank sum test."""
    others = [row for name, row in own.items() if row["size"] and name != best]
    if not all("values" in row for row in (own[best], *others)):
        return False
    pairs = [(own[best]["values"], row["values"]) for row in others]
    return all(ranksums(a, b).pvalue < LEVEL for a, b in pairs)


def confusion_tables(found):
    """The confusion matrices of Figures 4 and 5: rows are true classes, sums over the splits."""
    parts = []
    for name in ("vowel_vj, MMDA, 2", "vowel_vj, BSDR, 2", "mfeat, MCML, 2", "mfeat, BSDR, 2"):
        if name in found:
            parts.append(f"#### {name}, {found[name]['repeats']} splits\n\n{matrix(found[name])}")
    return "\n\n".join(parts)


def matrix(table):
    """Shares of each true class in per cent."""
    size = range(1, len(table["sum"]) + 1)
    lines = [f"| | {' | '.join(map(str, size))} |", "|---" * (1 + len(table["sum"])) + "|"]
    for c, row in zip(size, table["sum"], strict=True):
        cells = [f"{100 * count / sum(row):.0f}" if count else "" for count in row]
        lines.append(f"| {c} | {' | '.join(cells)} |")
    return "\n".join(lines)
