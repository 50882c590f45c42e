"""BSDR against a plain writing of its paper's algorithm, and at 60,000 rows against a peer.

    python benchmarks/bsdr_speed.py [--parts paper large] [--sweeps 500] [--rows 60000]

Seconds are those of the processor (run it with one BLAS thread), so that other work on the machine
does not count. The first part needs the Multiple Features digits (mfeat) in GNOMON_DATA and is
left out else.
"""

import argparse
import resource
import time
import warnings

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression

import bsdr_plain
from gnomon import BSDR
from gnomon.linalg.data import Matrix
from gnomon.models.bsdr import sweeps
from gnomon.models.bsdr.factors import Gamma, Priors, make_model
from gnomon.models.bsdr.inputs import GramRidge
from gnomon.models.bsdr.outputs import ClassOutputs

from measure import data_folder, write

warnings.simplefilter("ignore", ConvergenceWarning)


def mfeat():
    from load import load

    data = load("mfeat")
    X, y = data["X"], data["y"]
    rng = np.random.default_rng(0)
    rows = np.concatenate([rng.permutation(np.flatnonzero(y == k))[:100] for k in range(10)])
    X = (X - X[rows].mean(axis=0)) / X[rows].std(axis=0)
    test = np.setdiff1d(np.arange(len(y)), rows)
    return X[rows], y[rows], X[test], y[test]


def exact_bound(plain, X, y):
    """The bound of a plain fit, its scores integrated exactly."""
    ridge = GramRidge(Matrix(X), 1.0)
    model = make_model(ridge, ClassOutputs(y, y.max() + 1), Priors())
    factors = sweeps.start(model, plain["Q"])
    factors = factors._replace(
        phi=Gamma(1.5, plain["phi"] / 1.5),
        Z=plain["Z"].T,
        B=np.vstack([plain["b"], plain["W"]]),
        C=plain["bW_covariance"],
        C_log_det=np.linalg.slogdet(plain["bW_covariance"])[1],
    )
    return sweeps.step(factors, model)[1]


def against_the_paper(n_sweeps):
    X, y, X_test, y_test = mfeat()
    start = time.process_time()
    plain = bsdr_plain.fit(X, y, 5, n_sweeps, np.random.default_rng(0))
    seconds = time.process_time() - start
    goal = exact_bound(plain, X, y)
    trace = []
    start = time.process_time()

    def watch(n_iter, state, objective):
        trace.append((time.process_time() - start, objective))
        return objective >= goal

    settings = {"latent_noise": 1.0, "n_init": 1, "max_iter": 300, "tol": 0, "random_state": 0}
    model = BSDR(5, callback=watch, **settings).fit(X, y)
    reached, bound = trace[-1]
    scores = X_test @ (plain["Q"] @ plain["W"]) + plain["b"]
    accuracy = np.mean(scores.argmax(axis=1) == y_test)
    return [
        [
            f"mfeat 1000 x 649, R = 5: plain writing, {n_sweeps} sweeps",
            f"{seconds:.0f} s, bound {goal:.1f}, accuracy {accuracy:.3f}",
            "",
        ],
        [
            "the same bound with gnomon",
            f"{reached:.1f} s, bound {bound:.1f}, accuracy {model.score(X_test, y_test):.3f}",
            f"{seconds / reached:.0f} times faster (asked: 20)",
        ],
    ]


def digits(n, rng):
    """Smooth 28 x 28 prototypes that shift, with strokes of their own and noise, in float32."""
    grid = np.stack(np.meshgrid(np.arange(28), np.arange(28)), axis=-1).reshape(-1, 2)
    centres = rng.uniform(6, 22, (10, 6, 2))
    y = rng.integers(0, 10, n)
    X = np.empty((n, 784), dtype=np.float32)
    for k in range(10):
        rows = np.flatnonzero(y == k)
        for part in np.array_split(rows, max(1, len(rows) // 500)):
            moved = centres[k] + 1.5 * rng.standard_normal((len(part), 6, 2))
            gaps = ((grid[None, :, None] - moved[:, None]) ** 2).sum(axis=-1)
            X[part] = np.exp(-gaps / 8).sum(axis=2)
    X += 0.3 * rng.standard_normal(X.shape, dtype=np.float32)
    return X, y


def large(n):
    rng = np.random.default_rng(0)
    X, y = digits(n + 5000, rng)
    X_test, y_test, X, y = X[n:], y[n:], X[:n], y[:n]
    start = time.process_time()
    peer = LogisticRegression(max_iter=100).fit(X, y)
    peer_seconds = time.process_time() - start
    start = time.process_time()
    model = BSDR(9, prior="column", random_state=0).fit(X, y)
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
    parts = []
    for rows in (n // 4, n // 2, n):
        start = time.process_time()
        BSDR(9, prior="column", max_iter=2, tol=0, random_state=0).fit(X[:rows], y[:rows])
        parts.append(time.process_time() - start)
    return [
        [
            f"{n} x 784 synthetic digits, 10 classes: LogisticRegression(max_iter=100)",
            f"{peer_seconds:.0f} s, accuracy {peer.score(X_test, y_test):.3f}",
            "",
        ],
        [
            f'BSDR(9, prior="column") on the same, {model.n_iter_} steps',
            f"{seconds:.0f} s, accuracy {model.score(X_test, y_test):.3f}",
            f"{seconds / peer_seconds:.1f} times the peer (asked: at most 20)",
        ],
        ["peak memory of the process, data included", f"{peak:.1f} GB", "asked: at most 4 GB"],
        [
            "two steps at a quarter, a half and all of the rows",
            ", ".join(f"{s:.1f} s" for s in parts),
            f"{parts[1] / parts[0]:.1f} and {parts[2] / parts[1]:.1f} (linear: 2)",
        ],
    ]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sweeps", type=int, default=500, help="of the plain writing")
    parser.add_argument("--rows", type=int, default=60_000)
    parser.add_argument("--parts", nargs="*", default=["paper", "large"])
    settings = parser.parse_args()
    table = []
    if "paper" in settings.parts and data_folder() is not None:
        table += against_the_paper(settings.sweeps)
    if "large" in settings.parts:
        table += large(settings.rows)
    write(
        "bsdr_speed_" + "_".join(settings.parts) if len(settings.parts) == 1 else "bsdr_speed",
        "BSDR: speed",
        ["what", "measured", "ratio"],
        table,
        notes=[
            "The plain writing has explicit inverses and 200 samples per expectation. Its bound is",
            "computed with exact expectations, so that both are measured alike. Seed 0. Seconds of",
            "the processor.",
        ],
    )
