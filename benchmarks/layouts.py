"""Which library lays out a map by its neighbours: scikit-learn's t-SNE, openTSNE or UMAP.

Each is given the ten coordinates of SPPCA with few labels and starts from the first two. Quality is
the error of the nearest labelled row in the plane, and the trustworthiness of the plane as a
picture of the map (ten neighbours). One row in five is then left out of the layout and placed on
it: by gnomon's way, between the five rows nearest on the map, and by the library's own. A second
run says whether the layout is the same again; the correlations with the first two axes, after the
best turn, say how far it keeps its orientation. Seconds are those of the processor, one thread.

    GNOMON_DATA=folder python benchmarks/layouts.py --repeats 2

It needs openTSNE and umap-learn.
"""

import argparse
import time
import warnings

import numpy as np
from scipy.linalg import orthogonal_procrustes
from sklearn.manifold import trustworthiness

import supervision_sets as sets
from gnomon import SPPCA, NeighbourLayout
from supervision import draw_labels, error

import measure

SETS = {"lung": 2, "orl": 5, "vowel": 5, "yaleb": 5, "digits": 5}
NEIGHBOURS = 30


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--first", type=int, default=1700, help="seed of the first repeat")
    parser.add_argument("--sets", nargs="*", default=list(SETS), choices=SETS)
    options = parser.parse_args()
    if measure.data_folder() is None:
        return
    warnings.simplefilter("ignore")
    umap_layout(np.random.default_rng(0).normal(size=(60, 5)))  # numba compiles at the first call
    rows = []
    for name in options.sets:
        X, y, _ = sets.read(name)
        labels = SETS[name]
        for library in LIBRARIES:
            seeds = range(options.first, options.first + options.repeats)
            found = np.mean([measured(X, y, labels, seed, library) for seed in seeds], axis=0)
            rows.append([f"{name}, {library}", *(f"{value:.3f}" for value in found)])
            print(rows[-1], flush=True)
        write_table(rows, options)


def write_table(rows, options):
    """What is finished, with the means of each library."""
    rows = list(rows)
    cells = np.array([row[1:] for row in rows], dtype=float).reshape(-1, len(LIBRARIES), len(HEADS))
    for library, means in zip(LIBRARIES, cells.mean(axis=0), strict=True):
        rows.append([f"mean, {library}", *(f"{value:.3f}" for value in means)])
    measure.write(
        "layouts",
        "Layouts of SPPCA's ten coordinates, by three libraries from the same start",
        ["set, library", *HEADS],
        rows,
        [f"{options.repeats} draws of labels, seeds {options.first} and following."],
    )


HEADS = (
    *("error in the plane", "trustworthiness", "left out, placed between", "left out, by library"),
    *("same again", "least correlation with the axes", "seconds"),
)


def measured(X, y, labels, seed, library):
    rng = np.random.default_rng(seed)
    known = draw_labels(y, labels, rng)
    Z = SPPCA(10).fit(X, np.where(known, y, -1)).transform(X)
    start = time.process_time()
    P, _ = LIBRARIES[library](Z)
    seconds = time.process_time() - start
    out = ~known & (rng.random(len(y)) < 0.2)
    Q, place = LIBRARIES[library](Z[~out])
    between, own = np.empty((2, len(y), 2))
    between[~out] = own[~out] = Q
    between[out], own[out] = placed_between(Z[~out], Q, Z[out]), place(Z[out])
    return (
        error(P, y, known),
        trustworthiness(Z, P, n_neighbors=10),
        *(error(T[known | out], y[known | out], known[known | out]) for T in (between, own)),
        float(np.array_equal(LIBRARIES[library](Z)[0], P)),
        orientation(P, Z[:, :2]),
        seconds,
    )


def placed_between(Z, P, new):
    """By gnomon's way, on the positions of any library."""
    layout = NeighbourLayout()
    layout.rows_, layout.positions_, layout.n_features_in_ = Z, P, Z.shape[1]
    return layout.transform(new)


def orientation(P, axes):
    P, axes = P - P.mean(axis=0), axes - axes.mean(axis=0)
    P = P @ orthogonal_procrustes(P, axes)[0]
    return min(np.corrcoef(P[:, j], axes[:, j])[0, 1] for j in range(2))


def sklearn_layout(Z):
    layout = NeighbourLayout(NEIGHBOURS).fit(Z)
    return layout.transform(Z), layout.transform


def opentsne_layout(Z):
    from openTSNE import TSNE

    start = Z[:, :2] / Z[:, 0].std() * 1e-4
    settings = {"perplexity": min(NEIGHBOURS, len(Z) / 10), "random_state": 0, "n_jobs": 1}
    found = TSNE(initialization=start, **settings).fit(Z)
    return np.asarray(found), lambda new: np.asarray(found.transform(new))


def umap_layout(Z):
    from umap import UMAP

    start = 10 * Z[:, :2] / np.abs(Z[:, :2]).max()
    model = UMAP(init=start, random_state=0, n_jobs=1).fit(Z)
    return model.embedding_, model.transform


LIBRARIES = {
    "scikit-learn's t-SNE": sklearn_layout,
    "openTSNE": opentsne_layout,
    "UMAP": umap_layout,
}


if __name__ == "__main__":
    main()
