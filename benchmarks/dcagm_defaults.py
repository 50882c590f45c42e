"""How the defaults of DCAGM are chosen: cross-validation inside labelled rows, no test row used.

Run as ``python -m benchmarks.dcagm_defaults [minutes]`` with GNOMON_DATA set, again until it
says that all is done; adds to results/dcagm_defaults.json and writes the .md. By the protocol of
[PGK07] a fifth of the rows of each set is labelled. Each third of these labels is hidden in turn
and predicted, by the nearest labelled neighbour in the components and by the posterior, from
a fit with the other rows and from one without them. A variant changes one default, or
two. Weights of chunks are judged with chunks of four on half of the unlabelled rows.

Rule: of each parameter the value with the highest mean over the sets is a candidate if its gain
over the present default is more than twice its standard error. Since the best of many is flattered,
and values were changed one at a time, candidates are judged again on fresh splits, together and
one by one: all of them are taken if together they gain more than twice the standard error, else
the best single one that does, else none.
"""

import json
import sys
import time
import warnings
from contextlib import contextmanager

import numpy as np
from benchmarks.dcagm_accuracy import SETS, chunks_of_four, prepared
from benchmarks.measure import RESULTS, describe
from benchmarks.papers.data import MissingDataError
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import StratifiedShuffleSplit
from sklearn.neighbors import KNeighborsClassifier

from gnomon import DCAGM, SemiSupervisedSplit
from gnomon.models.dcagm import alternation, start

PATH = RESULTS / "dcagm_defaults.json"
SEED, FRESH_SEED, N_FOLDS = 1000, 4000, 3
N_SPLITS = dict.fromkeys(SETS, 3) | {"isolet": 1}
N_FRESH = dict.fromkeys(SETS, 6) | {"isolet": 2}
# The set that takes longest is cut down to this many rows in the first sweep.
MOST_ROWS = 1000
START = "start shrinkage"
# What is no parameter of DCAGM: where it is a constant.
CONSTANTS = {START: (start, "START_SHRINKAGE"), "prior_scale": (alternation, "PRIOR_SCALE")}
# The defaults as they were before this sweep, which stay but for what it says.
PRESENT = {
    "unlabelled_weight": 0.01,
    "chunk_weight": 0.1,
    "em_weight": 0.3,
    "ridge": 3.0,
    "prior_scale": 0.05,
    "n_gaussians": 2,
    "tol": 0.001,
    START: 0.01,
}
GRID = {
    "unlabelled_weight": (0.0, 0.1),
    "em_weight": (0.1, 1.0),
    "ridge": (1.0, 10.0),
    "prior_scale": (0.02, 0.2),
    "n_gaussians": (1, 3),
    START: (0.001, 0.1),
    "tol": (0.01, 0.0001),
}
# These act on unlabelled rows only.
UNLABELLED = {"unlabelled_weight", "em_weight"}
JOINT = [
    {"unlabelled_weight": 0.1, "em_weight": 0.1},
    {"unlabelled_weight": 0.0, "em_weight": 0.1},
    {"ridge": 10.0, "prior_scale": 0.2},
]
CHUNK_WEIGHTS = (0.0, 0.01, 1.0)
# The candidates of the first table, together and one by one.
CANDIDATES = [{START: 0.1, "tol": 0.01}, {START: 0.1}, {"tol": 0.01}]
FRESH = "fresh splits: "
VARIANTS = [{}, *({key: v} for key, values in GRID.items() for v in values), *JOINT]


def label(variant):
    """A variant in words."""
    return ", ".join(f"{key} {value:g}" for key, value in variant.items()) or "defaults"


@contextmanager
def replaced(values):
    """Constants with other values for a trial, by the names that variants have for them."""
    places = {key: CONSTANTS[key] for key in values}
    present = {key: getattr(module, name) for key, (module, name) in places.items()}
    try:
        for key, (module, name) in places.items():
            setattr(module, name, values[key])
        yield
    finally:
        for key, (module, name) in places.items():
            setattr(module, name, present[key])


def shortened(name):
    """The set, or some of its rows where they are many."""
    X, y, q, options = prepared(name)
    if len(y) <= MOST_ROWS:
        return X, y, q, options
    kept, _ = next(StratifiedShuffleSplit(1, train_size=MOST_ROWS, random_state=SEED).split(X, y))
    return X[kept], y[kept], q, options


def score(variant, case, train, hidden, chunks=None):
    """Accuracies on hidden labels by neighbour and posterior: with all rows, and with train only.

    The latter are left out where the variant, or chunks, can make no difference to them.
    """
    X, y, q, options = case
    labels = np.full(len(y), -1)
    labels[train] = y[train]
    parameters = PRESENT | variant
    constants = {key: parameters.pop(key) for key in CONSTANTS}
    n_fits = 1 if chunks is not None or (variant and variant.keys() <= UNLABELLED) else 2
    out = []
    with replaced(constants):
        for rows in [np.arange(len(y)), train][:n_fits]:
            given = None if chunks is None else chunks[rows]
            model = DCAGM(q, **options, **parameters).fit(X[rows], labels[rows], chunks=given)
            # The mixture alone is judged, as its settings are those of the mixture.
            model.class_head_ = None
            near = KNeighborsClassifier(1).fit(model.transform(X[train]), y[train])
            out += [near.score(model.transform(X[hidden]), y[hidden])]
            out += [model.score(X[hidden], y[hidden])]
    return out


def folds(case, n_splits, seed):
    """Labelled rows without a fold, the fold, and the chunks of a split."""
    X, y, _, _ = case
    splits = StratifiedShuffleSplit(n_splits, train_size=0.2, random_state=seed).split(X, y)
    for number, (train, others) in enumerate(splits):
        labels = np.full(len(y), -1)
        labels[train] = y[train]
        mixed = np.random.default_rng((seed, number)).permutation(others)
        chunks = chunks_of_four(y, mixed[: len(mixed) // 2])
        for kept, hidden in SemiSupervisedSplit(N_FOLDS, random_state=number).split(X, labels):
            yield np.intersect1d(kept, train), hidden, chunks


def trials():
    """What is to be done: a key, the name of the set, the variant, whether with chunks."""
    for variant in VARIANTS:
        for name in SETS:
            yield f"{label(variant)} | {name}", name, variant, False
    for weight in (PRESENT["chunk_weight"], *CHUNK_WEIGHTS):
        for name in SETS[:5]:
            variant = {"chunk_weight": weight}
            yield f"{label(variant)} | {name}", name, variant, True
    for variant in [{}, *CANDIDATES]:
        for name in SETS:
            yield f"{FRESH}{label(variant)} | {name}", name, variant, False


def run(stored, deadline):
    """Do what is missing until the deadline; whether all is done."""
    cases = {}
    for key, name, variant, chunked in trials():
        if key in stored:
            continue
        if time.monotonic() > deadline:
            return False
        fresh = key.startswith(FRESH)
        read = prepared if fresh else shortened
        try:
            case = cases.get((name, read)) or read(name)
        except MissingDataError as error:
            print(f"{name} skipped: {error}")
            continue
        cases[name, read] = case
        n_splits = (N_FRESH if fresh else N_SPLITS)[name]
        stored[key] = [
            score(variant, case, train, hidden, chunks if chunked else None)
            for train, hidden, chunks in folds(case, n_splits, FRESH_SEED if fresh else SEED)
        ]
        PATH.write_text(json.dumps(stored) + "\n")
        print(key, np.mean(stored[key], axis=0).round(3), flush=True)
    return True


def accuracy(stored, name, key, against):
    """Mean accuracy of every fold in per cent; what a variant leaves out is the other's."""
    values, other = (np.array(stored[f"{n} | {key}"]) for n in (name, against))
    return 100 * np.hstack([values, other[:, values.shape[1] :]]).mean(axis=1)


def gains(stored, name, against, sets):
    """Means of the sets in per cent, mean gain over another variant, its standard error."""
    totals, means, errors = [], [], []
    for key in sets:
        values = accuracy(stored, name, key, against)
        change = values - accuracy(stored, against, key, against)
        totals.append(values.mean())
        means.append(change.mean())
        errors.append(change.std(ddof=1) / np.sqrt(len(change)))
    return np.array(totals), np.mean(means), np.sqrt(np.sum(np.square(errors))) / len(sets)


def table(stored, names, against, sets):
    """Lines of the table."""
    lines = [
        "| changed | " + " | ".join(sets) + " | mean | gain (s.e.) |",
        "|---" * (3 + len(sets)) + "|",
    ]
    for name in names:
        totals, gain, error = gains(stored, name, against, sets)
        cells = " | ".join(f"{value:.1f}" for value in (*totals, totals.mean()))
        better = "" if name == against else f"{gain:+.2f} ({error:.2f})"
        lines.append(f"| {name} | {cells} | {better} |")
    return lines


def best(tried, present):
    """The value of the rule, from the gains and errors of those tried."""
    value = max(tried, key=lambda v: tried[v][1])
    return value if tried[value][1] > 2 * tried[value][2] else present


def candidates(stored):
    """Of each parameter the value of the first part of the rule."""
    out = {}
    for key, values in GRID.items():
        tried = {value: gains(stored, label({key: value}), "defaults", SETS) for value in values}
        out[key] = best(tried, PRESENT[key])
    present = label({"chunk_weight": PRESENT["chunk_weight"]})
    tried = {w: gains(stored, label({"chunk_weight": w}), present, SETS[:5]) for w in CHUNK_WEIGHTS}
    return out | {"chunk_weight": best(tried, PRESENT["chunk_weight"])}


def confirmed(stored):
    """What the second part of the rule takes."""
    tried = [(v, gains(stored, FRESH + label(v), FRESH + "defaults", SETS)) for v in CANDIDATES]
    passed = [(v, gain) for v, (_, gain, error) in tried if gain > 2 * error]
    if passed and passed[0][0] == CANDIDATES[0]:
        return CANDIDATES[0]
    return max(passed, key=lambda pair: pair[1])[0] if passed else {}


def report(stored):
    """The page of results."""
    counts = ", ".join(f"{key} {N_FOLDS * count}" for key, count in N_SPLITS.items())
    names = [label(variant) for variant in VARIANTS]
    weights = [label({"chunk_weight": w}) for w in (PRESENT["chunk_weight"], *CHUNK_WEIGHTS)]
    return "\n".join(
        [
            "# The defaults of DCAGM by cross-validation inside labelled rows",
            "",
            f"{describe()}; seed {SEED}; folds: {counts}; isolet: {MOST_ROWS} rows.",
            "",
            "Accuracy on hidden labels in per cent, the mean of four figures: by nearest neighbour "
            "and by posterior, with unlabelled rows and without.",
            "",
            "Defaults before the sweep: " + label(PRESENT) + ".",
            "",
            *table(stored, names, "defaults", SETS),
            "",
            "With chunks of four on half of the unlabelled rows:",
            "",
            *table(stored, weights, weights[0], SETS[:5]),
            "",
            "Candidates, the best value of each parameter if it gains more than twice the standard "
            "error, else the default: "
            + ", ".join(f"{key} {value:g}" for key, value in candidates(stored).items())
            + ".",
            "",
            f"Again on fresh splits of all rows, seed {FRESH_SEED}, twice as many folds:",
            "",
            *table(stored, [FRESH + label(v) for v in [{}, *CANDIDATES]], FRESH + "defaults", SETS),
            "",
            f"Taken: {label(confirmed(stored))}.",
            "",
        ]
    )


def go_on(path, run, report):
    """Read what is stored, do more for the minutes asked for, report when all is done."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    minutes = float(sys.argv[1]) if len(sys.argv) > 1 else np.inf
    stored = json.loads(path.read_text()) if path.exists() else {}
    if not run(stored, time.monotonic() + 60 * minutes):
        print("more is to be done: run again")
    elif stored:
        path.with_suffix(".md").write_text(report(stored))
        print(report(stored))


if __name__ == "__main__":
    go_on(PATH, run, report)
