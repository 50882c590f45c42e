"""What might make figures differ from [YYTKW06], apart from the models.

On PIE the images, their preparation and the scale of axes; on Yeast the classifier.
"""

from functools import partial

import numpy as np
from benchmarks.papers.data import prepared
from benchmarks.papers.methods_yytkw06 import METHODS, Task, few_labels, task
from benchmarks.papers.scores_yytkw06 import neighbour_error, svm_scores
from sklearn.decomposition import PCA

SIZES = (5, 10, 20)
# Of ten people; all of PIE is done once.
REPEATS = 5
PEOPLE = 10
# Powers of the standard deviation that each axis is divided by: 0 is PCA, 1 is whitened.
POWERS = (0.0, 1.0, 1.5, 2.0)
CLASSIFIERS = {
    "C = 10": {"C": 10},
    "C = 1": {"C": 1},
    "balanced weights": {"class_weight": "balanced"},
    "thresholds by share": {"by_share": True},
}
CLASSIFIED = [("FULL", 0), *((method, q) for method in ("PCA", "PLS", "S2PPCA") for q in SIZES)]


def images(name):
    """All of PIE as stored or with rows of length one, or its first ten people in two copies."""
    if name == "pie, rows as stored":
        return prepared("pie", "")
    X, y = prepared("pie10" if name == "pie, ten people, lossless" else "pie", "unit rows")
    few = y < PEOPLE if "ten people" in name else slice(None)
    return X[few], y[few]


def error(name, power, q, repeat):
    X, y = images(name)
    shown = few_labels(y, np.random.default_rng(repeat))
    Z = PCA(q, svd_solver="covariance_eigh").fit_transform(X)
    return neighbour_error(Z / Z.std(axis=0) ** power, Task(X, y, shown, shown >= 0))


def classified(method, change, q, repeat):
    Z = METHODS[method]("yeast", repeat, q)
    return svm_scores(Z, task("yeast", repeat), **CLASSIFIERS[change])


def run(cells, names, repeats):
    if "pie" in names:
        run_images(cells, repeats)
    if "yeast" in names:
        run_classifiers(cells, repeats)


def run_images(cells, repeats):
    names = ("pie, ten people, lossless", "pie, ten people, JPEG", "pie, rows as stored", "pie")
    for name in names:
        for repeat in range(min(REPEATS, repeats) if "ten" in name else 1):
            for power in POWERS if name == "pie" else POWERS[:2]:
                for q in SIZES:
                    key = ("Check", name, f"PCA, axes / sd^{power:g}", q, repeat)
                    cells.run(key, partial(error, name, power, q, repeat))


def run_classifiers(cells, repeats):
    for repeat in range(repeats):
        for method, q in CLASSIFIED:
            for change in CLASSIFIERS:
                key = ("Check", "yeast", f"{method}, {change}", q, repeat)
                cells.run(key, partial(classified, method, change, q, repeat))
