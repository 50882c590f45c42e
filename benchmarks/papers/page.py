"""Write the pages of docs/reproduction from the committed results, one for each paper.

python -m benchmarks.papers.page
"""

import json
import re
from pathlib import Path

from benchmarks.papers import facts, layouts
from benchmarks.papers.cells import KEY, RESULTS
from benchmarks.papers.verdicts import (
    REASONS,
    VERDICTS,
    by_place,
    counts,
    reason,
    tally,
    verdict,
)

LAYOUT_NOTE = "Ours, and in square brackets the printed figure where there is one.\n\n"
CONFUSION_NOTE = (
    "### Confusion matrices of Figures 4 and 5\n\nPer cent of each true class (lines), over the "
    "splits.\n\n"
)
PAGES = Path(__file__).parents[2] / "docs" / "reproduction"
TEXTS = Path(__file__).parent / "texts"
# What the benchmarks of the models themselves measured by the protocols of their papers.
OTHERS = {"LYZ09": "prpca_accuracy.md", "PGK07": "dcagm_accuracy.md"}
# The papers, with the titles of their pages.
PAPERS = {
    "YYTKW06": "SPPCA and S²PPCA",
    "LYZ09": "PRPCA",
    "PGK07": "DCA-GM and SDCA-GM",
    "G13": "BSDR",
}


def cell(mean, sd):
    return f"{mean:.3f}" + (f" ({sd:.3f})" if sd else "")


def compared(row):
    """Paper, ours and difference of a row, as cells of a table."""
    paper = cell(row["paper"], row["paper_sd"]) if "paper" in row else ""
    difference = f"{row['difference']:+.3f}" if "paper" in row else ""
    return f"{paper} | {cell(row['ours'], row['sd'])} | {difference} | {row['repeats']}"


def table(rows):
    """All rows of one data set, with those of the rivals and of the variants."""
    lines = ["| size | method | measure | paper | ours | difference | repeats | |"]
    lines.append("|---|---|---|---|---|---|---|---|")
    for row in rows:
        start = f"| {row['size'] or ''} | {row['method']} | {row['measure']} "
        lines.append(f"{start}| {compared(row)} | {verdict(row)} |")
    return "\n".join(lines)


def own_table(rows):
    """The rows that have a verdict, with the cause of what is worse."""
    index = by_place(rows)
    lines = ["| | data | method | size | measure | paper | ours | difference | repeats | | cause |"]
    lines.append("|---|---|---|---|---|---|---|---|---|---|---|")
    for row in sorted(rows, key=lambda row: (row["table"], row["data"], row["size"])):
        if result := verdict(row):
            why = reason(row, index)[1] if result == "worse" else ""
            why = why if counts(row) else "another task, does not count"
            start = f"| {row['table']} | {row['data']} | {row['method']} | {row['size']} "
            lines.append(f"{start}| {row['measure']} | {compared(row)} | {result} | {why} |")
    return "\n".join(lines)


def summary_table(summaries):
    heads = " | ".join((*VERDICTS, *REASONS))
    lines = [f"| paper | method | figures | {heads} |", "|---" * (6 + len(REASONS)) + "|"]
    for summary in summaries:
        for method, found in tally(summary["rows"]).items():
            figures = sum(found[v] for v in VERDICTS)
            numbers = " | ".join(str(found[v]) for v in (*VERDICTS, *REASONS))
            lines.append(f"| [{summary['paper']}] | {method} | {figures} | {numbers} |")
    return "\n".join(lines)


def hours(summary):
    """The time that the cells of a paper took, as far as it was recorded."""
    cells = {tuple(row[part] for part in KEY[:-1]): row for row in summary["rows"]}.values()
    timed = [row["seconds"] * row["repeats"] for row in cells if "seconds" in row]
    least = "" if len(timed) == len(cells) else "more than "
    return f"{least}{sum(timed) / 3600:.1f} h for [{summary['paper']}]"


def folded(title, text):
    """A part that the reader opens."""
    return f"<details>\n<summary>{title}</summary>\n\n{text}\n\n</details>\n\n"


def circumstances(summary):
    versions = ", ".join(f"{name} {number}" for name, number in summary["versions"].items())
    return f"{summary['date']}, {summary['machine']}, {versions}; {summary['seed']}."


def details(rows):
    """Every row that was measured, folded by table and data set."""
    text = ""
    for name in sorted({row["table"] for row in rows}, key=lambda t: (t.startswith("Figure"), t)):
        for data in sorted({row["data"] for row in rows if row["table"] == name}):
            part = [row for row in rows if (row["table"], row["data"]) == (name, data)]
            part.sort(key=lambda row: (row["size"], row["measure"], row["method"]))
            text += folded(f"{name}, {data}: all methods ({len(part)} rows)", table(part))
    return text


def protocol(summary):
    lines = [f"* {name}: {note}" for name, note in summary["notes"].items()]
    for title in ("failed", "skipped"):
        reasons = {f"{_group(key)}: {reason}" for key, reason in summary[title].items()}
        lines += [f"* {title}: {reason}" for reason in sorted(reasons)]
    return "\n".join(lines)


def _group(key):
    parts = key.split(", ")
    return ", ".join(parts[:3]) if len(parts) > 3 else key


def title(paper):
    return f"# {PAPERS[paper]} [{paper}]\n\n"


def counted(rows):
    """The counts of verdicts, by the rule of the index, as the head of a page."""
    found = tally(rows).items()
    parts = [f"{m} {', '.join(f'{own[v]} {v}' for v in VERDICTS)}" for m, own in found]
    return f"**Printed figures and ours:** {'; '.join(parts)}.\n\n" if parts else ""


def section(summary):
    """The page of a paper."""
    rows, paper = summary["rows"], summary["paper"]
    text = title(paper) + f"{counted(rows)}{circumstances(summary)}\n\n"
    found = getattr(facts, paper.lower())(rows)
    text += (TEXTS / f"{paper}.md").read_text().format(**found).strip() + "\n\n"
    text += "## In the paper's layout\n\n" + LAYOUT_NOTE + layouts.drawn(paper, rows)
    if summary.get("confusions"):
        text += CONFUSION_NOTE + layouts.confusion_tables(summary["confusions"]) + "\n\n"
    if any(map(verdict, rows)):
        text += f"## The paper's own methods, with verdicts\n\n{own_table(rows)}\n\n"
    text += f"## Data and protocol\n\n{protocol(summary)}\n\n"
    return text + "## Every row\n\n" + details(rows) + others(paper)


def others(paper):
    """The committed results of another benchmark of this paper, a level of headings down."""
    path = RESULTS.parent / OTHERS.get(paper, "none")
    if not path.exists():
        return ""
    text = re.sub(r"(^|\n)(#+ )", r"\1#\2", path.read_text().strip())
    return text + "\n\n"


def written():
    """The pages: name to text."""
    paths = {name: RESULTS / f"{name}.json" for name in PAPERS}
    stored = {name: json.loads(p.read_text()) for name, p in paths.items() if p.exists()}
    pages = {paper.lower(): section(summary) for paper, summary in stored.items()}
    alone = title("PGK07") + (TEXTS / "PGK07.md").read_text() + "\n" + others("PGK07")
    pages.setdefault("pgk07", alone)
    times = ", ".join(hours(summary) for summary in stored.values())
    head = (TEXTS / "head.md").read_text()
    pages["index"] = head.format(summary=summary_table(stored.values()), hours=times)
    return pages


def main():
    for name, text in written().items():
        (PAGES / f"{name}.md").write_text(text.rstrip() + "\n")


if __name__ == "__main__":
    main()
