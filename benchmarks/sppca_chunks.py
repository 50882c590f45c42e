"""Chunks beside labels: what they add to SPPCA, and what wrong members cost.

Some rows of each class have their label; every labelled row has four others in its chunk, which
share its label. In half of the cases each of these is drawn from a chunk of another with
probability one fifth. Accuracy is that on all rows without a label of their own.

    GNOMON_DATA=folder python benchmarks/sppca_chunks.py --repeats 10
"""

import argparse
import warnings

import numpy as np

import supervision_sets as sets
from gnomon import SPPCA

import measure

SETS = "digits wine breast yale usps lung vowel mfeat".split()
LABELS = (2, 5)
MEMBERS = 4
WRONG = 0.2


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
        "Accuracy of SPPCA with labels, and with chunks of five around them",
        ["set, labels a class", "labels", "and chunks", "and chunks, 20 % wrong"],
        rows,
        [f"{options.repeats} draws, seeds {options.first} and following; ten components."],
    )


def one(X, y, labels, seed):
    """Accuracies without chunks, with right ones, with a fifth of their members wrong."""
    rng = np.random.default_rng(seed)
    known, chunks = draw(y, labels, rng)
    members = np.flatnonzero((chunks >= 0) & (known < 0))
    moved = members[rng.random(len(members)) < WRONG]
    mixed = chunks.copy()
    mixed[moved] = chunks[rng.permutation(moved)]
    hidden = known < 0
    scores = []
    for groups in (None, chunks, mixed):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model = SPPCA(10).fit(X, known, chunks=groups)
        scores.append(model.score(X[hidden], y[hidden]))
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
