"""Chunks beside labels: what they add to SPPCA and DCAGM, and what wrong members cost.

Some rows of each class have their label; every labelled row has four others in its chunk, which
share its label. In half of the cases each of these is drawn from a chunk of another with
probability one fifth. Accuracy is that on all rows without a label of their own.

    GNOMON_DATA=folder python benchmarks/sppca_chunks.py --repeats 10
"""

import argparse
import warnings

import numpy as np
from sklearn.base import clone

import supervision_sets as sets
from gnomon import DCAGM, SPPCA

import measure

SETS = "digits wine breast yale usps lung vowel mfeat".split()
LABELS = (2, 5)
MEMBERS = 4
WRONG = 0.2
WORDS = {None: "labels", "right": "and chunks", "mixed": "and chunks, 20 % wrong"}
CASES = [(m, c) for m in (SPPCA(10), DCAGM(random_state=0)) for c in (None, "right", "mixed")]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--first", type=int, default=300, help="seed of the first repeat")
    options = parser.parse_args()
    if measure.data_folder() is None:
        return
    rows = []
    for name in SETS:
        X, y, _ = sets.read(name)
        for labels in LABELS:
            seeds = range(options.first, options.first + options.repeats)
            found = np.mean([one(X, y, labels, seed) for seed in seeds], axis=0)
            rows.append([f"{name}, {labels}", *(f"{value:.3f}" for value in found)])
            print(rows[-1], flush=True)
    means = np.mean([[float(value) for value in row[1:]] for row in rows], axis=0)
    rows.append(["mean", *(f"{value:.3f}" for value in means)])
    measure.write(
        "sppca_chunks",
        "Accuracy with labels, and with chunks of five around them",
        [
            "set, labels a class",
            *(f"{type(m).__name__}, {WORDS[c]}" for m, c in CASES),
        ],
        rows,
        [
            f"{options.repeats} draws, seeds {options.first} and following; SPPCA with ten "
            "components, DCAGM with its two."
        ],
    )


def one(X, y, labels, seed):
    """Accuracies of both models without chunks, with right ones, with a fifth of them wrong."""
    rng = np.random.default_rng(seed)
    known, chunks = draw(y, labels, rng)
    members = np.flatnonzero((chunks >= 0) & (known < 0))
    moved = members[rng.random(len(members)) < WRONG]
    mixed = chunks.copy()
    mixed[moved] = chunks[rng.permutation(moved)]
    hidden = known < 0
    scores = []
    for model, groups in CASES:
        given = {None: None, "right": chunks, "mixed": mixed}[groups]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            fitted = clone(model).fit(X, known, chunks=given)
        scores.append(fitted.score(X[hidden], y[hidden]))
    return scores


def draw(y, labels, rng):
    """Labels of some rows of each class, -1 elsewhere, and the chunk of each of them."""
    known, chunks = np.full(len(y), -1), np.full(len(y), -1)
    for c in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == c))
        labelled, others = np.split(rows, [min(labels, len(rows) // 2)])
        known[labelled] = c
        chunks[labelled] = labelled
        for place, row in enumerate(labelled):
            chunks[others[place * MEMBERS : (place + 1) * MEMBERS]] = row
    return known, chunks


if __name__ == "__main__":
    main()
