"""PPCA against its peers: time, memory and accuracy, as ratios in one run.

    python benchmarks/ppca_peers.py

The sparse text is 20 Newsgroups from GNOMON_DATA where it is there, else random text of its size.
"""

import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA, TruncatedSVD

from gnomon import PPCA

from measure import alternate, data_folder, peak_memory, process_memory, write


def dense_rows():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200_000, 10)) @ rng.normal(size=(10, 200))
    X += rng.normal(size=X.shape)
    times = alternate({"gnomon": lambda: PPCA(10).fit(X), "peer": lambda: PCA(10).fit(X)})
    return ["dense 200,000 x 200, q = 10: time over scikit-learn's PCA", 1.3, ratio(times)]


def text():
    if data_folder() is None:
        return sparse.random(18820, 29122, density=0.0029, random_state=0, format="csr")
    from load import load, tfidf

    return tfidf(load("ng20")["X"])


def sparse_rows(X, q=20):
    svd = TruncatedSVD(q, n_iter=5, random_state=0)
    model = PPCA(q, random_state=0)
    times = alternate({"gnomon": lambda: model.fit(X), "peer": lambda: svd.fit(X)})
    exact = PPCA(q, random_state=0, tol=1e-12).fit(X)
    lost = unexplained(X, exact.components_)
    # The peer does not centre, so its energy is compared with the best uncentred one.
    _, s, _ = sparse.linalg.svds(X, k=q, random_state=0)
    peer_lost = 1 - captured(X, svd.components_) / np.sum(s**2)
    ours_lost = (unexplained(X, model.components_) - lost) / (1 - lost)
    return [
        ["sparse text, q = 20: time over TruncatedSVD(n_iter=5)", 1.0, ratio(times)],
        ["the same: energy lost against the best subspace, ours", "<= peer", f"{ours_lost:.1e}"],
        ["the same: energy lost against the best subspace, TruncatedSVD", "", f"{peer_lost:.1e}"],
    ]


def captured(X, components):
    Q, _ = np.linalg.qr(components.T)
    return float(np.sum((X @ Q) ** 2))


def unexplained(X, components):
    Q, _ = np.linalg.qr(components.T)
    mean = np.asarray(X.mean(axis=0)).ravel()
    total = X.multiply(X).sum() - X.shape[0] * mean @ mean
    return float(1 - np.sum((X @ Q - mean @ Q) ** 2) / total)


def memory_rows(X, q=20):
    models = {
        "ours": f"from gnomon import PPCA as Model; model = Model({q}, random_state=0)",
        "peer": "from sklearn.decomposition import TruncatedSVD as Model; "
        f"model = Model({q}, n_iter=5, random_state=0)",
    }
    with tempfile.TemporaryDirectory() as folder:
        sparse.save_npz(Path(folder, "X.npz"), X, compressed=False)
        read = f"from scipy import sparse; X = sparse.load_npz({str(Path(folder, 'X.npz'))!r})"
        peaks = {
            who: process_memory(f"{read}\n{code}\nmodel.fit(X)") for who, code in models.items()
        }
    ours = peak_memory(lambda: PPCA(q, random_state=0).fit(X))
    peer = peak_memory(lambda: TruncatedSVD(q, n_iter=5, random_state=0).fit(X))
    return [
        [
            "sparse text, q = 20: peak memory of the process over TruncatedSVD's",
            1.5,
            round(peaks["ours"] / peaks["peer"], 2),
        ],
        ["the same: arrays held beyond X alone, over TruncatedSVD's", "", round(ours / peer, 2)],
    ]


def imputation_rows(q=15):
    digits = load_digits().data
    digits = digits[:, digits.std(axis=0) > 0]
    gaps = np.random.default_rng(0).random(digits.shape) < 0.2
    X = np.where(gaps, np.nan, digits)
    start = time.perf_counter()
    filled = PPCA(q).fit(X).impute(X)
    ours = time.perf_counter() - start
    error = np.sqrt(np.mean((filled - digits)[gaps] ** 2))
    rows = [["digits, 20 % removed, q = 15: RMSE of imputed values", 2.88, round(error, 3)]]
    try:
        import ppca
    except ImportError:
        print("skipped: the peer ppca-py is not installed")
        return rows
    peer = ppca.PPCA(n_components=q)
    start = time.perf_counter()
    peer.fit(X)
    peer_filled, _ = peer.impute_missing(X)
    theirs = time.perf_counter() - start
    peer_error = np.sqrt(np.mean((peer_filled - digits)[gaps] ** 2))
    rows += [
        ["the same: RMSE of ppca-py", "", round(float(peer_error), 3)],
        ["the same: time over ppca-py", 0.5, round(ours / theirs, 3)],
    ]
    return rows


def import_rows():
    def seconds(module):
        code = (
            f"import time; t = time.perf_counter(); import {module}; print(time.perf_counter() - t)"
        )
        runs = [
            float(
                subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout
            )
            for _ in range(5)
        ]
        return min(runs)

    share = seconds("gnomon") / seconds("sklearn.decomposition")
    return ["import gnomon over import sklearn.decomposition", 1.2, round(share, 3)]


def ratio(times):
    return round(times["gnomon"] / times["peer"], 2)


if __name__ == "__main__":
    X = text()
    write(
        "ppca_peers",
        "PPCA against its peers",
        ["what", "asked, at most", "measured"],
        [
            dense_rows(),
            *sparse_rows(X),
            *memory_rows(X),
            *imputation_rows(),
            import_rows(),
        ],
        [f"Sparse text: {X.shape[0]} x {X.shape[1]}, {X.nnz} entries; times: least of five."],
    )
