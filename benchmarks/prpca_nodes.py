"""PRPCA on nodes that the fit has not seen: accuracy of every relation, seen against unseen.

    GNOMON_DATA=folder python benchmarks/prpca_nodes.py [--sets NAME ...] [--relations NAME ...]

Unseen: a fit has 70 % of the nodes and the links among them. The others come with their content and
their links, to each other and to the nodes of the fit, and are embedded by `transform` (q = 50).
Seen: the fit has all nodes and links. In both a linear SVM learns from the same 70 % and is asked
about the same others; its C is the best of 0.1, 1 and 10 in 3-fold cross-validation inside these
70 %. Embeddings are in the scale of PCA, rows of unit length; content is as in
`prpca_accuracy.py`, of the books words of titles. Classes of the books: liberal or not.

A run of some sets or relations keeps what is known of the others.
"""

import argparse
import json
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
KINDS = "unseen", "seen"
NOTE = __doc__.split("\n\n")[2].strip()
RESULT = measure.RESULTS / "prpca_nodes.json"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--sets", nargs="+", default=(*CITATIONS, *WEB, "polbooks"))
    parser.add_argument("--relations", nargs="+", default=tuple(RELATIONS), choices=RELATIONS)
    asked = parser.parse_args()
    if measure.data_folder() is None:
        return
    known = json.loads(RESULT.read_text())["accuracies"] if RESULT.exists() else {}
    for name in asked.sets:
        for graph, X, links, y in graphs(name):
            found = {kind: {r: [] for r in asked.relations} for kind in KINDS}
            for seed in range(asked.repeats):
                split(found, X, links, y, seed)
            for kind in KINDS:
                known.setdefault(graph, {}).setdefault(kind, {}).update(found[kind])
            print(graph, {r: round(np.mean(a), 3) for r, a in found["unseen"].items()}, flush=True)
    report(known)


def graphs(name):
    """Name, content, links and classes of every graph of a set."""
    from load import load, tfidf, unit_rows  # of the folder GNOMON_DATA

    data = load(name)
    X = sparse.csr_array(tfidf(data["X"]) if name in WEB else unit_rows(data["X"])).astype(float)
    if name == "polbooks":
        yield name, X, Links(plain(data["A"])), (data["y"] == 0).astype(int)
    elif name in CITATIONS:
        yield f"{name}, citations", X, Links(plain(data["A"])), data["y"]
    else:
        yield f"{name}, co-links", X, Links(plain(data["A"])), data["y"]
        yield f"{name}, hyperlinks", X, Links(plain(data["L"])), data["y"]


def split(found, X, links, y, seed):
    """Add the accuracies of one split, on the same nodes, seen and not seen by the fit."""
    order = np.random.default_rng(seed).permutation(len(y))
    cut = int(SHARE * len(y))
    old, new = np.sort(order[:cut]), np.sort(order[cut:])
    for kind, fitted in zip(KINDS, (old, np.arange(len(y))), strict=True):
        models: dict = {}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for relation, accuracies in found[kind].items():
                Z = embed(RELATIONS[relation], X, links, fitted, models)
                accuracies.append(score(Z, old, new, y))


def embed(options, X, links, fitted, models):
    """All nodes in the scale of PCA, by a fit to some; these know nothing of the others.

    What differs in `transform` alone shares a fit, kept in ``models``.
    """
    q = min(N_COMPONENTS, len(fitted) // 2)
    if options is None:
        model = PPCA(q, random_state=0).fit(X[fitted])
        return in_scale_of_pca(model, model.transform(X))
    model = models.get(options.get("relation"))
    if model is None:
        model = PRPCA(q, random_state=0, **options)
        model.fit(X[fitted], links=links, sample_index=fitted)
        models[options.get("relation")] = model
    model.set_params(**options)
    Z = np.empty((X.shape[0], q))
    Z[fitted] = model.transform(X[fitted], links=links.subset(fitted))
    rest = np.setdiff1d(np.arange(X.shape[0]), fitted)
    if len(rest):
        Z[rest] = model.transform(X[rest], links=links, sample_index=rest)
    return in_scale_of_pca(model, Z)


def in_scale_of_pca(model, Z):
    """Latent variables times the lengths of their loadings."""
    return Z * np.linalg.norm(model.components_, axis=1)


def score(Z, old, new, y):
    machine = make_pipeline(Normalizer(), LinearSVC(dual="auto", max_iter=5000))
    search = GridSearchCV(machine, {"linearsvc__C": [0.1, 1.0, 10.0]}, cv=3)
    return float(search.fit(Z[old], y[old]).score(Z[new], y[new]))


def report(known):
    """The table of means with deviations over the splits, and all accuracies beside it."""
    rows = []
    for kind in KINDS:
        rows += [[f"{graph}, {kind}", *_cells(known[graph][kind])] for graph in known]
        rows.append([f"mean, {kind}", *_means(known, kind)])
    numbers = {len(a) for of in known.values() for kind in KINDS for a in of[kind].values()}
    splits = (
        f"Mean, and deviation in brackets, over {' or '.join(map(str, sorted(numbers)))} splits."
    )
    header = ["set", *RELATIONS]
    measure.write(
        "prpca_nodes", "Nodes that the fit has not seen", header, rows, [NOTE, "", splits]
    )
    record = json.loads(RESULT.read_text()) | {"accuracies": known}
    RESULT.write_text(json.dumps(record, indent=1) + "\n")


def _cells(accuracies):
    for relation in RELATIONS:
        values = accuracies.get(relation)
        yield f"{np.mean(values):.3f} ({np.std(values):.3f})" if values else "-"


def _means(known, kind):
    """Means over the graphs of which a relation is known for all."""
    for relation in RELATIONS:
        values = [known[graph][kind].get(relation) for graph in known]
        yield f"{np.mean([np.mean(v) for v in values]):.3f}" if all(values) else "-"


if __name__ == "__main__":
    main()
