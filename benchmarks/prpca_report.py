"""The page of results of prpca_accuracy.py, from the figures that it has stored.

python benchmarks/prpca_report.py
"""

import json
from pathlib import Path

import numpy as np

RESULTS = Path(__file__).parent / "results"
STORE, PAGE = RESULTS / "prpca_accuracy.json", RESULTS / "prpca_accuracy.md"
TRAINING_ROWS = {"cora_ha": 286, "cora_ds": 767, "webkb_cornell": 669}


def stored():
    return json.loads(STORE.read_text()) if STORE.exists() else {}


def keep(done):
    RESULTS.mkdir(exist_ok=True)
    STORE.write_text(json.dumps(done, indent=1) + "\n")


def table(head, rows):
    """Lines of a table."""
    cells = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(map(str, row)) + " |" for row in cells]


def accuracy_cells(cells):
    """Means and deviations, the highest mean in bold."""
    top = max(mean for mean, _ in cells)
    return [f"**{m:.3f}** ± {s:.3f}" if m == top else f"{m:.3f} ± {s:.3f}" for m, s in cells]


def of_tables(done):
    sets = done["citations"] | done["web"]
    rows = [
        [name, f"{row['majority']:.3f}", *accuracy_cells(row["cells"])]
        for name, row in sets.items()
    ]
    return [
        "## 5-fold, 5 repeats, q = 50 (links alone: 20)",
        "",
        *table(["set", "majority", *done["columns"]], rows),
        "",
        "The highest mean of a row is bold; differences below .01 are none.",
    ]


def of_labels(done):
    found = done["labels"] | done["scale"]
    rows = [
        [column, *(f"{m:.3f} ± {s:.3f}" for m, s in (found[f"{column}|{q}"] for q in (20, 50)))]
        for column in dict.fromkeys(key.split("|")[0] for key in found)
    ]
    return [
        "## cora, 20 labels a class, 10 splits, rows of unit length, C = 1",
        "",
        *table(["", "q = 20", "q = 50"], rows),
    ]


def spread(values):
    """Mean and its standard error."""
    return f"{np.mean(values):+.2f} ± {np.std(values, ddof=1) / np.sqrt(len(values)):.2f}"


def heldout_row(key, gains, plain, moved):
    name, q, r = key.split("|")
    per_axis = TRAINING_ROWS[name] / (int(q) + int(r))
    limits = f"{min(gains):+.2f} to {max(gains):+.2f}"
    permuted = f"{moved[0]:+.2f}, {'yes' if moved[1] else 'no'}"
    return [name, q, r, f"{per_axis:.0f}", spread(gains), limits, spread(plain), permuted]


def of_heldout(done):
    head = "set", "q", "own", "rows per axis", "gain", "range", "25 plain rounds"
    return [
        "## Content of 20 % held-out nodes, nats per node over PPCA of equal size",
        "",
        done["heldout"]["splits"],
        "",
        *table(
            [*head, "links permuted: gain, used"],
            [heldout_row(key, *found) for key, found in done["heldout"]["cells"].items()],
        ),
    ]


def of_rewired(done):
    gains, used, lost = map(np.array, zip(*done["rewired"], strict=True))
    return [
        "## cora_ha with its nodes permuted, 20 times (q = 10, own 10)",
        "",
        f"Links used in {used.sum()} of {len(used)}; held-out likelihood less PPCA's "
        f"{gains.min():+.4f} to {gains.max():+.4f} nats per node; accuracy less PCA's "
        f"{lost.min():+.3f} to {lost.max():+.3f}, mean {lost.mean():+.3f}.",
    ]


PARTS = {
    of_tables: {"citations", "web"},
    of_labels: {"labels", "scale"},
    of_heldout: {"heldout"},
    of_rewired: {"rewired"},
}


def days(done):
    """When each part was measured, which may be before the last run."""
    found = ", ".join(f"{part} {day}" for part, day in sorted(done.get("days", {}).items()))
    return f"Measured on: {found}." if found else ""


def report(done):
    """All parts whose figures are there."""
    lines = ["# PRPCA: accuracy and held-out likelihood", ""]
    lines += [f"`python benchmarks/prpca_accuracy.py`; {done['machine']}.", days(done), ""]
    lines += [done["protocol"]]
    for part, needs in PARTS.items():
        if needs <= set(done):
            lines += ["", *part(done)]
    return "\n".join(lines) + "\n"


def write(done):
    PAGE.write_text(report(done))


if __name__ == "__main__":
    if figures := stored():
        write(figures)
