"""When DCAGM should stop, judged on labels hidden from the labelled rows; no test row is used.

Run as ``python -m benchmarks.dcagm_stopping`` with GNOMON_DATA set; writes
results/dcagm_stopping.md. A fifth of the rows is labelled, each fourth of these in
turn is hidden, and the log probability of the hidden labels compared with that of the default
tolerance, fit by fit.
"""

import warnings
from pathlib import Path

import numpy as np
from benchmarks.dcagm_accuracy import SETS, prepared
from benchmarks.measure import describe
from benchmarks.papers.data import MissingDataError
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from gnomon import DCAGM

RESULTS = Path(__file__).parent / "results"
SEED, N_SPLITS, LEAST_PROBABILITY = 300, 1, 1e-3
VARIANTS = [{}, {"tol": 0.1}, {"tol": 0.01}, {"tol": 0.0001}]


def hidden_folds(name):
    """X, y, labels with a fold hidden, rows of the fold."""
    X, y, _, _ = prepared(name)
    splits = StratifiedShuffleSplit(N_SPLITS, train_size=0.2, random_state=SEED).split(X, y)
    for number, (train, _) in enumerate(splits):
        folds = StratifiedKFold(4, shuffle=True, random_state=number).split(train, y[train])
        for kept, left in folds:
            codes = np.full(len(y), -1)
            codes[train[kept]] = y[train[kept]]
            yield X, y, codes, train[left]


def score(variant, X, y, codes, hidden):
    """Mean log probability of the hidden labels, from below limited, accuracy, iterations."""
    model = DCAGM(2, **variant).fit(X, codes)
    given = model.predict_log_proba(X[hidden])[np.arange(len(hidden)), y[hidden]]
    right = np.mean(model.predict(X[hidden]) == y[hidden])
    return np.maximum(given, np.log(LEAST_PROBABILITY)).mean(), right, model.n_iter_


def report(scores, names):
    """A line per variant with its gain over the defaults."""
    n_fits = len(scores[0])
    lines = [
        "# When DCAGM should stop, judged on hidden labels of labelled rows",
        "",
        f"{describe()}; seed {SEED}; {', '.join(names)}; {n_fits} fits each.",
        "",
        "| changed | log probability | gain over the defaults (s.e.) | accuracy | steps |",
        "|---|---|---|---|---|",
    ]
    for variant, values in zip(VARIANTS, scores, strict=True):
        gain = values[:, 0] - scores[0][:, 0]
        error = gain.std(ddof=1) / np.sqrt(n_fits)
        text = ", ".join(f"{key} {value:g}" for key, value in variant.items()) or "nothing"
        mean = values.mean(axis=0)
        gained = f"{gain.mean():+.3f} ({error:.3f})"
        lines.append(f"| {text} | {mean[0]:.3f} | {gained} | {mean[1]:.3f} | {mean[2]:.0f} |")
    return "\n".join(lines) + "\n"


def main():
    warnings.simplefilter("ignore", ConvergenceWarning)
    cases, names = [], []
    for name in SETS[:5]:
        try:
            cases += list(hidden_folds(name))
            names.append(name)
        except MissingDataError as error:
            print(f"{name} skipped: {error}")
    if not cases:
        return
    scores = []
    for variant in VARIANTS:
        scores.append(np.array([score(variant, *case) for case in cases]))
        print(variant, scores[-1].mean(axis=0).round(4), flush=True)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "dcagm_stopping.md").write_text(report(scores, names))
    print(report(scores, names))


if __name__ == "__main__":
    main()
