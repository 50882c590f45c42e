"""Cells and genes: models on AnnData, with what they find written where scanpy looks for it.

obsm["X_<key>"]           coordinates, for ``scanpy.pp.neighbors(use_rep=...)`` and ``pl.embedding``
varm["<key>_loadings"]    loadings of the genes, zero for genes that were not used
obs["<key>_predicted"]    classes or numbers that the model predicts
obs["<key>_probability"]  probability of the predicted class; "<key>_sd" for numbers
uns["<key>"]              parameters, variances of the axes, names of the genes in their order
"""

from collections.abc import Iterable
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.pipeline import Pipeline

from gnomon.estimators.links import Links
from gnomon.linalg.blocks import from_loaders

# Cells of a backed file that are read at a time: with 20,000 genes 160 megabytes.
CELLS_AT_ONCE = 1000


def fit_anndata(
    data: Any,
    model: BaseEstimator,
    *,
    labels: str | None = None,
    unlabelled: Iterable = (),
    layer: str | None = None,
    genes: str | Iterable | None = None,
    links: str | None = None,
    key: str | None = None,
) -> BaseEstimator:
    """Fit a model to the cells of an AnnData and write coordinates and predictions into it.

    Parameters
    ----------
    data : anndata.AnnData
        Cells by genes, dense, sparse or backed by a file; of a backed one cells are read in
        blocks, and the model must stand alone, not in a pipeline. It is changed in place.
    model : estimator or Pipeline
        One of gnomon's models. Counts are best normalised and logarithmised before, as by
        ``scanpy.pp.normalize_total`` and ``scanpy.pp.log1p``.
    labels : str, default=None
        Column of ``data.obs`` with classes or numbers, missing for cells without.
    unlabelled : iterable, default=()
        Values of that column that mean no label, as "Unknown".
    layer : str, default=None
        Layer to take in the place of ``data.X``.
    genes : str or iterable of str, default=None
        A column of ``data.var`` with True for the genes to use, or their names. By default
        "highly_variable" where there is such a column, else all genes.
    links : str, default=None
        Key of ``data.obsp`` with links among the cells, as "connectivities"; for `SPPCA`,
        `KernelSPPCA` and `PRPCA`.
    key : str, default=None
        Under what name to write; the name of the model in small letters if None.

    Returns
    -------
    model : estimator
        The same, fitted.

    See Also
    --------
    place_anndata : Other cells on the same map.

    Examples
    --------
    >>> import anndata, numpy as np  # doctest: +SKIP
    >>> from gnomon import PPCA
    >>> from gnomon.io import fit_anndata
    >>> cells = anndata.AnnData(np.random.default_rng(0).normal(size=(50, 8)))  # doctest: +SKIP
    >>> model = fit_anndata(cells, PPCA(2))  # doctest: +SKIP
    >>> cells.obsm["X_ppca"].shape  # doctest: +SKIP
    (50, 2)
    """
    names = _gene_names(data, genes)
    rows = _rows(data, layer, names)
    known = {} if links is None else {"links": Links(_sound(data.obsp[links]))}
    y = None if labels is None else _outputs(data.obs[labels], unlabelled)
    named = known if not isinstance(model, Pipeline) else _for_step(model, known)
    model.fit(rows, y, **named)
    key = _name(model) if key is None else key
    _write(data, model, rows, known, key)
    _write_loadings(data, model, names, key)
    data.uns[key] = _facts(data, model, key, labels, layer, names)
    if labels is not None:
        _share_colours(data, labels, f"{key}_predicted")
    return model


def place_anndata(
    data: Any,
    model: BaseEstimator,
    *,
    layer: str | None = None,
    genes: str | Iterable | None = None,
    key: str | None = None,
) -> Any:
    """Place the cells of another AnnData on the map of a fitted model, and predict them.

    Parameters
    ----------
    data : anndata.AnnData
        Cells by genes; it is changed in place.
    model : estimator or Pipeline
        Fitted.
    layer : str, default=None
        Layer to take in the place of ``data.X``.
    genes : str or iterable of str, default=None
        The genes of the fit in their order: ``fitted.uns[key]["genes"]``.
    key : str, default=None
        Under what name to write; the name of the model in small letters if None.

    Returns
    -------
    data : anndata.AnnData
        The same.
    """
    rows = _rows(data, layer, _gene_names(data, genes))
    _write(data, model, rows, {}, _name(model) if key is None else key)
    return data


def _gene_names(data, genes) -> np.ndarray:
    """Names of the genes to use, in their order."""
    if genes is None:
        genes = "highly_variable" if "highly_variable" in data.var else data.var_names
    if isinstance(genes, str):
        if genes not in data.var:
            raise ValueError(f"genes == {genes!r}; data.var has {', '.join(map(str, data.var))}")
        return np.asarray(data.var_names[np.asarray(data.var[genes], dtype=bool)])
    names = np.asarray(list(genes), dtype=object)
    missing = [str(name) for name in names if name not in data.var_names]
    if missing:
        shown = ", ".join(missing[:5])
        raise ValueError(f"genes has {len(missing)} names that data.var_names lacks: {shown}")
    return names


def _rows(data, layer, names):
    """The cells by these genes: an array, a sparse array, or blocks of a file."""
    columns = data.var_names.get_indexer(names)
    columns = slice(None) if np.array_equal(columns, np.arange(data.n_vars)) else columns
    if layer is None and data.isbacked:
        starts = range(0, data.n_obs, CELLS_AT_ONCE)
        return from_loaders([_reader(data, start, columns) for start in starts])
    if layer is not None and layer not in data.layers:
        raise ValueError(f"layer == {layer!r}; data.layers has {', '.join(data.layers) or 'none'}")
    X = data.X if layer is None else data.layers[layer]
    return _sound(X)[:, columns]


def _reader(data, start, columns):
    """A function that reads a block of cells."""
    return lambda: _sound(data.X[start : start + CELLS_AT_ONCE])[:, columns]


def _sound(matrix):
    """The same, if indices lie within it: SciPy's loops trust those of a file."""
    if sparse.issparse(matrix) and hasattr(matrix, "check_format"):
        try:
            matrix.check_format(full_check=True)
        except ValueError as error:
            raise ValueError(f"data holds a sparse matrix that is not sound: {error}") from error
    return matrix


def _outputs(column, unlabelled):
    """Classes with None, or numbers with NaN, for cells without a label."""
    missing = np.asarray(column.isna() | column.isin(list(unlabelled)))
    if column.dtype.kind == "f":
        return np.where(missing, np.nan, column)
    values = column.astype(object).to_numpy()
    return np.where(missing, None, values)


def _for_step(model, known):
    return {f"{model.steps[-1][0]}__{name}": value for name, value in known.items()}


def _last(model):
    return model[-1] if isinstance(model, Pipeline) else model


def _name(model):
    return type(_last(model)).__name__.lower()


def _write(data, model, rows, known, key):
    """Coordinates, and predictions where the model has them."""
    data.obsm[f"X_{key}"] = np.asarray(model.transform(rows, **known))
    if not hasattr(model, "predict") or _kind(model) == "none":
        return
    if hasattr(model, "predict_proba") and hasattr(_last(model), "classes_"):
        _write_classes(data, model, rows, known, key)
    elif _kind(model) == "numeric":
        mean, sd = model.predict(rows, return_std=True, **known)
        for name, values in ((f"{key}_predicted", mean), (f"{key}_sd", sd)):
            where = data.obs if values.ndim == 1 else data.obsm
            where[name] = values


def _kind(model):
    """What the outputs of a model hold: "none" where it was fitted without."""
    coding = getattr(_last(model), "target_coding_", None)
    return "numeric" if coding is None else coding.kind


def _write_classes(data, model, rows, known, key):
    from pandas import Categorical

    chances = model.predict_proba(rows, **known)
    classes = [str(name) for name in _last(model).classes_]
    data.obs[f"{key}_predicted"] = Categorical.from_codes(chances.argmax(axis=1), classes)
    data.obs[f"{key}_probability"] = chances.max(axis=1)


def _write_loadings(data, model, names, key):
    """Loadings of the genes, zero for those that were not used, as scanpy has them."""
    components = getattr(_last(model), "components_", None)
    if components is None or components.shape[1] != len(names):
        return
    loadings = np.zeros((data.n_vars, len(components)))
    loadings[data.var_names.get_indexer(names)] = components.T
    data.varm[f"{key}_loadings"] = loadings


def _facts(data, model, key, labels, layer, names):
    """What `uns` keeps, of kinds that a file of AnnData can hold."""
    params = {name: str(value) for name, value in _last(model).get_params().items()}
    params |= {"labels": str(labels), "layer": str(layer), "model": type(_last(model)).__name__}
    variance = np.var(data.obsm[f"X_{key}"], axis=0)
    return {"params": params, "variance": variance, "genes": np.asarray(names, dtype=object)}


def _share_colours(data, labels, predicted):
    """Predicted classes are drawn in the colours of the labels, where scanpy has given these."""
    colours = data.uns.get(f"{labels}_colors")
    if colours is None or predicted not in data.obs:
        return
    own = dict(zip(data.obs[labels].cat.categories.astype(str), colours, strict=True))
    data.uns[f"{predicted}_colors"] = [own[name] for name in data.obs[predicted].cat.categories]
