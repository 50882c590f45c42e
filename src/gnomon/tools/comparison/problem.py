"""What is to be compared on: inputs, targets as numbers, links, and which rows are labelled."""

from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.utils import check_array

from gnomon.estimators import KINDS, as_floats, check_option, kind_of, labelled_rows, read_classes
from gnomon.estimators.links import Links


class Problem(NamedTuple):
    """Inputs, outputs in one coding, and the marks of `compare`.

    Classes are coded 0, 1, ... with -1 for unlabelled rows; numbers and labels have NaN there.
    """

    X: Any
    y: np.ndarray
    kind: str
    labelled: np.ndarray
    names: np.ndarray
    links: Any = None
    chunks: np.ndarray | None = None
    transductive: bool = False

    @property
    def n_classes(self) -> int:
        """Number of classes, 0 for numbers."""
        return len(self.names)

    @property
    def has_gaps(self) -> bool:
        """Whether X has missing values."""
        return not sparse.issparse(self.X) and bool(np.isnan(self.X).any())


def read_problem(X, y, *, target, links, chunks, transductive) -> Problem:
    """The arguments of `compare`, checked and coded."""
    if y is None:
        raise ValueError(
            "y is None; compare scores embeddings by the y they predict. "
            "Without y use gnomon.choose_dimension, which scores held-out likelihood"
        )
    X = check_array(
        X,
        accept_sparse=("csr", "csc"),
        dtype=(np.float64, np.float32),
        ensure_all_finite="allow-nan",
        input_name="X",
    )
    y = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    if len(y) != X.shape[0]:
        raise ValueError(f"y has {len(y)} rows, X has {X.shape[0]}; both must be equal")
    labelled = labelled_rows(y)
    check_option("target", target, ("auto", *KINDS))
    kind = kind_of(y) if target == "auto" else target
    names, codes = np.array([]), as_floats(y) if kind != "classes" else y
    if kind == "classes":
        classes = read_classes(y, len(y))
        names, codes, labelled = classes.names, classes.labels, classes.labelled
    _check_enough(labelled, names, kind)
    chunks = None if chunks is None else np.asarray(chunks)
    if links is not None and not isinstance(links, Links):
        links = Links(links)
    transductive = links is not None if transductive == "auto" else bool(transductive)
    return Problem(X, codes, kind, labelled, names, links, chunks, transductive)


def _check_enough(labelled, names, kind):
    if labelled.sum() < 4:
        raise ValueError(
            f"y has {labelled.sum()} labelled rows; at least 4 are needed to compare on"
        )
    if kind == "classes" and len(names) < 2:
        raise ValueError("y has one class with labelled rows; at least 2 classes are needed")
