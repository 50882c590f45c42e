"""Probabilistic dimensionality reduction that uses what you know."""

from gnomon._lazy import lazy_names

__version__ = "0.1.0"

# Public names are imported when first used, so that `import gnomon` costs next to nothing.
_HOMES: dict[str, str] = {
    "Links": "gnomon.estimators.links",
    "PRPCA": "gnomon.estimators.prpca",
    "LabelledOnly": "gnomon.estimators.labelled",
    "SemiSupervisedSplit": "gnomon.estimators.selection",
    "from_loaders": "gnomon.linalg.blocks",
    "from_parquet": "gnomon.linalg.sources",
    "from_rows": "gnomon.linalg.sources",
    "choose_dimension": "gnomon.tools.dimension",
    "compare": "gnomon.tools.compare.run",
    "label": "gnomon.tools.label.run",
    "labelled_scorer": "gnomon.estimators.labelled",
    "load": "gnomon.tools.modelfile",
    "retrieval_score": "gnomon.tools.retrieval",
    "retrieve": "gnomon.tools.retrieval",
    "save": "gnomon.tools.modelfile",
    "suggest": "gnomon.tools.suggest",
    "BSDR": "gnomon.estimators.bsdr",
    "BSDRRegressor": "gnomon.estimators.bsdr_regressor",
    "MultinomialProbit": "gnomon.estimators.probit",
    "PPCA": "gnomon.estimators.ppca",
    "DCAGM": "gnomon.estimators.dcagm",
    "chunks_from_pairs": "gnomon.estimators.chunks",
    "datasets": "gnomon.datasets",
    "displays": "gnomon.displays",
    "io": "gnomon.io",
    "outlier_contributions": "gnomon.estimators.outliers",
    "outliers": "gnomon.estimators.outliers",
    "peers": "gnomon.peers",
    "read_table": "gnomon.tools.read_table",
    "SPPCA": "gnomon.estimators.sppca",
    "KernelSPPCA": "gnomon.estimators.kernel_sppca",
    "KernelFeatures": "gnomon.estimators.kernel_features",
    "TableModel": "gnomon.tools.table_model",
    "to_onnx": "gnomon.tools.onnx_graph",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
