"""PRPCA on nodes that the fit has not seen: accuracy of every relation, by content and by links.

    GNOMON_DATA=folder python benchmarks/prpca_nodes.py

A fit sees 70 % of the nodes and the links among them. The others come with their content and
their links, to each other and to the nodes of the fit, and are embedded by `transform` (q = 50).
A linear SVM learns from the embedded nodes of the fit and is asked about the new ones; its C is
the best of 0.1, 1 and 10 in 3-fold cross-validation inside the nodes of the fit. "Seen" has all
nodes in the fit, and the same nodes held out from the SVM alone. Rows are as in
`prpca_accuracy.py`.
"""

import argparse
import warnings
from functools import partial

import numpy as np
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import Normalizer
from sklearn.svm import LinearSVC

from gnomon import PPCA, PRPCA
from prpca_accuracy import CITATIONS, WEB, in_scale_of_pca, read

import measure

N_COMPONENTS = 50
SHARE = 0.7
RELATIONS = {
    "paper, content": {"relation": "paper"},
    "paper, smoothed": {"relation": "paper", "projection": "smoothed"},
    "filter": {"relation": "filter"},
    "learnt": {"relation": "learnt"},
    "learnt, temper 10": {"relation": "learnt", "temper": 10.0},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--sets", nargs="+", default=(*WEB, *CITATIONS))
    asked = parser.parse_args()
    repeats, rows = asked.repeats, []
    for name in asked.sets:
        X, links, y = read(name)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = [accuracies(X, y, links, seed) for seed in range(repeats)]
        cells = {key: np.mean([trial[key] for trial in found]) for key in found[0]}
        rows.append([name, *(f"{value:.3f}" for value in cells.values())])
        print(rows[-1], flush=True)
    mean = np.mean([[float(value) for value in row[1:]] for row in rows], axis=0)
    rows.append(["mean", *(f"{value:.3f}" for value in mean)])
    head = ["set", *cells]
    measure.write(
        "prpca_nodes", "Nodes that the fit has not seen", head, rows, [NOTE, str(repeats)]
    )


NOTE = __doc__.split("\n\n")[2].strip() + " Splits:"


def accuracies(X, y, links, seed):
    """Accuracy on new nodes by the name of the way."""
    order = np.random.default_rng(seed).permutation(len(y))
    cut = int(SHARE * len(y))
    old, new = np.sort(order[:cut]), np.sort(order[cut:])
    q = min(N_COMPONENTS, cut - 1)

    def score(embed):
        machine = make_pipeline(Normalizer(), LinearSVC(dual="auto", max_iter=5000))
        search = GridSearchCV(machine, {"linearsvc__C": [0.1, 1.0, 10.0]}, cv=3)
        return search.fit(embed(old), y[old]).score(embed(new), y[new])

    pca = PPCA(q, random_state=0).fit(X[old])
    found = {"PCA": score(lambda rows: in_scale_of_pca(pca, pca.transform(X[rows])))}
    model = PRPCA(q, random_state=0)
    for name, options in RELATIONS.items():
        if "temper" in options:
            # The same fit, embedded otherwise.
            model.set_params(**options)
        else:
            model = PRPCA(q, random_state=0, **options).fit(X[old], links=links, sample_index=old)
        found[name] = score(partial(embedded, model, X, links))
        if name == "filter":
            alone = score(partial(embedded, model, X, None))
    whole = PRPCA(q, random_state=0, relation="filter").fit(X, links=links)
    every = in_scale_of_pca(whole, whole.transform(X, links=links))
    return found | {"filter, links not given": alone, "filter, seen": score(every.__getitem__)}


def embedded(model, X, links, rows):
    index = None if links is None else rows
    return in_scale_of_pca(model, model.transform(X[rows], links=links, sample_index=index))


if __name__ == "__main__":
    main()
