"""Maps and pictures of 27 tasks with few labels, beside their peers, and by kinds of data.

Some rows of each class have their label, and all rows take part in the fit, as in [YYTKW06]. A map
of five dimensions and a picture of two are judged by the nearest labelled row of each row without
a label, predictions on the same rows. PCA, LDA (with Ledoit and Wolf's shrinkage) and PLS work on
the 150 leading principal components, logistic regression on 20. UMAP sees the rows as they are,
once without labels and once with them; the layout is that of SPPCA's ten coordinates.

    GNOMON_DATA=folder python benchmarks/maps.py --repeats 10 --keep kept

Finished repeats are kept in a folder, so that a run that was stopped goes on; ``--tables`` writes
the tables from what is there, and leaves that of a part of which nothing is there. Pictures need
the extra "umap".
"""

import argparse
import json
import re
import warnings
from itertools import product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import supervision_sets as sets
from gnomon import SPPCA, KernelSPPCA, NeighbourLayout
from neighbours import LABELS, LEFT, SETS
from supervision import coordinates, draw_labels, error, lda, pls

import measure

# What the rows of each set are; yale to yaleb are faces.
KINDS = {
    "faces": ("yale", "orl", "pie10", "yaleb"),
    "genes": ("tumors11", "lung"),
    "text": ("tdt2",),
    "images of digits": ("digits", "usps", "mfeat"),
    "speech": ("isolet", "vowel"),
    "tables": ("wine", "breast", "ionosphere"),
}
SIZE = 5
# Coordinates of the map that is laid out.
LAID_OUT = 10
NEAREST = {"links": "neighbours"}
MAPS = ("PCA", "SPPCA", "SPPCA, nearest rows", "KernelSPPCA", "LDA", "PLS")
PICTURES = (
    *("PCA in 2", "SPPCA in 2", "SPPCA in 2, nearest rows", "layout"),
    *("UMAP", "UMAP with labels"),
)
PREDICTED = ("SPPCA predicts", "logistic regression")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--first", type=int, default=1300, help="seed of the first repeat")
    parser.add_argument("--keep", type=Path, default=Path("kept"), help="folder of what is done")
    parser.add_argument("--parts", nargs="*", default=list(PARTS), choices=PARTS)
    parser.add_argument("--tables", action="store_true", help="only write the tables")
    options = parser.parse_args()
    if measure.data_folder() is None:
        return
    options.keep.mkdir(exist_ok=True)
    seeds = range(options.first, options.first + options.repeats)
    if not options.tables:
        for seed in seeds:
            for part, name in product(options.parts, SETS):
                run_set(part, name, seed, options.keep)
    write_tables({part: read_kept(part, seeds, options.keep) for part in PARTS})


def run_set(part, name, seed, keep):
    """The errors of the methods of a part, for each number of labels, into a file of their own."""
    path = keep / f"{part}_{name}_{seed}.json"
    if path.exists():
        return
    X, y, _ = sets.read(name)
    rows = Rows(X, coordinates(X), y, umap(X, seed) if part == "pictures" else None)
    found = {}
    for labels in LABELS:
        if np.bincount(y).min() >= LEFT * (labels + 1):
            known = draw_labels(y, labels, np.random.default_rng(seed))
            with warnings.catch_warnings(action="ignore"):
                found[labels] = PARTS[part](rows, known, seed)
    path.write_text(json.dumps(found), encoding="utf-8")
    print(name, seed, found, flush=True)


class Rows(NamedTuple):
    """Rows, their principal components, their classes, and UMAP's picture of them."""

    X: Any
    F: np.ndarray
    y: np.ndarray
    picture: np.ndarray | None


def umap(X, seed, codes=None):
    from umap import UMAP

    # Its neighbour search knows SciPy's sparse matrices only.
    X = sparse.csr_matrix(X) if sparse.issparse(X) else X
    with warnings.catch_warnings(action="ignore"):
        return UMAP(random_state=seed, n_jobs=1).fit_transform(X, codes)


def map_errors(rows, known, seed):
    """On maps of five dimensions, and of predictions, for one draw of labels."""
    X, F, y, _ = rows
    codes = np.where(known, y, -1)
    model = SPPCA(SIZE).fit(X, codes)
    maps = {
        "PCA": F[:, :SIZE],
        "SPPCA": model.transform(X),
        "SPPCA, nearest rows": SPPCA(SIZE).fit_transform(X, codes, **NEAREST),
        "KernelSPPCA": KernelSPPCA(SIZE).fit(X, codes).transform(X),
        "LDA": lda(F, y, known, SIZE),
        "PLS": pls(F, y, known, SIZE),
    }
    logistic = make_pipeline(StandardScaler(), LogisticRegression(max_iter=1000))
    logistic.fit(F[known, :20], y[known])
    return judged(maps, y, known) | {
        "SPPCA predicts": 1 - model.score(X[~known], y[~known]),
        "logistic regression": 1 - logistic.score(F[~known, :20], y[~known]),
    }


def picture_errors(rows, known, seed):
    """In the plane, for one draw of labels."""
    X, F, y, plain = rows
    codes = np.where(known, y, -1)
    ten = SPPCA(min(LAID_OUT, X.shape[1])).fit(X, codes).transform(X)
    maps = {
        "PCA in 2": F[:, :2],
        "SPPCA in 2": SPPCA(2).fit(X, codes).transform(X),
        "SPPCA in 2, nearest rows": SPPCA(2).fit_transform(X, codes, **NEAREST),
        "layout": NeighbourLayout().fit_transform(ten),
        "UMAP": plain,
        "UMAP with labels": umap(X, seed, codes),
    }
    return judged(maps, y, known)


def judged(maps, y, known):
    return {name: error(np.asarray(T, dtype=float), y, known) for name, T in maps.items()}


PARTS = {"maps": map_errors, "pictures": picture_errors}


def read_kept(part, seeds, keep):
    """For each task the mean errors by method, the seeds that all tasks have, and that it is new.

    Where no seed is whole, those of the last table.
    """
    whole = [s for s in seeds if all((keep / f"{part}_{name}_{s}.json").exists() for name in SETS)]
    if not whole:
        return read_table(part)
    tasks = {}
    for name in SETS:
        runs = [json.loads((keep / f"{part}_{name}_{s}.json").read_text("utf-8")) for s in whole]
        for labels in runs[0]:
            cells = [run[labels] for run in runs]
            means = {method: np.mean([cell[method] for cell in cells]) for method in cells[0]}
            tasks[name, labels] = means
    return tasks, f"{len(whole)} draws of labels, seeds {whole[0]} to {whole[-1]}", True


def read_table(part):
    """The tasks of the table that was written last, and what it says of its draws."""
    record = json.loads((measure.RESULTS / f"{part}.json").read_text("utf-8"))
    methods, tasks = record["header"][1:], {}
    for name, *cells in record["rows"]:
        if ", " in name:
            tasks[tuple(name.split(", "))] = dict(zip(methods, map(float, cells), strict=True))
    notes = (measure.RESULTS / f"{part}.md").read_text("utf-8")
    return tasks, re.search(r"\d+ draws of labels, seeds \d+ to \d+", notes)[0], False


def write_tables(kept):
    (maps, of_maps, new_maps), (pictures, of_pictures, new_pictures) = (
        kept["maps"],
        kept["pictures"],
    )
    title = "Error of the nearest labelled row"
    if new_maps:
        title_of_maps = f"{title} on maps of {SIZE} dimensions, and that of predictions"
        by_task("maps", title_of_maps, (*MAPS, *PREDICTED), maps, of_maps)
    if new_pictures:
        by_task("pictures", f"{title} in the plane", PICTURES, pictures, of_pictures)
    both = {key: maps[key] | pictures[key] for key in maps}
    by_kind(both, f"Maps and predictions: {of_maps}; pictures: {of_pictures}.")


def by_task(name, title, methods, tasks, note):
    cells = np.array([[task[method] for method in methods] for task in tasks.values()])
    rows = [
        [f"{key[0]}, {key[1]}", *(f"{v:.3f}" for v in row)]
        for key, row in zip(tasks, cells, strict=True)
    ]
    rows.append(["mean", *(f"{v:.3f}" for v in cells.mean(axis=0))])
    rows.append(["median", *(f"{v:.3f}" for v in np.median(cells, axis=0))])
    peer = methods.index("UMAP" if "UMAP" in methods else "PCA")
    gaps = cells - cells[:, [peer]]
    rows.append([f"mean gap to {methods[peer]}", *(f"{v:+.3f}" for v in gaps.mean(axis=0))])
    rows.append([f"largest gap to {methods[peer]}", *(f"{v:+.3f}" for v in gaps.max(axis=0))])
    ahead = (cells.round(3) < cells[:, [peer]].round(3)).sum(axis=0)
    rows.append([f"tasks ahead of {methods[peer]}", *(f"{v} of {len(cells)}" for v in ahead)])
    notes = [f"{note}; all rows take part."]
    measure.write(name, title, ["set, labels a class", *methods], rows, notes)


def by_kind(tasks, note):
    """Medians over the tasks of a kind, and its worst task for SPPCA beside PCA."""
    methods = ("PCA", "SPPCA", "LDA", "PLS", "layout", "UMAP", "UMAP with labels", *PREDICTED)
    rows = [
        kind_row(kind, [task for (name, _), task in tasks.items() if name in names], methods)
        for kind, names in KINDS.items()
    ]
    rows.append(kind_row("all", list(tasks.values()), methods))
    heads = [f"{method}, median" for method in methods]
    worst = ["SPPCA less PCA, worst", "layout less UMAP, worst", "SPPCA less logistic, worst"]
    measure.write(
        "kinds",
        "Errors with 2, 5 and 20 labels a class, by kinds of data",
        ["kind", "tasks", *heads, *worst],
        rows,
        [
            note,
            f"PCA, SPPCA, LDA, PLS: nearest labelled row on a map of {SIZE}; layout and UMAP: in "
            "the plane; the last two medians: predictions. A worst case is that of one task.",
        ],
    )


def kind_row(kind, cells, methods):
    medians = [f"{np.median([cell[method] for cell in cells]):.3f}" for method in methods]
    pairs = (("SPPCA", "PCA"), ("layout", "UMAP"), PREDICTED)
    worst = [f"{max(cell[ours] - cell[peer] for cell in cells):+.3f}" for ours, peer in pairs]
    return [kind, str(len(cells)), *medians, *worst]


if __name__ == "__main__":
    main()
