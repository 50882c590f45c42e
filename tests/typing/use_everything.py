"""Every public name, used as a user would whose code is checked with ``mypy --strict``.

`make lint` checks this file; `tests/test_lazy.py` sees that no name is left out.
"""

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import gnomon
from gnomon import (
    BSDR,
    DCAGM,
    PPCA,
    PRPCA,
    SPPCA,
    BSDRRegressor,
    KernelFeatures,
    KernelSPPCA,
    LabelledOnly,
    Links,
    MultinomialProbit,
    NeighbourLayout,
    SemiSupervisedSplit,
    TableModel,
    datasets,
    displays,
    io,
    peers,
)

X: NDArray[np.float64] = datasets.make_subspace(50, 8, 2).X
y: NDArray[np.int64] = np.arange(50) % 3


def models() -> list[np.ndarray]:
    """Fit, place and predict with every model."""
    ppca = PPCA(2, max_iter=10).fit(X)
    filled = ppca.impute(X)
    links = Links.from_edges([(0, 1)], n_nodes=50)
    sppca: SPPCA = SPPCA(n_components=2, supervision=0.5).fit(X, y, links=links)
    kernel = KernelSPPCA(gamma=0.1).fit(X, y)
    places = [
        ppca.transform(X),
        ppca.posterior(X).mean,
        sppca.transform(X, links=links),
        sppca.predict_proba(X),
        kernel.transform(X),
        KernelFeatures("rbf").fit(X).transform(X),
        NeighbourLayout(5.0).fit(X).transform(X),
        NeighbourLayout(5.0).fit(X).covariance(X, np.eye(8)),
        PRPCA(relation="filter").fit(X, links=links).transform(X),
        DCAGM(n_gaussians=1).fit(X, y, chunks=gnomon.chunks_from_pairs([(0, 3)], 50)).predict(X),
        BSDR("auto", prior="column").fit(X, y).predict_proba(X),
        BSDRRegressor().fit(X, X[:, 0]).transform(X),
        MultinomialProbit().fit(X, y).predict(X),
        LabelledOnly(sppca).fit(X, y).predict(X),
        peers.PLSDiscriminant(2).fit(X, y).transform(X),
        filled,
    ]
    score: float = sppca.score(X, y)
    return [*places, np.array(score)]


def around(path: Path) -> None:
    """Everything around the models."""
    model = PPCA().fit(X)
    gnomon.save(model, path)
    again = gnomon.load(path)
    if isinstance(again, TableModel):
        again.transform(path)
    far = gnomon.outliers(model, X)
    parts = gnomon.outlier_contributions(model, X)
    print(far.t2, parts.q, gnomon.retrieve(model, X, X, k=3))
    print(gnomon.retrieval_score(model, X, y, X, y))
    print(gnomon.compare(X, y, models=["PCA"], n_components=(2,)).snippet())
    print(gnomon.choose_dimension(X).reasons)
    for row in gnomon.suggest(SPPCA().fit(X, y), X, y, n=3):
        print(row.row, row.reason)
    splits = SemiSupervisedSplit(3).split(X, y)
    print(splits, gnomon.labelled_scorer("accuracy"), gnomon.read_table(path).X)
    print(gnomon.from_loaders([lambda: X]).shape, gnomon.to_onnx(model, dtype="float32"))
    print(gnomon.from_parquet, gnomon.from_rows, gnomon.from_npz, gnomon.from_csv)
    print(gnomon.transform_blocks(model, gnomon.from_chunks([X]), out=None))
    with gnomon.label(X, y, classes=["a", "b"], open_browser=False) as page:
        print(page.url, page.labels, page.chunks, page.export())
    print(datasets.make_classes().labels, datasets.make_linked().adjacency)
    print(datasets.load_scipy_texts().names, datasets.remove_entries(X))
    io.place_anndata(None, io.fit_anndata(None, model))


def pictures() -> None:
    """Every display."""
    model = SPPCA().fit(X, y)
    displays.EmbeddingDisplay.from_estimator(model, X, y, predict=True).plot()
    displays.EmbeddingDisplay.from_data(X, y)
    displays.ConvergenceDisplay.from_estimator(model)
    displays.DimensionDisplay.from_estimator(PPCA("auto").fit(X))
    displays.LoadingsDisplay.from_estimator(model, X, y, kind="biplot")
    displays.OverviewDisplay.from_data(X, y)
    displays.PermutationDisplay.from_estimator(model, X, y, n_permutations=3)
    displays.RelevanceDisplay.from_estimator(model, X, y)
    displays.RetrievalDisplay.from_estimator(model, X, y)
    displays.SupervisionDisplay.from_estimator(model)
