"""What public functions take, in words for type checkers and for readers of signatures."""

from collections.abc import Callable
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

# Arrays of any library, data frames, sparse arrays, those of dask and rows in blocks have no common
# type.
RowsLike: TypeAlias = Any
# Classes, numbers or indicators, with -1, None or NaN where a row has none.
OutputsLike: TypeAlias = ArrayLike | None
# Links, an adjacency (dense or sparse), or "neighbours".
GraphLike: TypeAlias = Any
SeedLike: TypeAlias = int | np.random.RandomState | np.random.Generator | None
# Called with the number of the iteration, the state of the model and the objective.
CallbackLike: TypeAlias = Callable[[int, Any, float], bool | None] | None
