"""Wall time of fits with default threads over that with one thread: alone, and with a core busy.

    python benchmarks/threads.py [cases whose names have this]

For the second table another process keeps one core busy all the time.
"""

import sys
import time
import warnings

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from threadpoolctl import threadpool_limits

from gnomon import BSDR, DCAGM, PPCA, PRPCA, SPPCA, KernelSPPCA, Links

import measure

REPEATS = 7


def main():
    wanted = " ".join(sys.argv[1:])
    fits = {name: fit for name, fit in cases().items() if wanted in name}
    quiet = measured(fits)
    with measure.busy_core():
        busy = measured(fits)
    measure.write(
        "threads",
        "Seconds of a fit with default threads and with one",
        ["fit", "default", "one thread", "ratio", "default, core busy", "one, core busy", "ratio"],
        [[*row, *other[1:]] for row, other in zip(quiet, busy, strict=True)],
        [
            f"Medians of {REPEATS} pairs of fits, one after another, and of their ratios: the "
            "least of a few is luck where a core is busy. In the last three columns another "
            "process keeps one core busy all the time."
        ],
    )


def measured(fits):
    """A row for each fit: its name, seconds with default threads and with one, their ratio."""
    rows = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name, fit in fits.items():
            pairs = np.array([[timed(fit), timed(on_one_thread(fit))] for _ in range(REPEATS)])
            default, one = np.median(pairs, axis=0)
            ratio = np.median(pairs[:, 0] / pairs[:, 1])
            rows.append([name, f"{default:.3f}", f"{one:.3f}", f"{ratio:.2f}"])
            print(" | ".join(rows[-1]), flush=True)
    return rows


def timed(fit):
    """Seconds of a fit."""
    start = time.perf_counter()
    fit()
    return time.perf_counter() - start


def on_one_thread(fit):
    def run():
        with threadpool_limits(1):
            fit()

    return run


def cases():
    X, y = load_digits(return_X_y=True)
    rng = np.random.default_rng(0)
    some = np.where(rng.random(len(y)) < 0.2, y, -1)
    gaps = np.where(rng.random((600, 64)) < 0.1, np.nan, X[:600])
    dense = rng.standard_normal((200_000, 100)).astype(np.float32)
    few = np.where(rng.random(len(dense)) < 0.01, dense[:, 0] > 0, -1)
    thin = sparse.random_array((100_000, 20_000), density=0.002, rng=rng, format="csr")
    marked = np.where(rng.random(thin.shape[0]) < 0.01, np.arange(thin.shape[0]) % 5, -1)
    likelihood = SPPCA(10, supervision="likelihood")
    landmarks, model = KernelSPPCA(5, n_landmarks=100), SPPCA(5).fit(dense, few)
    found = {
        "PPCA, digits with gaps": lambda: PPCA(5).fit(gaps),
        "PPCA, 200,000 x 100": lambda: PPCA(10).fit(dense),
        "SPPCA, digits": lambda: SPPCA(5).fit(X, some),
        "SPPCA, 200,000 x 100": lambda: SPPCA(5).fit(dense, few),
        "PPCA, sparse 100,000 x 20,000": lambda: PPCA(10).fit(thin),
        "SPPCA by likelihood, sparse 100,000 x 20,000": lambda: likelihood.fit(thin, marked),
        "KernelSPPCA, digits": lambda: KernelSPPCA(5).fit(X, some),
        "KernelSPPCA, 200,000 x 100, 100 landmarks": lambda: landmarks.fit(dense, few),
        "SPPCA, probabilities of 200,000 x 100": lambda: model.predict_proba(dense),
        "DCAGM, digits": lambda: DCAGM(5).fit(X, some),
        "BSDR, digits": lambda: BSDR(5, random_state=0).fit(X, some),
    }
    return found | (cases_of_papers() if measure.data_folder() else {})


def cases_of_papers():
    from load import load, tfidf  # of the folder GNOMON_DATA

    text, cora = load("ng20"), load("cora")
    T, y = sparse.csr_array(tfidf(text["X"])), text["y"]
    some = np.where(np.random.default_rng(0).random(len(y)) < 0.05, y, -1)
    content, links = sparse.csr_array(cora["X"], dtype=float), Links(cora["A"])
    learnt = PRPCA(5, relation="learnt", tol=1e-6, own_components=20)
    likelihood = SPPCA(10, supervision="likelihood")
    return {
        "SPPCA, 20 newsgroups": lambda: SPPCA(10).fit(T, some),
        "SPPCA by likelihood, 20 newsgroups": lambda: likelihood.fit(T, some),
        "PRPCA learnt, cora": lambda: learnt.fit(content, links=links),
    }


if __name__ == "__main__":
    main()
