"""Accuracy of PRPCA on citation and web graphs, by the protocol of its paper.

    GNOMON_DATA=folder python benchmarks/prpca_accuracy.py [citations|web|labels|scale|heldout|...]

Embed all nodes (q = 50), then classify by a linear SVM, 5-fold, 5 repeats. Rows of the
citation sets are of unit length, those of the web sets tf-idf. All embeddings are in the scale
of PCA, that is latent variables times the lengths of their loadings, and then scaled to unit mean
square length. The SVM is the same for every method: C of 0.1, 1, 10 or 100, and rows as
they are or of unit length, whichever of the eight has the highest accuracy in 3-fold
cross-validation inside the training folds. The test fold has no part in that choice.
"""

import sys
import warnings
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import Normalizer, normalize
from sklearn.svm import LinearSVC

from gnomon import PPCA, PRPCA, Links
from gnomon.inference.loop import Method, iterate
from gnomon.linalg import eigen, graph
from gnomon.linalg.data import Centered, Matrix, center
from gnomon.linalg.mixed import Mixed
from gnomon.models.relational import model as relational
from gnomon.models.relational import rounds as relational_rounds

sys.path.insert(0, str(Path(__file__).parent))
from papers.data import MissingDataError, load, tfidf, unit_rows
from prpca_density import conditional_log_density
from prpca_report import keep, report, stored, write

from measure import describe

CITATIONS = "cora_ds", "cora_ha", "cora_ml", "cora_pl", "cora"
WEB = "webkb_cornell", "webkb_texas", "webkb_washington"
# Splits of the nodes that no default was chosen on.
FRESH = range(20, 30)
SPLITS = """\
Mean and standard error over ten splits. How `learnt` takes its start, its rounds and the factor on
its shared variances was settled on twenty other splits of these sets, and with accuracies in view.
One rule came after the ten had been seen: axes are turned until the model is likelier than PPCA on
its own rows. It changed two splits of webkb_cornell with 20 and 60 axes, which lost a nat each.
Beside it the same model by 25 plain rounds from two starts, whichever is likelier, on the
same ten splits."""
PROTOCOL = __doc__.split("\n\n")[2].strip()
COLUMNS = (
    "PCA",
    "paper (19)",
    "paper, smoothed",
    "filter",
    "default",
    "learnt",
    "learnt, temper 10",
    "PCA of neighbour means",
    "links alone (20)",
)


def read(name):
    data = load(name)
    X = data["X"]
    X = tfidf(X) if name in WEB else unit_rows(X)
    return sparse.csr_array(X), Links(data["A"]), data["y"]


def in_scale_of_pca(model, Z):
    """Latent variables times the lengths of their loadings."""
    return Z * np.linalg.norm(model.components_, axis=1)


def embeddings(X, links, q):
    """The methods of the table, one after another, on all nodes."""
    yield PCA(q, svd_solver="arpack", random_state=0).fit_transform(X)
    paper = PRPCA(q, random_state=0, relation="paper").fit(X, links=links)
    yield in_scale_of_pca(paper, paper.transform(X, links=links))
    smoothed = paper.set_params(projection="smoothed").transform(X, links=links)
    yield in_scale_of_pca(paper, smoothed)
    filtered = PRPCA(q, relation="filter", random_state=0)
    yield in_scale_of_pca(filtered, filtered.fit_transform(X, links=links))
    default = PRPCA(q, random_state=0)
    yield in_scale_of_pca(default, default.fit_transform(X, links=links))
    learnt = PRPCA(q, relation="learnt", random_state=0).fit(X, links=links)
    for temper in (1.0, 10.0):
        learnt.set_params(temper=temper)
        yield in_scale_of_pca(learnt, learnt.transform(X, links=links))
    A = sparse.csr_array(links.adjacency + sparse.eye_array(X.shape[0]))
    means = sparse.csr_array(A / np.asarray(A.sum(axis=1))[:, None]) @ X
    yield PCA(q, svd_solver="arpack", random_state=0).fit_transform(means)
    yield PPCA(20, random_state=0).fit_transform(links.adjacency)


def scaled(Z):
    return Z / np.sqrt(np.mean(np.sum(Z**2, axis=1)))


def chosen():
    """A linear SVM, its C and the length of its rows chosen on what it is given to train."""
    model = Pipeline([("rows", "passthrough"), ("svm", LinearSVC(dual=False))])
    grid = {"rows": ["passthrough", Normalizer()], "svm__C": [0.1, 1, 10, 100]}
    return GridSearchCV(model, grid, cv=StratifiedKFold(3, shuffle=True, random_state=0))


def accuracy(Z, y, repeats=5, classifier=chosen):
    """Mean over the folds, and the deviation of the repeats."""
    means = []
    for seed in range(repeats):
        folds = StratifiedKFold(5, shuffle=True, random_state=seed)
        means.append(cross_val_score(classifier(), scaled(Z), y, cv=folds).mean())
    return float(np.mean(means)), float(np.std(means))


def tables(names):
    out = {}
    for name in names:
        X, links, y = read(name)
        majority = np.bincount(y).max() / len(y)
        cells = [accuracy(Z, y) for Z in embeddings(X, links, 50)]
        out[name] = dict(majority=float(majority), cells=cells)
        print(name, [round(c[0], 3) for c in cells], flush=True)
    return out


def few_labels(Z, y):
    """Accuracy with 20 labels a class, mean and deviation over 10 splits."""
    scores, rows = [], normalize(Z)
    for seed in range(10):
        rng = np.random.default_rng(seed)
        train = np.zeros(len(y), dtype=bool)
        for c in np.unique(y):
            train[rng.choice(np.flatnonzero(y == c), 20, replace=False)] = True
        model = LinearSVC(C=1, dual="auto", random_state=0).fit(rows[train], y[train])
        scores.append(model.score(rows[~train], y[~train]))
    return float(np.mean(scores)), float(np.std(scores))


def labels():
    """20 labels a class on cora, 10 random splits, unit rows, the rest is test."""
    X, links, y = read("cora")
    out = {}
    for q in (20, 50):
        for column, Z in zip(COLUMNS, embeddings(X, links, q), strict=True):
            out[f"{column}|{q}"] = few_labels(Z, y)
            print(q, column, out[f"{column}|{q}"], flush=True)
    return out


def scale():
    """The filter as `transform` gives it: latent variables of unit variance."""
    out = {}
    for q in (20, 50):
        X, links, y = read("cora")
        Z = PRPCA(q, relation="filter", random_state=0).fit_transform(X, links=links)
        out[f"filter, unit variances|{q}"] = few_labels(Z, y)
        print(q, out, flush=True)
    return out


def held_out(n, seed):
    """A mask of the fifth of the nodes that is held out."""
    new = np.zeros(n, dtype=bool)
    new[np.random.default_rng(seed).permutation(n)[: n // 5]] = True
    return new


def conditional(state, mean, X, links, new):
    """Log density of the held-out content given all other content and the links."""
    rows = Centered(Matrix(X), mean)
    S = graph.normalized(links.adjacency)
    coordinates = np.asarray(rows @ state.U)
    return conditional_log_density(state, S, coordinates, rows.row_squared_norms(), new)


def held_out_gain(X, links, q, r, seed):
    """Nats per held-out node over PPCA of equal size: content given the other nodes and links."""
    new = held_out(X.shape[0], seed)
    train = np.flatnonzero(~new)
    model = PRPCA(q, relation="learnt", own_components=r, random_state=seed)
    model.fit(X[train], links=links, sample_index=train)
    reference = PPCA(q + r).fit(X[train]).score_samples(X[new]).sum()
    if not model.links_used_:
        return float(model.score_samples(X[new]).sum() - reference) / new.sum(), False
    joint = conditional(model._relational(), model.mean_, X, links, new)
    return float(joint - reference) / new.sum(), True


def plain_gain(X, links, q, r, seed, rounds=25):
    """The same after 25 plain rounds from principal and from smoothed axes, the likelier kept."""
    new = held_out(X.shape[0], seed)
    train = np.flatnonzero(~new)
    A = links.subset(train).adjacency
    mean, rows = center(Matrix(X[train]))
    data = relational.link(rows, A, np.random.default_rng(seed))
    principal = eigen.from_dual(rows, q + r).vectors
    half = sparse.csr_array(graph.normalized(A) + sparse.eye_array(len(train))) / 2
    smooth = eigen.from_dual(Mixed(half, Mixed(half, rows)), q).vectors
    ends = []
    for U in (principal, relational_rounds.join_axes(smooth, principal, data)):
        method = Method(relational_rounds.init(U, q, data), partial(relational.step, data=data))
        run = iterate(method, max_iter=rounds - 1, tol=0.0)
        ends.append(relational.final_variances(run.state, data))
    state, _ = max(ends, key=lambda end: end[1])
    without, _ = relational.independent(principal, q, data)
    gain = conditional(state, mean, X, links, new) - conditional(without, mean, X, links, new)
    return float(gain) / new.sum()


def heldout():
    out = {}
    for name in ("cora_ha", "cora_ds", "webkb_cornell"):
        X, links, _ = read(name)
        for q, r in ((10, 10), (20, 60)):
            gains = [held_out_gain(X, links, q, r, seed)[0] for seed in FRESH]
            plain = [plain_gain(X, links, q, r, seed) for seed in FRESH]
            order = np.random.default_rng(9).permutation(X.shape[0])
            moved = held_out_gain(X, links.subset(order), q, r, FRESH[0])
            out[f"{name}|{q}|{r}"] = gains, plain, moved
            print(name, q, r, out[f"{name}|{q}|{r}"], flush=True)
    return dict(splits=SPLITS, cells=out)


def rewired():
    """20 permutations of the nodes of cora_ha: links refused, nothing lost."""
    X, links, y = read("cora_ha")
    plain = PCA(10, svd_solver="arpack", random_state=0).fit_transform(X)
    base = accuracy(plain, y, 2)[0]
    out = []
    for seed in range(20):
        order = np.random.default_rng(seed).permutation(X.shape[0])
        moved = links.subset(order)
        gain, used = held_out_gain(X, moved, 10, 10, seed)
        model = PRPCA(10, relation="learnt", own_components=10, random_state=seed)
        Z = model.fit_transform(X, links=moved)
        out.append((gain, used or model.links_used_, accuracy(Z, y, 2)[0] - base))
        print(seed, out[-1], flush=True)
    return out


SECTIONS = {
    "citations": partial(tables, CITATIONS),
    "web": partial(tables, WEB),
    "labels": labels,
    "scale": scale,
    "heldout": heldout,
    "rewired": rewired,
}


def main():
    warnings.simplefilter("ignore")
    done = stored()
    try:
        for section in sys.argv[1:] or SECTIONS:
            done[section] = SECTIONS[section]()
            done.setdefault("days", {})[section] = date.today().isoformat()
            done |= dict(machine=describe(), protocol=PROTOCOL, columns=COLUMNS)
            keep(done)
    except MissingDataError as reason:
        print(f"skipped: {reason}")
        return
    write(done)
    print(report(done))


if __name__ == "__main__":
    main()
