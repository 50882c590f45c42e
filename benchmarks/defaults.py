"""Defaults beside what else they could be, each on held-out labels or planted truth.

dimension    components that `choose_dimension` and `PPCA("auto")` find of those planted
prior        prior scale of DCAGM's covariances, 2 and 5 labels a class
chunks       wrong members of chunks in DCAGM, trusted as printed and with doubt
sizes        accuracy of the nearest labelled row on maps of SPPCA with 2, "auto", 10 components
bsdr         components that BSDR "auto" finds of those planted in classes
standardize  columns as they are and their principal components, in units of their own or not
units        DCAGM on columns that may share a unit, and how many of them begin at zero

GNOMON_DATA=folder python benchmarks/defaults.py --only prior chunks --repeats 3
"""

import argparse
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

import calibration
import supervision_sets as sets
from gnomon import BSDR, DCAGM, PPCA, SPPCA, choose_dimension
from gnomon.models.dcagm import alternation, rows

import measure

SMALL = "wine breast ionosphere lung vowel housing digits".split()
WITH_CHUNKS = "wine iris ionosphere breast vowel housing".split()
LABELS = (2, 5)
PRIOR_SCALES = (0.05, 0.2, 0.5)
# Rows, columns, components and the share of variance that each adds, in eighths of all noise.
PLANTED = [(200, 30, 4, 1.0), (200, 30, 4, 0.5), (100, 50, 3, 0.6), (500, 40, 8, 0.35)]
WRONG = 0.2
# Sets in units of their own: pixels, measured columns, spoken letters, genes; the rows taken of
# each, and how many principal components in the place of the columns. Labels of each class, and
# the most columns that are taken as they are.
FEW, WIDEST = 4, 300
WAYS = (True, False, "auto")
IN_UNITS = {
    "usps": ("usps", 500, 50),
    "digits": ("digits", 500, 30),
    "wine": ("wine", 178, 10),
    "isolet": ("isolet", 400, 100),
    "tumors11": ("tumors11", 174, 100),
}
# Sets as they were measured, at most so many rows of each: pixels, speech, radar, words, genes.
MEASURED, MOST_ROWS = (
    (
        "digits usps yale orl isolet mfeat ionosphere wine breast housing vowel_vj cora tdt2 ng20 "
        "tumors11 lung_bhatt203"
    ).split(),
    1200,
)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", nargs="*", default=list(PARTS), choices=list(PARTS))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--first", type=int, default=5000, help="seed of the first repeat")
    options = parser.parse_args()
    if measure.data_folder() is None:
        return
    for name in options.only:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            title, columns, found = PARTS[name](
                range(options.first, options.first + options.repeats)
            )
        note = f"{options.repeats} repeats, seeds {options.first} and following."
        measure.write(f"defaults_{name}", title, columns, found, [note])


def dimension(seeds):
    """How often the planted number is found, to within one, by each rule."""
    table = []
    for n, d, q, strength in PLANTED:
        found = [_sizes_found(*_planted(n, d, q, strength, seed)) for seed in seeds]
        near = np.mean(np.abs(np.array(found) - q) <= 1, axis=0)
        table.append(
            [f"{n} x {d}, {q} of strength {strength}", *(f"{share:.2f}" for share in near)]
        )
        print(table[-1], flush=True)
    rules = ["held-out likelihood", "parallel analysis", "PPCA auto", "BIC"]
    return "Share of planted tables whose dimension is found within one", ["planted", *rules], table


def _planted(n, d, q, strength, seed):
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((d, q)))[0]
    signal = np.sqrt(strength * d / 8) * rng.standard_normal((n, q)) @ W.T
    return (signal + rng.standard_normal((n, d)),)


def _sizes_found(X):
    likelihood = choose_dimension(X, models=["PPCA"]).chosen["PPCA"]
    parallel = choose_dimension(X, criterion="parallel").chosen["principal components"]
    return likelihood, parallel, PPCA("auto").fit(X).n_components_, _by_bic(X)


def _by_bic(X):
    """What BIC takes of one to ten components."""
    n, d = X.shape
    scores = []
    for q in range(1, 11):
        size = d * q - q * (q - 1) // 2 + d + 1
        scores.append(n * PPCA(q).fit(X).score(X) - 0.5 * size * np.log(n))
    return 1 + int(np.argmax(scores))


def prior(seeds):
    """Accuracy and log loss of DCAGM on rows not seen, for each prior scale."""
    usual, table = alternation.PRIOR_SCALE, []
    for q in (2, 5):
        for name in SMALL:
            X, y, _ = sets.read(name)
            for labels in LABELS:
                found = [_with_scales(X, y, labels, q, seed) for seed in seeds]
                table.append([f"{name}, {labels}, {q} components", *np.mean(found, axis=0)])
                print(table[-1], flush=True)
    alternation.PRIOR_SCALE = usual
    means = np.mean([[*row[1:]] for row in table], axis=0)
    cells = [
        [name, *(f"{a:.3f} / {loss:.3f}" for a, loss in np.reshape(values, (-1, 2)))]
        for name, *values in [*table, ["mean", *means]]
    ]
    title = "Accuracy / log loss of DCAGM by the prior scale of its covariances"
    return title, ["set, labels a class", *map(str, PRIOR_SCALES)], cells


def _with_scales(X, y, labels, q, seed):
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(y)), [int(calibration.SEEN * len(y))])
    known = calibration.draw(y[train], labels, rng)
    found = []
    for scale in PRIOR_SCALES:
        alternation.PRIOR_SCALE = scale
        model = DCAGM(min(q, X.shape[1]))
        found += calibration.score(model, X, y, train, test, known)[:2]
    return found


def chunks(seeds):
    """Accuracy of DCAGM with chunks, right and with wrong members, trusted and doubted."""
    usual, table = rows.WRONG_MEMBERS, []
    for name in WITH_CHUNKS:
        X, y, _ = sets.read(name)
        for labels in LABELS:
            found = np.mean([_with_chunks(X, y, labels, seed) for seed in seeds], axis=0)
            table.append([f"{name}, {labels}", *found])
            print(table[-1], flush=True)
    rows.WRONG_MEMBERS = usual
    table.append(["mean", *np.mean([[*row[1:]] for row in table], axis=0)])
    cells = [[name, *(f"{value:.3f}" for value in values)] for name, *values in table]
    columns = ["none", "right, trusted", "right", "20 % wrong, trusted", "20 % wrong"]
    title = "Accuracy of DCAGM with chunks of four on half of the rows without a label"
    return title, ["set, labels a class", *columns], cells


def _with_chunks(X, y, labels, seed):
    rng = np.random.default_rng(seed)
    known = calibration.draw(y, labels, rng)
    hidden = known < 0
    right, wrong = _fours(y, known, rng)
    found = []
    for groups, doubt in [(None, 0.1), (right, 0.0), (right, 0.1), (wrong, 0.0), (wrong, 0.1)]:
        rows.WRONG_MEMBERS = doubt
        found.append(DCAGM().fit(X, known, chunks=groups).score(X[hidden], y[hidden]))
    return found


def _fours(y, known, rng):
    """Chunks of four rows without a label, and the same with a fifth of the members exchanged."""
    chosen = rng.permutation(np.flatnonzero(known < 0))[: np.sum(known < 0) // 2]
    right = np.full(len(y), -1)
    for c in np.unique(y):
        own = chosen[y[chosen] == c]
        right[own] = len(y) * c + np.arange(len(own)) // 4
    wrong, moved = right.copy(), chosen[rng.random(len(chosen)) < WRONG]
    wrong[moved] = right[rng.permutation(moved)]
    return right, wrong


def sizes(seeds):
    """Accuracy of predictions and of the nearest labelled row, and seconds, by components."""
    table = []
    for name in SMALL:
        X, y, _ = sets.read(name)
        for labels in LABELS:
            found = [_with_sizes(X, y, labels, seed) for seed in seeds]
            table.append([f"{name}, {labels}", *np.mean(found, axis=0).ravel()])
            print(table[-1], flush=True)
    table.append(["mean", *np.mean([[*row[1:]] for row in table], axis=0)])
    cells = [
        [name, *(f"{p:.3f} / {near:.3f} / {s:.2f} s" for p, near, s in np.reshape(values, (-1, 3)))]
        for name, *values in table
    ]
    title = "SPPCA by its number of components: accuracy of predict / nearest labelled row / time"
    return title, ["set, labels a class", "2", "10", "auto"], cells


def _with_sizes(X, y, labels, seed):
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(y)), [int(calibration.SEEN * len(y))])
    known = calibration.draw(y[train], labels, rng)
    found = []
    for q in (2, min(10, X.shape[1]), "auto"):
        begun = time.process_time()
        model = SPPCA(q, random_state=0).fit(X[train], known)
        seconds = time.process_time() - begun
        near = KNeighborsClassifier(1).fit(model.transform(X[train[known >= 0]]), known[known >= 0])
        nearest = near.score(model.transform(X[test]), y[test])
        found.append([model.score(X[test], y[test]), nearest, seconds])
    return found


# Prior of the precisions and latent noise.
BSDR_SETTINGS = (
    ((0.001, 1000.0), 0.1),
    ((0.01, 100.0), 0.1),
    ((0.1, 10.0), 0.1),
    ((0.01, 100.0), 1.0),
)
# Classes, rows of each, directions that their means span (0: labels that mean nothing).
PLANTED_CLASSES = [
    (2, 10, 1),
    (3, 20, 2),
    (5, 20, 4),
    (6, 20, 2),
    (6, 20, 1),
    (5, 5, 4),
    (3, 20, 0),
]


def bsdr(seeds):
    """Components that BSDR finds of those planted in classes, by the prior of its precisions."""
    table = []
    for planted in PLANTED_CLASSES:
        row = ["{} classes, {} rows each, {} directions".format(*planted)]
        for chosen in BSDR_SETTINGS:
            sizes, scores = np.transpose([_bsdr_found(*planted, *chosen, seed) for seed in seeds])
            right = np.mean(sizes == planted[2])
            row.append(f"{right:.2f} / {sizes.mean():.1f} / {scores.mean():.3f}")
        table.append(row)
        print(row, flush=True)
    columns = ["planted", *(f"{prior}, noise {noise}" for prior, noise in BSDR_SETTINGS)]
    title = 'BSDR "auto" by prior and latent noise: share right / mean number / accuracy'
    return title, columns, table


def _bsdr_found(n_classes, per_class, n_directions, prior, noise, seed):
    rng = np.random.default_rng(seed)
    means = _planted_means(n_classes, n_directions, rng)
    y = np.repeat(np.arange(n_classes), per_class + 40)
    X = means[y] + rng.standard_normal((len(y), 10))
    train = np.arange(len(y)) % (per_class + 40) < per_class
    model = BSDR("auto", projection_prior=prior, latent_noise=noise, random_state=0)
    model.fit(X[train], y[train])
    return model.kept_.sum(), model.score(X[~train], y[~train])


def _planted_means(n_classes, n_directions, rng):
    """Means of classes: corners of a simplex, or at random in a space of fewer directions."""
    basis = np.linalg.qr(rng.standard_normal((10, n_classes)))[0].T
    if n_directions == n_classes - 1:
        return 2.5 * basis
    return 3.5 * rng.standard_normal((n_classes, n_directions)) @ basis[:n_directions]


def standardize(seeds):
    """Accuracy of DCAGM and BSDR with columns in units of their own, and in one unit."""
    table = []
    for name, (source, most, size) in IN_UNITS.items():
        X, y = _as_measured(source, most)
        ways = {f"{size} principal components": size}
        if X.shape[1] <= WIDEST:
            ways = {f"{X.shape[1]} columns": None} | ways
        for way, size in ways.items():
            found = np.mean([_in_units(X, y, size, seed) for seed in seeds], axis=0)
            table.append([f"{name}, {way}", *(f"{accuracy:.3f}" for accuracy in found)])
            print(table[-1], flush=True)
    heads = [f"{model}, {way!r}" for model in ("DCAGM", "BSDR") for way in WAYS]
    return f"Accuracy with {FEW} labels a class by standardize", ["set, columns", *heads], table


def _as_measured(source, most):
    """Rows in their own units; expressions of genes in logarithms."""
    from load import load  # of the folder GNOMON_DATA

    if source == "digits":
        X, y = load_digits(return_X_y=True)
    else:
        X, y = (load(source)[part] for part in "Xy")
    X = sets.log2(20)(X, y)[0] if source == "tumors11" else np.asarray(X, dtype=float)
    rows = np.random.default_rng(0).permutation(len(y))[:most]
    X = X[rows]
    return X[:, X.std(axis=0) > 0], np.unique(y[rows], return_inverse=True)[1]


def _in_units(X, y, size, seed):
    """Of columns, or of so many principal components of the rows that a model is fitted to."""
    known = calibration.draw(y, FEW, np.random.default_rng(seed))
    few, hidden = np.flatnonzero(known >= 0), np.flatnonzero(known < 0)
    quick = {"n_init": 1, "max_iter": 50, "random_state": 0}

    def score(model, rows, codes):
        if size is not None:
            model = make_pipeline(PCA(min(size, len(rows) - 1), random_state=0), model)
        return model.fit(X[rows], codes).score(X[hidden], y[hidden])

    everyone = np.arange(len(y))
    found = [score(DCAGM(5, standardize=w, random_state=0), everyone, known) for w in WAYS]
    return found + [score(BSDR(5, standardize=w, **quick), few, y[few]) for w in WAYS]


def units(seeds):
    """Accuracy and log loss of DCAGM in units of the columns and in one unit, by labels."""
    table = []
    for name in MEASURED:
        X, y = _whole_set(name)
        least = np.asarray(X.min(axis=0).todense()).ravel() if sparse.issparse(X) else X.min(axis=0)
        begin = np.mean(least == 0) if least.min() == 0 else 0.0
        for labels in calibration.LABELS:
            if np.bincount(y).min() * calibration.SEEN >= labels + 1:
                found = np.mean([_both_units(X, y, labels, seed) for seed in seeds], axis=0)
                cells = [f"{a:.3f} / {loss:.3f}" for a, loss in found]
                table.append([f"{name}, {labels}", f"{begin:.2f}", *cells])
                print(table[-1], flush=True)
    heads = ["set, labels a class", "columns from zero on", "True", "False"]
    return "Accuracy / log loss of DCAGM by standardize, columns as measured", heads, table


def _whole_set(name):
    """Some rows, of the classes that have six of them."""
    from load import load  # of the folder GNOMON_DATA

    bundled = {"digits": load_digits, "wine": load_wine, "breast": load_breast_cancer}
    found = bundled[name]() if name in bundled else load(name)
    X, y = (found["data"], found["target"]) if name in bundled else (found["X"], found["y"])
    rows = np.sort(np.random.default_rng(0).permutation(len(y))[:MOST_ROWS])
    _, place, counts = np.unique(y[rows], return_inverse=True, return_counts=True)
    rows = rows[counts[place] >= 6]
    X = sparse.csr_array(X, dtype=float) if sparse.issparse(X) else np.asarray(X, dtype=float)
    return X[rows], np.unique(y[rows], return_inverse=True)[1]


def _both_units(X, y, labels, seed):
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(y)), [int(calibration.SEEN * len(y))])
    known = calibration.draw(y[train], labels, rng)
    models = [DCAGM(min(5, X.shape[1]), standardize=way) for way in (True, False)]
    return [calibration.score(model, X, y, train, test, known)[:2] for model in models]


PARTS = {
    **{"dimension": dimension, "prior": prior, "chunks": chunks, "sizes": sizes, "bsdr": bsdr},
    **{"standardize": standardize, "units": units},
}


if __name__ == "__main__":
    main()
