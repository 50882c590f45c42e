"""What the automatic choice of supervision costs: fits with "auto" against fits at s = 0.5.

All in one run and in turn; the least of several repeats counts, in seconds of the processor.

    python benchmarks/supervision_cost.py
"""

import time

import numpy as np
from sklearn.decomposition import TruncatedSVD

import supervision_sets as sets
from gnomon import SPPCA

import measure

SMALL = ("orl", "yale", "tumors11", "digits", "usps", "tdt2")


def main():
    rows = [synthetic()]
    if measure.data_folder() is not None:
        from load import load, tfidf

        found = load("ng20")
        rows.append(compare("ng20 TF-IDF", tfidf(found["X"]), found["y"], 5, 20, repeats=2))
        for name in SMALL:
            X, y, per_class = sets.read(name)
            rows.append(compare(name, X, y, per_class, 10, repeats=5))
    measure.write(
        "supervision_cost",
        'Processor seconds of SPPCA with supervision="auto" against one fit at s = 0.5',
        ["set", "rows", "columns", "components", "s = 0.5", "auto", "auto / s = 0.5", "SVD"],
        rows,
        ["SVD is scikit-learn's TruncatedSVD(n_iter=5) with as many components."],
    )


def synthetic():
    rng = np.random.default_rng(0)
    y = np.arange(200_000) % 10
    X = rng.standard_normal((200_000, 200)) * np.arange(1, 201) ** -0.5
    X += 0.3 * rng.standard_normal((10, 200))[y]
    return compare("dense 200,000 x 200", X, y, 20, 10, repeats=2)


def compare(name, X, y, per_class, q, repeats):
    rng = np.random.default_rng(0)
    labels = np.full(len(y), -1)
    for c in np.unique(y):
        rows = rng.choice(np.flatnonzero(y == c), per_class, replace=False)
        labels[rows] = c
    seconds = measure.alternate(
        {
            "one": lambda: SPPCA(q, supervision=0.5).fit(X, labels),
            "auto": lambda: SPPCA(q).fit(X, labels),
            "svd": lambda: TruncatedSVD(q, n_iter=5, random_state=0).fit(X),
        },
        repeats,
        clock=time.process_time,
    )
    ratio = seconds["auto"] / seconds["one"]
    times = [f"{seconds[key]:.3f}" for key in ("one", "auto")]
    row = [name, *map(str, X.shape), str(q), *times, f"{ratio:.2f}", f"{seconds['svd']:.3f}"]
    print(" | ".join(row), flush=True)
    return row


if __name__ == "__main__":
    main()
