"""Rows with 30 % of their values missing: how well the models take them, against column means.

    python benchmarks/gaps.py                 models with their gaps, with column means, complete
    python benchmarks/gaps.py --only digits   one set again, beside what is stored of the others;
                                              --models BSDR likewise
    python benchmarks/gaps.py --sizes         components of the PPCA that fills gaps
    python benchmarks/gaps.py --copies        draws of a row that a fit of DCAGM sees

Half of the rows are fitted, the other half predicted; gaps fall anywhere in both. Column means are
those of the fitted rows.
"""

import argparse
import json
import warnings

import numpy as np
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris, load_wine
from sklearn.metrics import log_loss

import gnomon
from gnomon.estimators import dcagm
from gnomon.models.gaussian import filling

import measure

SHARE = 0.3
# Digits are many: so many of them tell as much in a fraction of the time.
MOST_ROWS = 700
MODELS = {
    "BSDR": lambda q: gnomon.BSDR(q, random_state=0),
    "MultinomialProbit": lambda q: gnomon.MultinomialProbit(),
    "DCAGM": lambda q: gnomon.DCAGM(q, random_state=0),
    "KernelSPPCA": lambda q: gnomon.KernelSPPCA(q),
}
SIZES = (1, 2, 3, 5, 8, 12)
COPIES = (1, 2, 4, 8)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--only")
    parser.add_argument("--models", nargs="*", default=list(MODELS), choices=list(MODELS))
    parser.add_argument("--sizes", action="store_true")
    parser.add_argument("--copies", action="store_true")
    asked = parser.parse_args()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if asked.sizes or asked.copies:
            (table_of_sizes if asked.sizes else table_of_copies)(asked.repeats)
        else:
            table(asked.repeats, asked.models, asked.only)


def table(repeats, models, only=None):
    rows = []
    for name, (X, y, q) in sets().items():
        for model in models:
            if only in (None, name):
                found = [trial(MODELS[model], X, y, q, seed) for seed in range(repeats)]
                rows.append([f"{model}, {name}", *_cells(found)])
                print(rows[-1], flush=True)
    if only in (None, "diabetes"):
        X, y = load_diabetes(return_X_y=True)
        found = [trial_of_numbers(X, y, seed) for seed in range(repeats)]
        rows.append(["BSDRRegressor, diabetes (R²)", *_cells(found)])
    write(rows)


def write(rows):
    """The rows beside those that are stored, of which they take the place."""
    path = measure.RESULTS / "gaps.json"
    stored = json.loads(path.read_text())["rows"] if path.exists() else []
    every = {row[0]: row for row in [*stored, *rows]}
    head = ["model, set", "complete", "its gaps", "column means", "better in"]
    notes = [
        f"Splits in halves, as many as the last column says, {SHARE:.0%} of the values missing.",
        "Accuracy / log loss of the other half.",
    ]
    measure.write("gaps", "Rows with gaps", head, list(every.values()), notes)


def sets():
    """Name to rows, classes and number of components."""
    digits = load_digits(return_X_y=True)
    some = np.random.default_rng(0).choice(len(digits[1]), MOST_ROWS, replace=False)
    return {
        "iris": (*load_iris(return_X_y=True), 2),
        "wine": (*load_wine(return_X_y=True), 2),
        "breast cancer": (*load_breast_cancer(return_X_y=True), 2),
        "digits": (digits[0][some], digits[1][some], 5),
    }


def split(X, seed):
    """Rows of the fit, the others, and X with gaps; a row keeps one value at least."""
    rng = np.random.default_rng(seed)
    gaps = rng.random(X.shape) < SHARE
    gaps[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    order = rng.permutation(len(X))
    half = len(X) // 2
    return order[:half], order[half:], np.where(gaps, np.nan, X)


def with_means(holed, train):
    return np.where(np.isnan(holed), np.nanmean(holed[train], axis=0), holed)


def trial(make, X, y, q, seed):
    """Accuracy and log loss with complete rows, with gaps, and with column means."""
    train, test, holed = split(X, seed)
    found = []
    for rows in (X, holed, with_means(holed, train)):
        model = make(q).fit(rows[train], y[train])
        found += [score(model, rows[test], y[test])]
    return np.array(found)


def score(model, X, y):
    P = model.predict_proba(X)
    return np.mean(model.classes_[P.argmax(axis=1)] == y), log_loss(y, P, labels=model.classes_)


def trial_of_numbers(X, y, seed):
    train, test, holed = split(X, seed)
    found = []
    for rows in (X, holed, with_means(holed, train)):
        model = gnomon.BSDRRegressor(1, random_state=0).fit(rows[train], y[train])
        found.append((model.score(rows[test], y[test]), np.nan))
    return np.array(found)


def _cells(found):
    found = np.array(found)
    means = found.mean(axis=0)
    cells = [f"{a:.3f}" + ("" if np.isnan(b) else f" / {b:.3f}") for a, b in means]
    return [*cells, f"{np.sum(found[:, 1, 0] > found[:, 2, 0])} of {len(found)}"]


def table_of_sizes(repeats):
    """Root mean squared error of fillings, in standard deviations of the columns."""
    rows = []
    for name, (X, _, _) in sets().items():
        means, errors = [], {size: [] for size in SIZES if size < X.shape[1]}
        for seed in range(repeats):
            train, _, holed = split(X, seed)
            varies = X[train].std(axis=0) > 0
            missing, sd = np.isnan(holed) & varies, np.where(varies, X[train].std(axis=0), 1.0)
            means.append(_rms((with_means(holed, train) - X) / sd, missing))
            for size, found in errors.items():
                filling.MOST_COMPONENTS, filling.SHARE_OF_COLUMNS = size, 1.0
                known = filling.learn(holed[train])
                found.append(_rms((filling.fill(known, holed) - X) / sd, missing))
        cells = [f"{np.mean(errors[s]):.3f}" if s in errors else "" for s in SIZES]
        rows.append([name, f"{np.mean(means):.3f}", *cells])
        print(rows[-1], flush=True)
    head = ["set", "column means", *(f"{size} components" for size in SIZES)]
    notes = [f"{repeats} splits, error in standard deviations of the columns."]
    measure.write("gaps_sizes", "Error of fillings", head, rows, notes)


def _rms(error, missing):
    return float(np.sqrt(np.mean(error[missing] ** 2)))


def table_of_copies(repeats):
    """Accuracy and log loss of DCAGM by the number of draws that a fit sees."""
    rows = []
    for name, (X, y, q) in sets().items():
        cells = []
        for size in COPIES:
            dcagm.N_COPIES = size
            found = []
            for seed in range(repeats):
                train, test, holed = split(X, seed)
                model = MODELS["DCAGM"](q).fit(holed[train], y[train])
                found.append(score(model, holed[test], y[test]))
            accuracy, loss = np.mean(found, axis=0)
            cells.append(f"{accuracy:.3f} / {loss:.3f}")
        rows.append([name, *cells])
        print(rows[-1], flush=True)
    head = ["set", *(f"{size} draws" for size in COPIES)]
    notes = [f"{repeats} splits, accuracy / log loss of rows with gaps."]
    measure.write("gaps_copies", "Draws of a row with gaps in a fit of DCAGM", head, rows, notes)


if __name__ == "__main__":
    main()
