"""Probabilistic dimensionality reduction that uses what you know."""

from typing import TYPE_CHECKING

from gnomon._lazy import lazy_names

__version__ = "0.1.0"

# Public names are imported when first used, so that `import gnomon` costs next to nothing.
_HOMES: dict[str, str] = {
    "Links": "gnomon.estimators.links",
    "PRPCA": "gnomon.estimators.prpca",
    "LabelledOnly": "gnomon.estimators.labelled",
    "SemiSupervisedSplit": "gnomon.estimators.selection",
    "from_chunks": "gnomon.linalg.sources",
    "from_csv": "gnomon.linalg.sources",
    "from_loaders": "gnomon.linalg.blocks",
    "from_npz": "gnomon.linalg.sources",
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
    "NeighbourLayout": "gnomon.estimators.neighbour_layout",
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
    "transform_blocks": "gnomon.estimators.results",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)

if TYPE_CHECKING:
    # Type checkers do not run what imports names when they are used.
    from gnomon import datasets as datasets
    from gnomon import displays as displays
    from gnomon import io as io
    from gnomon import peers as peers
    from gnomon.estimators.bsdr import BSDR as BSDR
    from gnomon.estimators.bsdr_regressor import BSDRRegressor as BSDRRegressor
    from gnomon.estimators.chunks import chunks_from_pairs as chunks_from_pairs
    from gnomon.estimators.dcagm import DCAGM as DCAGM
    from gnomon.estimators.kernel_features import KernelFeatures as KernelFeatures
    from gnomon.estimators.kernel_sppca import KernelSPPCA as KernelSPPCA
    from gnomon.estimators.labelled import LabelledOnly as LabelledOnly
    from gnomon.estimators.labelled import labelled_scorer as labelled_scorer
    from gnomon.estimators.links import Links as Links
    from gnomon.estimators.neighbour_layout import NeighbourLayout as NeighbourLayout
    from gnomon.estimators.outliers import outlier_contributions as outlier_contributions
    from gnomon.estimators.outliers import outliers as outliers
    from gnomon.estimators.ppca import PPCA as PPCA
    from gnomon.estimators.probit import MultinomialProbit as MultinomialProbit
    from gnomon.estimators.prpca import PRPCA as PRPCA
    from gnomon.estimators.results import transform_blocks as transform_blocks
    from gnomon.estimators.selection import SemiSupervisedSplit as SemiSupervisedSplit
    from gnomon.estimators.sppca import SPPCA as SPPCA
    from gnomon.linalg.blocks import from_loaders as from_loaders
    from gnomon.linalg.sources import from_chunks as from_chunks
    from gnomon.linalg.sources import from_csv as from_csv
    from gnomon.linalg.sources import from_npz as from_npz
    from gnomon.linalg.sources import from_parquet as from_parquet
    from gnomon.linalg.sources import from_rows as from_rows
    from gnomon.tools.compare.run import compare as compare
    from gnomon.tools.dimension import choose_dimension as choose_dimension
    from gnomon.tools.label.run import label as label
    from gnomon.tools.modelfile import load as load
    from gnomon.tools.modelfile import save as save
    from gnomon.tools.onnx_graph import to_onnx as to_onnx
    from gnomon.tools.read_table import read_table as read_table
    from gnomon.tools.retrieval import retrieval_score as retrieval_score
    from gnomon.tools.retrieval import retrieve as retrieve
    from gnomon.tools.suggest import suggest as suggest
    from gnomon.tools.table_model import TableModel as TableModel
