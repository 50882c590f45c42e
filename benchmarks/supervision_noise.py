"""Pure noise with random labels: what the automatic choice of supervision makes of it.

Held-out rows must find their class by chance, and the picture of the labelled rows must not draw
the classes apart. The second table asks the same of every supervised model, and of LDA, NCA and
UMAP with labels beside them.

    python benchmarks/supervision_noise.py --first 0
"""

import argparse
import warnings

import numpy as np
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from gnomon import BSDR, DCAGM, SPPCA, KernelSPPCA
from supervision import draw_labels, error

import measure

CASES = [(20, 2, 5), (20, 5, 5), (20, 10, 2), (300, 2, 20), (300, 5, 5), (300, 10, 5)]
REPEATS = 25
# Of the second table, whose rivals take seconds a fit.
PEERS_CASES, PEERS_REPEATS = [(20, 2, 5), (20, 5, 5), (300, 2, 20), (300, 5, 5)], 6


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--first", type=int, default=0, help="seed of the first repeat")
    first = parser.parse_args().first
    by_model(first)
    measure.write(
        "supervision_noise",
        'Random labels on pure noise, supervision="auto", five components',
        [
            "columns",
            "classes",
            "labels a class",
            "fits with s > 0",
            "held-out accuracy",
            "two standard errors",
            "accuracy among labelled rows",
            "the same with s = 0.9",
            "chance",
        ],
        [row(*case, first) for case in CASES],
        [
            f"200 rows, {REPEATS} repeats, seeds {first} and following; accuracy of the nearest "
            "labelled row, and among labelled rows of the nearest other one."
        ],
    )


def by_model(first):
    """The table of all models: a line for each, two figures for every case."""
    heads = [f"{d} columns, {c} classes, {per} labels each" for d, c, per in PEERS_CASES]
    found, seeds = {name: [] for name in MAPS}, range(first, first + PEERS_REPEATS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for case in PEERS_CASES:
            for name in MAPS:
                values = [mapped(name, *case, seed) for seed in seeds]
                found[name].append("{:.3f} / {:.3f}".format(*np.mean(values, axis=0)))
                print(case, name, found[name][-1], flush=True)
    chance = [f"{1 / c:.3f} / {1 / c:.3f}" for _, c, _ in PEERS_CASES]
    measure.write(
        "supervision_noise_models",
        "Random labels on pure noise: held-out accuracy / accuracy among the labelled rows",
        ["map", *heads],
        [[name, *cells] for name, cells in found.items()] + [["chance", *chance]],
        [
            f"200 rows, {PEERS_REPEATS} repeats, seeds {first} and following, up to five "
            "components. Accuracy of the nearest labelled row on the rows without a label, and of "
            "the nearest other one among the labelled rows, whose excess over chance is structure "
            "that is not there."
        ],
    )


def mapped(name, d, n_classes, per_class, seed):
    """Both accuracies of one map of noise."""
    X, y, labelled = noise(d, n_classes, per_class, seed)
    T = MAPS[name](X, np.where(labelled, y, -1), labelled)
    return 1 - error(T, y, labelled), among(T[labelled], y[labelled])


def taught(make):
    """A map that is fitted to the labelled rows alone."""

    def fit(X, codes, labelled):
        model = make(len(np.unique(codes[labelled])) - 1)
        return model.fit(X[labelled], codes[labelled]).transform(X)

    return fit


def umap_map(X, codes, labelled):
    from umap import UMAP

    return UMAP(n_components=2, random_state=0, n_jobs=1).fit_transform(X, codes)


MAPS = {
    "SPPCA": lambda X, codes, _: SPPCA(5).fit(X, codes).transform(X),
    "SPPCA by likelihood": lambda X, codes, _: (
        SPPCA(5, supervision="likelihood").fit(X, codes).transform(X)
    ),
    "KernelSPPCA": lambda X, codes, _: KernelSPPCA(5).fit(X, codes).transform(X),
    "DCAGM": lambda X, codes, _: DCAGM(2).fit(X, codes).transform(X),
    "BSDR": taught(lambda rank: BSDR(min(2, max(rank, 1)), random_state=0)),
    'BSDR("auto")': taught(lambda rank: BSDR("auto", random_state=0)),
    "LDA with shrinkage": taught(
        lambda rank: LinearDiscriminantAnalysis(
            solver="eigen", shrinkage="auto", n_components=min(5, rank)
        )
    ),
    "NCA": taught(lambda rank: NeighborhoodComponentsAnalysis(2, random_state=0)),
    "UMAP with labels": umap_map,
}


def row(d, n_classes, per_class, first):
    seeds = range(first, first + REPEATS)
    found = np.array([one(d, n_classes, per_class, seed) for seed in seeds])
    mean, spread = found.mean(axis=0), 2 * found.std(axis=0) / np.sqrt(REPEATS)
    values = [f"{mean[0]:.2f}", f"{mean[1]:.3f}", f"{spread[1]:.3f}", f"{mean[2]:.3f}"]
    print(d, n_classes, per_class, *values, flush=True)
    head = [str(d), str(n_classes), str(per_class)]
    return head + values + [f"{mean[3]:.3f}", f"{1 / n_classes:.3f}"]


def one(d, n_classes, per_class, seed):
    X, y, labelled = noise(d, n_classes, per_class, seed)
    codes = np.where(labelled, y, -1)
    auto, strong = SPPCA(5).fit(X, codes), SPPCA(5, supervision=0.9).fit(X, codes)
    T = auto.transform(X)
    near = [among(model.transform(X)[labelled], y[labelled]) for model in (auto, strong)]
    return [auto.supervision_ > 0, 1 - error(T, y, labelled), *near]


def noise(d, n_classes, per_class, seed):
    """Rows of unequal spread, classes that they know nothing of, and which rows are labelled."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, d)) * np.linspace(3, 1, d)
    y = rng.permutation(np.arange(200) % n_classes)
    return X, y, draw_labels(y, per_class, rng)


def among(T, y):
    D = np.linalg.norm(T[:, None] - T[None], axis=2)
    np.fill_diagonal(D, np.inf)
    return np.mean(y[np.argmin(D, axis=1)] == y)


if __name__ == "__main__":
    main()
