"""PRPCA on nodes that the fit has not seen: accuracy of every relation, seen against unseen.

    GNOMON_DATA=folder python benchmarks/prpca_nodes.py --repeats 5

Unseen: a fit has 70 % of the nodes and the links among them. The others come with their content and
their links, to each other and to the nodes of the fit, and are embedded by `transform` (q = 50).
Seen: the fit has all nodes and links. In both a linear SVM learns from the same 70 % and is asked
about the same others; its C is the best of 0.1, 1 and 10 in 3-fold cross-validation inside these
70 %. Rows are as in `prpca_accuracy.py`; the books are words of titles, and liberal or not.
Deviations are those over the splits, of unseen nodes.
"""

import argparse
import warnings

import numpy as np
from scipy import sparse
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC

from gnomon import PPCA, PRPCA, Links
from links import plain

import measure

N_COMPONENTS = 50
SHARE = 0.7
CITATIONS = "cora", "cora_ds", "cora_ha", "cora_ml", "cora_pl"
WEB = "webkb_cornell", "webkb_texas", "webkb_washington"
RELATIONS = {
    "PCA": None,
    "paper, content": {"relation": "paper", "projection": "content"},
    "paper, smoothed": {"relation": "paper", "projection": "smoothed"},
    "filter": {"relation": "filter"},
    "beside": {"relation": "beside"},
    "default": {},
    "learnt": {"relation": "learnt"},
    "learnt, temper 10": {"relation": "learnt", "temper": 10.0},
}
NOTE = __doc__.split("\n\n")[2].strip()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", type=int, default=0, help="seed of the first split")
    asked = parser.parse_args()
    if measure.data_folder() is None:
        return
    seeds = range(asked.first, asked.first + asked.repeats)
    seen, unseen, deviations = [], [], []
    for name, X, links, y in sets():
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.array([accuracies(X, y, links, seed) for seed in seeds])
        means, spread = found.mean(axis=0), found.std(axis=0)
        seen.append([name, *means[0]])
        unseen.append([name, *means[1]])
        deviations.append([name, *spread[1]])
        print(name, np.round(means, 3).tolist(), flush=True)
    report(seen, unseen, deviations, asked)


def report(seen, unseen, deviations, asked):
    """One table: both kinds of every set, then means; deviations of the unseen at the end."""
    rows = []
    for title, kind in (("unseen", unseen), ("seen", seen)):
        mean = np.mean([row[1:] for row in kind], axis=0)
        rows += [_cells([f"{row[0]}, {title}", *row[1:]]) for row in kind]
        rows.append(_cells([f"mean, {title}", *mean]))
    rows += [_cells([f"{row[0]}, deviation", *row[1:]]) for row in deviations]
    splits = f"{asked.repeats} splits, seeds {asked.first} and following."
    title = "Nodes that the fit has not seen"
    measure.write("prpca_nodes", title, ["set", *RELATIONS], rows, [NOTE, splits])


def _cells(row):
    return [row[0], *(f"{value:.3f}" for value in row[1:])]


def sets():
    """Name, content, links and classes of every graph: citations, co-links, hyperlinks, books."""
    from load import load, tfidf, unit_rows  # of the folder GNOMON_DATA

    for name in (*CITATIONS, *WEB):
        data = load(name)
        X = sparse.csr_array(tfidf(data["X"]) if name in WEB else unit_rows(data["X"]))
        kinds = {"co-links": "A", "hyperlinks": "L"} if name in WEB else {"citations": "A"}
        for kind, key in kinds.items():
            yield f"{name}, {kind}", X.astype(float), Links(plain(data[key])), data["y"]
    data = load("polbooks")
    X = sparse.csr_array(unit_rows(data["X"])).astype(float)
    yield "polbooks", X, Links(plain(data["A"])), (data["y"] == 0).astype(int)


def accuracies(X, y, links, seed):
    """Accuracies (2, relations) on the same nodes, seen and not seen by the fit."""
    order = np.random.default_rng(seed).permutation(len(y))
    cut = int(SHARE * len(y))
    old, new = np.sort(order[:cut]), np.sort(order[cut:])
    every = np.arange(len(y))
    return [
        [_score(Z, old, new, y) for Z in embeddings(X, links, fitted)] for fitted in (every, old)
    ]


def embeddings(X, links, fitted):
    """All nodes in the scale of PCA, by fits to some: those with their links, the rest after."""
    q = min(N_COMPONENTS, len(fitted) // 2)
    rest = np.setdiff1d(np.arange(X.shape[0]), fitted)
    model = None
    for options in RELATIONS.values():
        if options is None:
            model = PPCA(q, random_state=0).fit(X[fitted])
            yield _in_scale_of_pca(model, model.transform(X))
            continue
        if options.get("projection") == "smoothed" or "temper" in options:
            model.set_params(**options)  # the same fit, embedded otherwise
        else:
            model = PRPCA(q, random_state=0, **options)
            model.fit(X[fitted], links=links, sample_index=fitted)
        Z = np.empty((X.shape[0], q))
        # The nodes of the fit are embedded without knowledge of the others.
        Z[fitted] = model.transform(X[fitted], links=links.subset(fitted))
        if len(rest):
            Z[rest] = model.transform(X[rest], links=links, sample_index=rest)
        yield _in_scale_of_pca(model, Z)


def _in_scale_of_pca(model, Z):
    """Latent variables times the lengths of their loadings."""
    return Z * np.linalg.norm(model.components_, axis=1)


def _score(Z, old, new, y):
    machine = make_pipeline(Normalizer(), LinearSVC(dual="auto", max_iter=5000))
    search = GridSearchCV(machine, {"linearsvc__C": [0.1, 1.0, 10.0]}, cv=3)
    return search.fit(Z[old], y[old]).score(Z[new], y[new])


if __name__ == "__main__":
    main()
