"""DCA-GM and SDCA-GM by the protocol of [PGK07], and what chunks add.

Run as ``python -m benchmarks.dcagm_accuracy [n_splits] [set ...]`` with GNOMON_DATA set; adds to
results/dcagm_accuracy.json and writes the .md. A fifth of the rows is labelled, q = 2 (isolet:
3740 rows, 30 principal components, q = 5); accuracy on the other rows by the nearest labelled
neighbour in the components and, for DCAGM, by its own posterior. SDCA-GM sees the other rows
without labels.
"""

import json
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from benchmarks.baselines.relevant import LDARCA
from benchmarks.measure import describe
from benchmarks.papers.data import MissingDataError, load
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier, NeighborhoodComponentsAnalysis
from sklearn.preprocessing import StandardScaler

from gnomon import DCAGM

RESULTS = Path(__file__).parent / "results"
SEED = 2007
SETS = ("iris", "wine", "balance", "ionosphere", "housing", "isolet")
METHODS = ("PCA", "LDA", "LDA+RCA", "NCA", "DCA-GM", "SDCA-GM")


def prepared(name):
    """Rows in standard units, labels, number of components, options of DCAGM."""
    data = load(name)
    X, y = data["X"], data["y"].astype(int)
    if name != "isolet":
        return StandardScaler().fit_transform(X), y, 2, {}
    kept = np.sort(np.random.default_rng(0).choice(len(X), 3740, replace=False))
    X = PCA(30, svd_solver="full").fit_transform(StandardScaler().fit_transform(X[kept]))
    # Principal components carry their importance in their scale, which must stay.
    return X, y[kept], 5, {"standardize": False}


def projected(method, X, y, train, q, options):
    """Coordinates of all rows, and predictions of all rows where the method has its own."""
    if method == "SDCA-GM":
        codes = np.full(len(y), -1)
        codes[train] = y[train]
        model = DCAGM(q, **options).fit(X, codes)
        return model.transform(X), model.predict(X)
    if method == "DCA-GM":
        model = DCAGM(q, **options).fit(X[train], y[train])
        return model.transform(X), model.predict(X)
    if method == "PCA":
        return PCA(q).fit(X[train]).transform(X), None
    if method == "LDA":
        size = min(q, len(np.unique(y)) - 1)
        return LinearDiscriminantAnalysis(n_components=size).fit(X[train], y[train]).transform(
            X
        ), None
    if method == "LDA+RCA":
        return LDARCA(q).fit(X[train], y[train]).transform(X), None
    model = NeighborhoodComponentsAnalysis(q, random_state=0)
    return model.fit(X[train], y[train]).transform(X), None


def accuracies(method, X, y, train, test, q, options):
    Z, own = projected(method, X, y, train, q, options)
    nearest = KNeighborsClassifier(1).fit(Z[train], y[train]).score(Z[test], y[test])
    posterior = np.nan if own is None else np.mean(own[test] == y[test])
    return 100 * nearest, 100 * posterior


def protocol(name, n_splits):
    """Per method: accuracies (n_splits, 2) and seconds in all."""
    X, y, q, options = prepared(name)
    splits = list(StratifiedShuffleSplit(n_splits, train_size=0.2, random_state=SEED).split(X, y))
    out = {}
    for method in METHODS:
        start = time.process_time()
        values = [accuracies(method, X, y, train, test, q, options) for train, test in splits]
        out[method] = {"values": values, "seconds": time.process_time() - start}
        print(name, method, np.mean(values, axis=0).round(1), flush=True)
    return out


def with_chunks(name, n_splits):
    """Posterior accuracy without chunks, with chunks in EM only, and in the objective too.

    A tenth is labelled; half of the rest is in chunks of four of one class, unlabelled; the
    other half is unlabelled and tested.
    """
    X, y, q, options = prepared(name)
    out = []
    for split in range(n_splits):
        rng = np.random.default_rng((SEED, split))
        splitter = StratifiedShuffleSplit(1, train_size=0.1, random_state=SEED + split)
        train, rest = next(splitter.split(X, y))
        rest = rng.permutation(rest)
        inside, tested = rest[: len(rest) // 2], rest[len(rest) // 2 :]
        chunks, codes = np.full(len(y), -1), np.full(len(y), -1)
        codes[train] = y[train]
        for c in np.unique(y):
            own = inside[y[inside] == c]
            chunks[own] = c * len(y) + np.arange(len(own)) // 4
        fits = (
            DCAGM(q, **options).fit(X, codes),
            DCAGM(q, chunk_weight=0.0, **options).fit(X, codes, chunks=chunks),
            DCAGM(q, **options).fit(X, codes, chunks=chunks),
        )
        out.append([100 * model.score(X[tested], y[tested]) for model in fits])
    print(name, "chunks", np.mean(out, axis=0).round(1), flush=True)
    return out


def summary(values):
    values = np.asarray(values, dtype=float)
    return values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(len(values))


def ranks(results):
    """Average rank over the sets by nearest neighbour, 1 is best."""
    table = np.array([[summary(r[m]["values"])[0][0] for m in METHODS] for r in results.values()])
    order = (-table[:, :, None] < -table[:, None, :]).sum(axis=1)
    ties = (table[:, :, None] == table[:, None, :]).sum(axis=1) - 1
    return (order + ties / 2 + 1).mean(axis=0)


def report(results, chunked):
    counts = {name: len(result["PCA"]["values"]) for name, result in results.items()}
    splits = ", ".join(f"{name} {count}" for name, count in counts.items())
    lines = [
        "# DCA-GM by the protocol of [PGK07]",
        "",
        f"{describe()}; splits: {splits}; 20 % labelled, seed {SEED}. "
        "Nearest neighbour / posterior accuracy in per cent, standard error in brackets.",
        "",
        "| method | " + " | ".join(results) + " | rank |",
        "|---" * (len(results) + 2) + "|",
    ]
    for method, rank in zip(METHODS, ranks(results), strict=True):
        cells = []
        for result in results.values():
            mean, error = summary(result[method]["values"])
            posterior = "" if np.isnan(mean[1]) else f" / {mean[1]:.1f} ({error[1]:.1f})"
            cells.append(f"{mean[0]:.1f} ({error[0]:.1f}){posterior}")
        lines.append(f"| {method} | " + " | ".join(cells) + f" | {rank:.2f} |")
    lines += ["", "Rank: average over the sets, by nearest neighbour.", "", "## Chunks", ""]
    lines += ["| set | without chunks | in EM only | in the objective too |", "|---|---|---|---|"]
    for name, values in chunked.items():
        mean, error = summary(values)
        cells = [f"{m:.1f} ({e:.1f})" for m, e in zip(mean, error, strict=True)]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    lines += ["", "A tenth labelled, chunks of four on half of the rest, tested on the other half."]
    return "\n".join(lines) + "\n"


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    n_splits = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    path = RESULTS / "dcagm_accuracy.json"
    stored = json.loads(path.read_text()) if path.exists() else {"protocol": {}, "chunks": {}}
    for name in sys.argv[2:] or SETS:
        try:
            if name != "isolet":
                stored["chunks"][name] = with_chunks(name, max(2, n_splits // 3))
            stored["protocol"][name] = protocol(name, n_splits)
        except MissingDataError as error:
            print(f"{name} skipped: {error}")
            continue
        RESULTS.mkdir(exist_ok=True)
        path.write_text(json.dumps(stored) + "\n")
        (RESULTS / "dcagm_accuracy.md").write_text(report(stored["protocol"], stored["chunks"]))
    if stored["protocol"]:
        print(report(stored["protocol"], stored["chunks"]))


if __name__ == "__main__":
    main()
