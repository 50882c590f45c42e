"""Data sets of the supervision benchmark: rows, classes and labels a class.

Found by the environment variable GNOMON_DATA, but for those that scikit-learn brings.
"""

import numpy as np
from scipy import sparse
from sklearn.datasets import load_breast_cancer, load_digits
from sklearn.preprocessing import StandardScaler

MAIN = "yale orl pie10 yaleb tumors11 digits wine breast tdt2 usps".split()
OTHER = "mfeat isolet lung ionosphere vowel".split()
WIDE = (
    "tumors11_8a tumors11_8b tumors11_raw tumors14 tumors14_log lung_log tdt2_400 ng20_500 cornell "
    "texas mfeat_300 isolet_400 usps_300 yaleb14 orl20 pie10_200"
).split()
UNSEEN = (
    "cora cora_ml cora_pl washington pie58 pie58_600 iris balance housing ng20_1500 yaleb24 "
    "isolet_1500 vowel_400"
).split()


def read(name):
    """Rows X, class numbers y and labels a class of a set."""
    X, y, per_class = _build(name)
    return X, np.unique(y, return_inverse=True)[1], per_class


def _build(name):
    if name == "digits":
        found = load_digits()
        return found.data, found.target, 5
    if name == "breast":
        found = load_breast_cancer()
        return _standard(found.data), found.target, 5
    source, steps, per_class = RECIPES[name]
    from load import load  # of the folder GNOMON_DATA

    found = load(source)
    X, y = found["X"], found["y"]
    for step in steps:
        X, y = step(X, y)
    return X, y, per_class


def _standard(X):
    return StandardScaler().fit_transform(X[:, X.std(axis=0) > 0])


def standard(X, y):
    return _standard(X), y


def unit(X, y):
    return X / np.linalg.norm(X, axis=1, keepdims=True), y


def tfidf(X, y):
    X = sparse.csr_array(X, dtype=float)
    frequency = np.bincount(X.indices, minlength=X.shape[1])
    X = X @ sparse.diags_array(np.log(X.shape[0] / np.maximum(frequency, 1)))
    norms = np.sqrt(np.asarray(X.power(2).sum(axis=1))).ravel()
    return sparse.csr_array(sparse.diags_array(1 / np.where(norms > 0, norms, 1)) @ X), y


def log2(floor):
    return lambda X, y: (np.log2(np.maximum(X, floor)), y)


def some(n, seed=0):
    def step(X, y):
        rows = np.sort(np.random.default_rng(seed).permutation(len(y))[:n])
        return X[rows], y[rows]

    return step


def classes(kept):
    return lambda X, y: (X[np.isin(y, kept)], y[np.isin(y, kept)])


def drawn_classes(count, seed):
    def step(X, y):
        return classes(np.random.default_rng(seed).permutation(y.max() + 1)[:count])(X, y)

    return step


def frequent(least):
    def step(X, y):
        names, counts = np.unique(y, return_counts=True)
        return classes(names[counts >= least])(X, y)

    return step


RECIPES = {
    "yale": ("yale", [unit], 2),
    "orl": ("orl", [unit], 2),
    "pie10": ("pie10", [unit], 5),
    "yaleb": ("yaleb", [some(900), unit], 5),
    "yaleb_whole": ("yaleb", [unit], 5),
    "tumors11": ("tumors11", [log2(20), standard], 2),
    "wine": ("wine", [standard], 2),
    "usps": ("usps", [some(2000)], 5),
    "tdt2": ("tdt2", [tfidf, some(2000)], 5),
    "mfeat": ("mfeat", [standard], 5),
    "isolet": ("isolet", [some(2000)], 5),
    "lung": ("lung_bhatt203", [standard], 2),
    "ionosphere": ("ionosphere", [standard], 2),
    "vowel": ("vowel_vj", [standard], 5),
    "tumors11_8a": ("tumors11", [log2(20), drawn_classes(8, 1), standard], 2),
    "tumors11_8b": ("tumors11", [log2(20), drawn_classes(8, 2), standard], 2),
    "tumors11_raw": ("tumors11", [], 2),
    "tumors14": ("tumors14_part98", [standard], 2),
    "tumors14_log": ("tumors14_part98", [log2(20)], 2),
    "lung_log": ("lung_bhatt203", [log2(10)], 2),
    "tdt2_400": ("tdt2", [tfidf, some(400, 1), frequent(4)], 2),
    "ng20_500": ("ng20", [tfidf, some(500, 1)], 2),
    "cornell": ("webkb_cornell", [tfidf, frequent(4)], 2),
    "texas": ("webkb_texas", [tfidf, frequent(4)], 2),
    "mfeat_300": ("mfeat", [some(300, 1), standard], 2),
    "isolet_400": ("isolet", [some(400, 1)], 2),
    "usps_300": ("usps", [some(300, 1)], 2),
    "yaleb14": ("yaleb", [unit, classes(np.arange(14)), some(400, 1)], 2),
    "orl20": ("orl", [unit, classes(np.arange(0, 40, 2))], 2),
    "pie10_200": ("pie10", [unit, some(200, 1)], 2),
    "cora": ("cora", [tfidf], 5),
    "cora_ml": ("cora_ml", [], 5),
    "cora_pl": ("cora_pl", [], 5),
    "washington": ("webkb_washington", [tfidf, frequent(4)], 2),
    "pie58": ("pie", [classes(np.arange(10, 68)), some(1500, 2), unit], 5),
    "pie58_600": ("pie", [classes(np.arange(10, 68)), some(600, 3), unit], 2),
    "iris": ("iris", [standard], 2),
    "balance": ("balance", [standard], 5),
    "housing": ("housing", [standard], 5),
    "ng20_1500": ("ng20", [tfidf, some(1500, 7)], 5),
    "yaleb24": ("yaleb", [unit, classes(np.arange(14, 38)), some(700, 1)], 2),
    "isolet_1500": ("isolet", [some(1500, 9), standard], 3),
    "vowel_400": ("vowel_vj", [some(400, 4), standard], 2),
}
