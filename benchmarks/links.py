"""Labels and links together, on citations and web pages: accuracy on rows without a label.

All rows and links are there; some rows of each class have their label. SPPCA takes content, content
and links, or a graph of the same shape between permuted rows. Peers: logistic regression on 50
principal components, on content smoothed by two steps of the normalised adjacency (SGC), and on a
map of PRPCA, which knows the links and no labels.

    GNOMON_DATA=folder python benchmarks/links.py --repeats 10
    GNOMON_DATA=folder python benchmarks/links.py --relations --repeats 20
    GNOMON_DATA=folder python benchmarks/links.py --permuted --repeats 10

The second has maps without labels, of PCA and PRPCA, under a logistic regression with 20 labels a
class. The third counts how often real links and permuted ones are used, by the rule as it is and
where links need not gain a share of the loss (`LEAST_GAIN` of 0).
"""

import argparse
import json
import warnings

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression

from gnomon import PRPCA, SPPCA, Links
from gnomon.linalg import graph
from gnomon.models.strength import links as rule
from gnomon.models.strength.left_out import clearly_best

import measure

CITATIONS = "cora cora_ds cora_ha cora_ml cora_pl".split()
WEB = "webkb_cornell webkb_texas webkb_washington".split()
LABELS = (5, 20)
# Permuted graphs to each draw of the labels, where only their use is counted.
N_PERMUTED = 4
METHODS = "PCA + logistic", "SGC", "PRPCA + logistic", "SPPCA, content", "SPPCA with links"


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=10)
    parser.add_argument("--first", type=int, default=100, help="seed of the first repeat")
    parser.add_argument("--relations", action="store_true", help="maps without labels instead")
    parser.add_argument("--permuted", action="store_true", help="how often links are used instead")
    parser.add_argument("--sets", nargs="+", default=(*CITATIONS, *WEB), help="for --relations")
    options = parser.parse_args()
    if measure.data_folder() is None:
        return
    if options.relations:
        return run_relations(options)
    if options.permuted:
        return run_permuted(options)
    rows, used, permuted = [], [], []
    for name in (*CITATIONS, *WEB):
        for graph_name, X, A, y in read(name):
            for labels in LABELS:
                found, is_used, by_chance = run_task(X, A, y, labels, options)
                used += is_used
                permuted += by_chance
                cells = [f"{value:.3f}" for value in found]
                rows.append([f"{name}, {graph_name}, {labels}", *cells, f"{np.mean(is_used):.1f}"])
                print(rows[-1], flush=True)
    measure.write(
        "links",
        "Accuracy on rows without a label, with links",
        ["set, graph, labels a class", *METHODS, "links used"],
        rows,
        [
            f"{options.repeats} draws of the labels, seeds {options.first} and following; ten "
            f"components. Links were used in {np.mean(used):.0%} of the fits, permuted ones in "
            f"{sum(permuted)} of {len(permuted)}."
        ],
    )


def run_relations(options):
    """Accuracy of a logistic regression on maps that know no labels; keeps rows of other sets."""
    relations = ("filter", "beside", "paper", "auto")
    maps = {"PCA": None} | {f"PRPCA, {relation}": relation for relation in relations}
    result = measure.RESULTS / "links_relations.json"
    header = ["set, graph", "links within a class", *maps, "auto takes", "permuted links used"]
    known = json.loads(result.read_text()) if result.exists() else {}
    rows = {row[0]: row for row in known.get("rows", []) if known["header"] == header}
    for name in options.sets:
        for graph_name, X, A, y in read(name):
            links = Links(A)
            own = [_map_of(relation, X, links) for relation in maps.values()]
            chosen = PRPCA(50).fit(X, links=links).relation_
            order = np.random.default_rng(0).permutation(len(y))
            permuted = PRPCA(50).fit(X, links=Links(A[order][:, order])).links_used_
            found = []
            for seed in range(options.first, options.first + options.repeats):
                known = draw(y, LABELS[-1], np.random.default_rng(seed))
                hidden = known < 0
                guesses = [logistic(Z, known) for Z in own]
                found.append([np.mean(guess[hidden] == y[hidden]) for guess in guesses])
            same = np.mean(y[A.nonzero()[0]] == y[A.nonzero()[1]])
            cells = [f"{value:.3f}" for value in np.mean(found, axis=0)]
            verdicts = [chosen, "yes" if permuted else "no"]
            row = [f"{name}, {graph_name}", f"{same:.2f}", *cells, *verdicts]
            rows[row[0]] = row
            print(row, flush=True)
    measure.write(
        "links_relations",
        "Accuracy with 20 labels a class: maps without labels",
        header,
        sorted(rows.values()),
        [f"{options.repeats} draws, seeds {options.first} and following; 50 components."],
    )


def run_permuted(options):
    """In how many fits real links and permuted ones are used, as it is and with any gain."""
    rows, total, per_draw = [], np.zeros(4, dtype=int), 1 + N_PERMUTED
    rule.clearly_best = by_both
    for name in options.sets:
        for graph_name, X, A, y in read(name):
            for labels in LABELS:
                counts = np.zeros((2, 2), dtype=int)
                for seed in range(options.first, options.first + options.repeats):
                    rng = np.random.default_rng(seed)
                    known = draw(y, labels, rng)
                    for i in range(per_draw):
                        order = rng.permutation(len(y)) if i else np.arange(len(y))
                        counts[:, min(i, 1)] += verdicts(X, known, Links(A[order][:, order]))
                rows.append([f"{name}, {graph_name}, {labels}", *map(str, counts.ravel())])
                total += counts.ravel()
                print(rows[-1], flush=True)
    n_fits = options.repeats * len(rows)
    name = f"all: {n_fits} fits with links, {N_PERMUTED * n_fits} with permuted ones"
    rows.append([name, *map(str, total)])
    counted = ["links", "permuted", "links, any gain", "permuted, any gain"]
    measure.write(
        "links_permuted",
        "Fits that use links, and permuted ones",
        ["set, graph, labels a class", *counted],
        rows,
        [f"{options.repeats} draws of the labels, seeds {options.first} and following."],
    )


class JudgedError(Exception):
    """Ends a fit once it is known whether it uses its links."""


def by_both(views, known, weights, least_gain):
    """Whether links are used by the rule, and where any gain is enough."""
    found = [clearly_best(views, known, weights, least) > 0 for least in (least_gain, 0.0)]
    raise JudgedError(found)


def verdicts(X, known, links):
    try:
        SPPCA(10).fit(X, known, links=links)
    except JudgedError as judged:
        return judged.args[0]
    return [False, False]


def _map_of(relation, X, links):
    """Coordinates of mean squared length one, of PCA or of PRPCA by a relation."""
    if relation is None:
        Z = PCA(50, svd_solver="arpack", random_state=0).fit_transform(X)
    else:
        Z = PRPCA(50, relation=relation).fit_transform(X, links=links)
    return Z / np.sqrt(np.mean(np.sum(Z**2, axis=1)))


def read(name):
    """Content and each graph of a set: its links, or co-links and hyperlinks of web pages."""
    from load import load, tfidf, unit_rows  # of the folder GNOMON_DATA

    data = load(name)
    X = sparse.csr_array(tfidf(data["X"]) if name in WEB else unit_rows(data["X"])).astype(float)
    yield "co-links" if name in WEB else "citations", X, plain(data["A"]), data["y"]
    if name in WEB:
        yield "hyperlinks", X, plain(data["L"]), data["y"]


def plain(A):
    """Undirected links of weight one, none of a row with itself."""
    return graph.without_loops(graph.undirected(sparse.csr_array(A != 0).astype(float)))


def run_task(X, A, y, labels, options):
    """Mean accuracies of the methods; whether links, and permuted links, were used."""
    S = graph.normalized(A)
    maps = _map_of(None, X, None), S @ (S @ X), _map_of("auto", X, Links(A))
    found, used, permuted = [], [], []
    for seed in range(options.first, options.first + options.repeats):
        rng = np.random.default_rng(seed)
        known = draw(y, labels, rng)
        hidden = known < 0
        peers = [logistic(Z, known)[hidden] for Z in maps]
        links, order = Links(A), rng.permutation(len(y))
        models = [SPPCA(10).fit(X, known, links=graph) for graph in (None, links)]
        own = [models[0].predict(X)[hidden], models[1].predict(X, links=links)[hidden]]
        found.append([np.mean(guess == y[hidden]) for guess in (*peers, *own)])
        used.append(models[1].links_used_)
        permuted.append(SPPCA(10).fit(X, known, links=Links(A[order][:, order])).links_used_)
    return np.mean(found, axis=0), used, permuted


def draw(y, labels, rng):
    """Labels of some rows of each class, at most half of them; -1 elsewhere."""
    known = np.full(len(y), -1)
    for c in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == c))
        known[rows[: min(labels, len(rows) // 2)]] = c
    return known


def logistic(Z, known):
    labelled = known >= 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LogisticRegression(C=10, max_iter=300).fit(Z[labelled], known[labelled]).predict(Z)


if __name__ == "__main__":
    main()
