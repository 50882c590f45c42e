"""Predicted classes and their probabilities with few labels, on rows that the fit has not seen.

Seven of ten rows are given to the fit, some of them with their labels; the others are scored. A
class with fewer rows than labels are asked for has all of its rows labelled. Log
loss and calibration error (ten bins) are those of `predict_proba`; the peer is multinomial
logistic regression on 20 standardised principal components.

    python benchmarks/calibration.py --repeats 10 --groups main other
    python benchmarks/calibration.py --repeats 5 --of dcagm
    python benchmarks/calibration.py --repeats 5 --of bsdr
    python benchmarks/calibration.py --heads --repeats 2
    python benchmarks/calibration.py --doubt --repeats 4
    python benchmarks/calibration.py --curves --repeats 2
    python benchmarks/calibration.py --noise --repeats 20

Two are of models that take longer. Then other penalties of the head are tried, and heads on maps of
other sizes; other shares of the class shares in the probabilities; reliability curves are kept: how
often the predicted class is right, by how sure the prediction is; the last has random labels of
pure noise.
"""

import argparse
import json
import warnings

import numpy as np
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import supervision_sets as sets
from gnomon import BSDR, DCAGM, SPPCA, KernelSPPCA, LabelledOnly, MultinomialProbit
from gnomon.estimators import _heads
from gnomon.models.strength import closed_form

import measure

GROUPS = {"main": sets.MAIN, "other": sets.OTHER, "wide": sets.WIDE}
LABELS = (2, 5, 20)
# Classes of which so large a share has as many labels as are asked for, and a row more, make a
# task: 27 of the main sets.
ENOUGH_CLASSES = 2 / 3
# A set of which other tasks take some rows, too few for so many labels.
WHOLE = {("yaleb", 20): "yaleb_whole"}
COMPONENTS = 10
# Sets on which other heads are tried: all but the two of thousands of rows.
HEADS_ON = [name for name in sets.MAIN if name not in ("tdt2", "usps")]
SPPCA_ALONE = ("SPPCA",)
# Models of a table, by the end of its name.
TABLES = {
    "": ("SPPCA", "KernelSPPCA", "PCA + logistic"),
    "_dcagm": ("DCAGM", "PCA + logistic"),
    "_bsdr": ("BSDR", "BSDR, plug-in", "PCA + logistic"),
}
# Labelled rows that the class shares count as, and small sets on which these are tried.
WORTHS = (0.0, 0.5, 2.0)
DOUBT_ON = "yale tumors11 digits wine breast lung ionosphere vowel".split()
N_BINS = 10
# The two that predict classes on maps for few labels.
CURVES_OF = ("SPPCA", "KernelSPPCA")
SEEN = 0.7
# Columns, classes and labels a class of noise, and those that predict it, five components each.
NOISE = [(20, 2, 5), (20, 5, 5), (20, 10, 2), (300, 2, 20), (300, 5, 5), (300, 10, 5)]
OF_NOISE = {
    "DCAGM": lambda: DCAGM(5),
    "SPPCA": lambda: SPPCA(5),
    "BSDR": lambda: LabelledOnly(BSDR(5, random_state=0)),
    "BSDR, plug-in": lambda: LabelledOnly(BSDR(5, proba="plug-in", random_state=0)),
    "MultinomialProbit": lambda: LabelledOnly(MultinomialProbit()),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--groups", nargs="*", default=["main"], choices=list(GROUPS))
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--heads", action="store_true", help="other heads instead")
    parser.add_argument("--doubt", action="store_true", help="other class shares instead")
    parser.add_argument("--of", choices=("dcagm", "bsdr"), help="models that take longer instead")
    parser.add_argument("--curves", action="store_true", help="reliability curves instead")
    parser.add_argument("--noise", action="store_true", help="random labels instead")
    parser.add_argument("--first", type=int, default=700, help="seed of the first repeat")
    options = parser.parse_args()
    if options.noise:
        return run_noise(options)
    if measure.data_folder() is None:
        return
    if options.heads:
        return run_heads(options)
    if options.doubt:
        return run_doubt(options)
    if options.curves:
        return run_curves(options)
    for group in options.groups:
        run_group(group, options)


def run_heads(options):
    """Means over the main sets for other heads, one at a time; the defaults last."""
    usual = (_heads.HEAD_C, closed_form.RULE.wide_components)
    variants = [(c, usual[1]) for c in (1.0, 10.0, 30.0, 1000.0)]
    variants += [(usual[0], wide) for wide in (10, 40)]
    rows = []
    for penalty, wide in [*variants, usual]:
        _heads.HEAD_C = penalty
        closed_form.RULE = closed_form.RULE._replace(wide_components=wide)
        found = [
            run_task(X, y, labels, options, SPPCA_ALONE)
            for X, y, _ in map(sets.read, HEADS_ON)
            for labels in LABELS
            if np.bincount(y).min() * SEEN >= labels + 1
        ]
        rows.append(_row(f"C = {penalty:g}, {wide} components", np.mean(found, axis=0)))
        print(rows[-1], flush=True)
    measure.write(
        "calibration_heads",
        "Accuracy / log loss / calibration error of SPPCA with other heads",
        ["head", "SPPCA"],
        rows,
        [f"{options.repeats} splits of {', '.join(HEADS_ON)}, {len(found)} tasks."],
    )


def run_doubt(options):
    """Means over small sets with other weights of the class shares."""
    rows = []
    for worth in WORTHS:
        _heads.WORTH_OF_SHARES = worth
        cells = {}
        for name in DOUBT_ON:
            X, y, _ = sets.read(name)
            for labels in LABELS:
                if np.bincount(y).min() * SEEN >= labels + 1:
                    found = run_task(X, y, labels, options, ("SPPCA", "KernelSPPCA", "DCAGM"))
                    cells[name, labels] = np.column_stack(
                        [found, found[:, 1] > np.log(y.max() + 1)]
                    )
        mean, above = np.mean(list(cells.values()), axis=0), np.sum(list(cells.values()), axis=0)
        figures = _row(f"{worth:g} rows", mean[:, :3])
        rows.append([*figures, ", ".join(f"{count:.0f}" for count in above[:, 3])])
        print(rows[-1], flush=True)
    measure.write(
        "calibration_doubt",
        "Accuracy / log loss / calibration error by how many rows the class shares count as",
        ["class shares", "SPPCA", "KernelSPPCA", "DCAGM", "log loss above a uniform guess"],
        rows,
        [f"{options.repeats} splits, seeds {options.first} and following, {len(cells)} tasks."],
    )


def run_noise(options):
    """How often each says that it found classes in noise, and its log loss above uniform."""
    rows, seeds = [], range(options.first, options.first + options.repeats)
    for case in NOISE:
        cells = []
        for make in OF_NOISE.values():
            found = np.array([of_noise(make(), *case, seed) for seed in seeds])
            cells.append(f"{found[:, 0].mean():.2f} / {found[:, 1].mean():+.3f}")
        rows.append(["{} columns, {} classes, {} labels each".format(*case), *cells])
        print(rows[-1], flush=True)
    measure.write(
        "calibration_noise",
        "Random labels of pure noise: share of fits that find classes / log loss above uniform",
        ["noise", *OF_NOISE],
        rows,
        [f"200 rows and 200 unseen, {len(seeds)} draws, seeds {options.first} and following."],
    )


def of_noise(model, n_columns, n_classes, labels, seed):
    """Whether a model does not say that it found nothing, and its log loss above uniform."""
    rng = np.random.default_rng(seed)
    X, y = rng.standard_normal((400, n_columns)), rng.permutation(np.arange(400) % n_classes)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[:200], draw(y[:200], labels, rng))
        loss = figures(model.predict_proba(X[200:]), model.classes_, y[200:])[1]
    said = getattr(getattr(model, "estimator_", model), "class_doubt_", 0.0)
    return said != _heads.NOTHING_FOUND, loss - np.log(n_classes)


def run_curves(options):
    """Per set and model: rows, right ones and sums of probabilities in each bin of sureness."""
    record = {"repeats": options.repeats, "sets": {}, "machine": measure.machine()}
    for name in sets.MAIN:
        X, y, _ = sets.read(name)
        labels = max(k for k in LABELS if k <= 5 and np.bincount(y).min() * SEEN >= k + 1)
        found = {model: np.zeros((3, N_BINS)) for model in CURVES_OF}
        for seed in range(options.first, options.first + options.repeats):
            for model, total in found.items():
                total += curve(model, X, y, labels, seed)
        record["sets"][name] = {"labels": labels} | {m: t.tolist() for m, t in found.items()}
        print(name, {m: (t[1].sum() / t[0].sum()).round(3) for m, t in found.items()}, flush=True)
        (measure.RESULTS / "calibration_curves.json").write_text(json.dumps(record) + "\n")


def curve(model, X, y, labels, seed):
    """Rows, right ones and sums of the largest probability by bins, of one split."""
    rng = np.random.default_rng(seed)
    train, test = np.split(rng.permutation(len(y)), [int(SEEN * len(y))])
    known = draw(y[train], labels, rng)
    fitted = models((len(train), X.shape[1]))[model]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        P = fitted.fit(X[train], known).predict_proba(X[test])
    sure, hit = P.max(axis=1), fitted.classes_[P.argmax(axis=1)] == y[test]
    bins = np.minimum((sure * N_BINS).astype(int), N_BINS - 1)
    return [np.bincount(bins, w, minlength=N_BINS) for w in (np.ones(len(y[test])), hit, sure)]


def run_group(group, options):
    end = f"_{options.of}" if options.of else ""
    wanted = TABLES[end]
    cells = {}
    for name in GROUPS[group]:
        for labels in LABELS:
            X, y, _ = sets.read(WHOLE.get((name, labels), name))
            if np.mean(np.bincount(y) * SEEN >= labels + 1) >= ENOUGH_CLASSES:
                cells[name, labels] = run_task(X, y, labels, options, wanted)
                print(name, labels, cells[name, labels].round(3).tolist(), flush=True)
    rows = [_row(f"{name}, {labels}", found) for (name, labels), found in cells.items()]
    rows.append(_row("mean", np.mean(list(cells.values()), axis=0)))
    classes = {name: sets.read(name)[1].max() + 1 for name in GROUPS[group]}
    above = [
        sum(found[m, 1] > np.log(classes[name]) for (name, _), found in cells.items())
        for m in range(len(wanted))
    ]
    measure.write(
        f"calibration_{group}{end}",
        f"Accuracy / log loss / calibration error on unseen rows, {group} sets",
        ["set, labels a class", *wanted],
        rows,
        [
            f"{options.repeats} splits, seeds {options.first} and following; {COMPONENTS} "
            "components, 5 of DCAGM. Log loss above that of a uniform guess in "
            f"{', '.join(map(str, above))} of {len(cells)} tasks."
        ],
    )


def models(shape):
    q = min(COMPONENTS, *shape)
    peer = make_pipeline(
        PCA(min(20, min(shape) - 1), svd_solver="arpack", random_state=0),
        StandardScaler(),
        LabelledOnly(LogisticRegression(max_iter=2000)),
    )
    return {
        "SPPCA": SPPCA(q, random_state=0),
        "KernelSPPCA": KernelSPPCA(q, random_state=0),
        "PCA + logistic": peer,
        "DCAGM": DCAGM(min(q, 5)),
        "BSDR": LabelledOnly(BSDR(q, random_state=0)),
        "BSDR, plug-in": LabelledOnly(BSDR(q, proba="plug-in", random_state=0)),
    }


def run_task(X, y, labels, options, wanted):
    """Means over splits (methods, figures)."""
    found = []
    for seed in range(options.first, options.first + options.repeats):
        rng = np.random.default_rng(seed)
        order = rng.permutation(len(y))
        train, test = np.split(order, [int(SEEN * len(y))])
        known = draw(y[train], labels, rng)
        every = models((len(train), X.shape[1]))
        fits = [every[name] for name in wanted]
        found.append([score(model, X, y, train, test, known) for model in fits])
    return np.mean(found, axis=0)


def draw(y, labels, rng):
    """Labels of some rows of each class, -1 elsewhere."""
    known = np.full(len(y), -1)
    for c in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == c))[:labels]
        known[rows] = c
    return known


def score(model, X, y, train, test, known):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(X[train], known)
        return figures(model.predict_proba(X[test]), model.classes_, y[test])


def figures(P, classes, y):
    """Accuracy, log loss and calibration error; a class never labelled has no probability."""
    known = np.isin(y, classes)
    P, y = P[known], np.searchsorted(classes, y[known])
    hit, sure = P.argmax(axis=1) == y, P.max(axis=1)
    loss = -np.mean(np.log(np.maximum(P[np.arange(len(y)), y], 1e-15)))
    bins = np.minimum((sure * N_BINS).astype(int), N_BINS - 1)
    gaps = [abs(np.sum(hit[bins == b]) - np.sum(sure[bins == b])) for b in range(N_BINS)]
    return hit.mean(), loss, np.sum(gaps) / len(y)


def _row(name, found):
    return [name, *(" / ".join(f"{value:.3f}" for value in figure) for figure in found)]


if __name__ == "__main__":
    main()
