"""SPPCA by likelihood with probit scores or Gaussian codes of the classes, and the default.

Seven of ten rows are given to the fit, some of them with their labels; the others are scored:
accuracy, log loss and calibration error (ten bins) of `predict_proba`, accuracy of the nearest
labelled row on the map, and seconds of processor time of the fit. "Gaussian" has the head that
its probabilities are averaged with; "Gaussian alone" is the same fit without it.

    python benchmarks/sppca_probit.py --repeats 3 --components 2 10
    python benchmarks/sppca_probit.py --priors --repeats 3
    python benchmarks/sppca_probit.py --coverage

The second tries other precisions of the prior of the scores on small sets; the third draws rows
from the model and asks how often the truth lies within 95 % of its posterior, given x and given x
and the class.
"""

import argparse
import time
import warnings

import numpy as np
from sklearn.neighbors import KNeighborsClassifier

import supervision_sets as sets
from calibration import draw, figures
from gnomon import SPPCA
from gnomon.models.sppca import probit

import measure

LABELS = (2, 5, 20)
COMPONENTS = (2, 10)
SEEN = 0.7
# Small sets, for other priors.
SMALL = "yale tumors11 digits wine breast".split()
PRIORS = (0.1, 0.3, 1.0)
NAMES = ("probit", "Gaussian", "Gaussian alone", "default")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets", nargs="*", default=sets.MAIN)
    parser.add_argument("--components", nargs="*", type=int, default=COMPONENTS)
    parser.add_argument("--priors", action="store_true", help="other priors instead")
    parser.add_argument("--coverage", action="store_true", help="coverage of planted z instead")
    parser.add_argument("--first", type=int, default=900, help="seed of the first repeat")
    options = parser.parse_args()
    if options.coverage:
        return run_coverage()
    if measure.data_folder() is None:
        return
    (run_priors if options.priors else run_sets)(options)


def run_sets(options):
    for q in options.components:
        cells = {}
        for name, labels, data in tasks(options.sets):
            cells[name, labels] = run_task(*data, q, labels, options, all_models)
            print(name, q, labels, cells[name, labels].round(3).tolist(), flush=True)
        write(f"sppca_probit_{q}", q, cells, options)


def write(result, q, cells, options):
    found = np.array(list(cells.values()))
    rows = [_row(f"{name}, {labels}", f) for (name, labels), f in cells.items()]
    for labels in LABELS:
        some = [f for (_, own), f in cells.items() if own == labels]
        rows.append(_row(f"mean, {labels}", np.mean(some, axis=0)))
    rows.append(_row("mean", found.mean(axis=0)))
    wins = [
        f"than {NAMES[m]} in {np.sum(found[:, 0, 0] > found[:, m, 0])} of {len(found)} tasks by "
        f"accuracy, {np.sum(found[:, 0, 1] < found[:, m, 1])} by log loss, "
        f"{np.sum(found[:, 0, 2] < found[:, m, 2])} by calibration error"
        for m in (1, 2, 3)
    ]
    measure.write(
        result,
        f"Accuracy / log loss / calibration error / nearest labelled row / seconds, {q} components",
        ["set, labels a class", *NAMES],
        rows,
        [
            f"{options.repeats} splits, seeds {options.first} and following. Probit is better "
            + "; ".join(wins)
            + "."
        ],
    )


def tasks(names):
    """Name, labels a class and data of every task."""
    for name in names:
        X, y, _ = sets.read(name)
        for labels in LABELS:
            if np.bincount(y).min() * SEEN >= labels + 1:
                yield name, labels, (X, y)


def all_models(q):
    likelihood = {"supervision": "likelihood", "random_state": 0}
    return [
        SPPCA(q, likelihood="probit", **likelihood),
        SPPCA(q, **likelihood),
        SPPCA(q, random_state=0),
    ]


def run_task(X, y, q, labels, options, models):
    """Means over splits (methods, figures)."""
    found = []
    for seed in range(options.first, options.first + options.repeats):
        rng = np.random.default_rng(seed)
        train, test = np.split(rng.permutation(len(y)), [int(SEEN * len(y))])
        known = draw(y[train], labels, rng)
        scored = [score(model, X[train], known, X[test], y[test]) for model in models(q)]
        found.append([row for rows in scored for row in rows])
    return np.mean(found, axis=0)


def score(model, X, known, X_test, y_test):
    """Figures of the model, and of the Gaussian likelihood those without its head too."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.process_time()
        model.fit(X, known)
        seconds = time.process_time() - start
        rows = np.flatnonzero(known >= 0)
        near = KNeighborsClassifier(1).fit(model.transform(X[rows]), known[rows])
        rest = np.mean(near.predict(model.transform(X_test)) == y_test), seconds
        found = [(*figures(model.predict_proba(X_test), model.classes_, y_test), *rest)]
        if model.supervision == "likelihood" and model.likelihood_ == "gaussian":
            model.class_head_ = None
            found.append((*figures(model.predict_proba(X_test), model.classes_, y_test), *rest))
    return found


def run_priors(options):
    rows = []
    for prior in PRIORS:
        probit.PRIOR = prior
        found = {
            (name, q, labels): run_task(*data, q, labels, options, lambda q: all_models(q)[:1])[0]
            for name, labels, data in tasks(SMALL)
            for q in options.components
        }
        means = [
            np.mean([f[:3] for (_, _, own), f in found.items() if own == labels], axis=0)
            for labels in LABELS
        ]
        rows.append(_row(f"{prior:g}", [*means, np.mean([f[:3] for f in found.values()], axis=0)]))
        print(rows[-1], flush=True)
    measure.write(
        "sppca_probit_priors",
        "Accuracy / log loss / calibration error by the precision of the prior of scores",
        ["precision", *(f"{labels} labels a class" for labels in LABELS), "all"],
        rows,
        [
            f"{options.repeats} splits of {', '.join(SMALL)}, 2 and 10 components; "
            f"{len(found)} tasks."
        ],
    )


def run_coverage(n=4000, d=6, q=2, C=4):
    """How often planted z lies within 95 % of its posterior, at the parameters of a fit."""
    rows = []
    for seed in range(3):
        rng = np.random.default_rng(seed)
        Z, W, V = (rng.normal(size=s) for s in ((n, q), (q, d), (q, C)))
        X = Z @ W + rng.normal(size=(n, d))
        y = np.argmax(2 * Z @ V + rng.normal(size=(n, C)), axis=1)
        model = SPPCA(q, supervision="likelihood", likelihood="probit").fit(X, y)
        found = [_coverage(model, Z, W, *model.posterior(X, known)) for known in (None, y)]
        rows.append([seed, *(f"{share:.3f}" for share in found)])
    measure.write(
        "sppca_probit_coverage",
        "Share of planted z within 95 % of its posterior",
        ["seed", "given x", "given x and the class"],
        rows,
        [f"{n} rows, {d} features, {q} components, {C} classes; two coordinates of every row."],
    )


def _coverage(model, Z, W, mean, covariances):
    """Share of intervals of the posterior that hold the truth, turned to its axes."""
    U, _, Vt = np.linalg.svd(W @ model.components_.T)
    turned = Z @ U @ Vt
    deviations = np.sqrt(np.diagonal(covariances, axis1=1, axis2=2))
    return np.mean(np.abs(turned - mean) < 1.96 * deviations)


def _row(name, found):
    return [name, *(" / ".join(f"{value:.3f}" for value in figure) for figure in found)]


if __name__ == "__main__":
    main()
