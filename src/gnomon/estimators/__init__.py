"""The scikit-learn face of the models; below, the rules that displays and tools share with it."""

from gnomon.estimators._door import (
    check_integer,
    check_option,
    check_real,
    count,
    n_rows,
    take_rows,
)
from gnomon.estimators._predict import odds_of_shares
from gnomon.estimators._targets import (
    KINDS,
    Classes,
    as_array,
    as_floats,
    contrasts,
    kind_of,
    labelled_rows,
    permuted_labels,
    read_classes,
)
from gnomon.estimators.links import NEIGHBOURS
from gnomon.estimators.selection import (
    LARGE,
    MARGIN,
    SIZE_OF_LARGE,
    SIZES,
    smallest_good,
    why_size,
)

__all__ = [
    "KINDS",
    "LARGE",
    "MARGIN",
    "NEIGHBOURS",
    "SIZES",
    "SIZE_OF_LARGE",
    "Classes",
    "as_array",
    "as_floats",
    "check_integer",
    "check_option",
    "check_real",
    "contrasts",
    "count",
    "kind_of",
    "labelled_rows",
    "n_rows",
    "odds_of_shares",
    "permuted_labels",
    "read_classes",
    "smallest_good",
    "take_rows",
    "why_size",
]
