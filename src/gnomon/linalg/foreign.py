"""Arrays of other libraries: products run in the library, on its device; small results come back.

Any array of the Array API standard is known by its ``__array_namespace__``; tensors of torch have
none and are known by their module. Only operators, slices, ``asarray`` and ``take`` are used, in
which torch agrees with the standard.

    Foreign     the leaf: the array, and mean, units and weights where they are laid over it
    opened      an array of another library as `Foreign`, or in memory where it has gaps
    in_form_of  a result in the library and on the device of the rows that it is of
    in_memory   any array, also one of dask, as NumPy has it
"""

import sys
from typing import Any

import numpy as np
from scipy import sparse

from gnomon.linalg.data import Data, slices
from gnomon.linalg.distributed import computed

# Entries of rows that are worked on at a time: they are copied to be centred, and a device wants
# large products. 32 MiB in double precision.
FOREIGN_ENTRIES = 2**22


def namespace_of(X) -> Any:
    """The library of an array that is not NumPy's, None for everything else."""
    if isinstance(X, np.ndarray | np.generic) or sparse.issparse(X):
        return None
    if type(X).__module__.partition(".")[0] == "torch" and hasattr(X, "device"):
        return sys.modules["torch"]
    return X.__array_namespace__() if hasattr(X, "__array_namespace__") else None


def in_memory(values) -> Any:
    """What holds something for every row as NumPy has it; what is no array stays as it is."""
    if namespace_of(values) is None:
        return computed(values)
    # A tensor that learns, and one that is on a device.
    for method in ("detach", "cpu", "get"):
        values = getattr(values, method)() if hasattr(values, method) else values
    return np.asarray(values)


def in_form_of(X, result) -> Any:
    """Numbers in the library and on the device of X; texts and objects stay as they are."""
    if namespace_of(X) is None:
        return result
    if isinstance(result, tuple):
        return getattr(type(result), "_make", tuple)([in_form_of(X, part) for part in result])
    if not isinstance(result, np.ndarray) or result.dtype.kind not in "biuf":
        return result
    return _sent(result, X)


def _sent(values, X, **kind):
    """An array of NumPy where X is; torch does not share one that must not be written to."""
    values = np.require(values, requirements=["C", "W"])
    return namespace_of(X).asarray(values, device=X.device, **kind)


class Foreign(Data):
    """sqrt(w) (x - mean) units for the rows x of an array of another library, never formed."""

    def __init__(self, X, mean=None, units=None, weights=None):
        n, self._xp = X.shape[0], namespace_of(X)
        single = X.dtype == self._xp.float32
        n_samples = n if weights is None else float(np.sum(weights))
        super().__init__(np.float32 if single else np.float64, tuple(X.shape), n_samples)
        self.X, self.mean, self.units = X, mean, units
        self.weights = None if weights is None else np.asarray(weights, dtype=float)

    def less_mean(self, mean):
        mean = mean if self.units is None else _over(mean, self.units)
        mean = mean if self.mean is None else self.mean + mean
        return Foreign(self.X, mean, self.units, self.weights)

    def scaled(self, factors):
        factors = factors if self.units is None else self.units * factors
        return Foreign(self.X, self.mean, factors, self.weights)

    def weighted(self, weights):
        return Foreign(self.X, self.mean, self.units, weights)

    @property
    def unweighted(self):
        return Foreign(self.X, self.mean, self.units)

    def row_squared_norms(self):
        ones = np.ones((self.shape[1], 1))
        blocks = (self._double(block) for _, block in self._blocks())
        norms = [in_memory((block * block) @ self._sent(ones, float)) for block in blocks]
        return np.concatenate(norms).ravel()

    def column_sums(self):
        return self._sums(np.ones(self.shape[0]))

    def column_means(self):
        if self.weights is None:
            return super().column_means()
        return self.unweighted._sums(self.weights) / self.n_samples

    def _sums(self, counts):
        """Sums of rows that count so much each, in double precision."""
        counts = self._sent(counts[None], float)
        total = sum(
            in_memory(counts[:, rows] @ self._double(block)) for rows, block in self._blocks()
        )
        return np.ravel(total)

    def gram(self):
        return sum(in_memory(block.T @ block) for _, block in self._blocks())

    def dense_blocks(self):
        for _, block in self._blocks():
            yield in_memory(block)

    def rows(self, mask):
        mask = np.asarray(mask)
        index = np.flatnonzero(mask) if mask.dtype == bool else mask
        weights = None if self.weights is None else self.weights[index]
        return Foreign(take(self.X, index), self.mean, self.units, weights)

    def _matmat(self, B):
        B = self._sent(B)
        return np.concatenate([in_memory(block @ B) for _, block in self._blocks()])

    def _rmatmat(self, Z):
        Z = self._sent(Z)
        return sum(in_memory(block.T @ Z[rows, :]) for rows, block in self._blocks())

    def _blocks(self):
        """Runs of rows in their library, under what is laid over them, each with its slice."""
        n, d = self.shape
        mean, units = (
            None if part is None else self._sent(part) for part in (self.mean, self.units)
        )
        roots = None if self.weights is None else self._sent(np.sqrt(self.weights)[:, None])
        for rows in slices(n, max(1, FOREIGN_ENTRIES // max(d, 1))):
            block = self.X[rows, :]
            block = block if mean is None else block - mean
            block = block if units is None else block * units
            yield rows, block if roots is None else block * roots[rows, :]

    def _sent(self, values, dtype=None):
        """A small array where the rows are, in their precision."""
        return _sent(np.asarray(values, dtype=dtype or self.dtype), self.X)

    def _double(self, block):
        return self._xp.asarray(block, dtype=self._xp.float64)


def _over(mean, units):
    """The mean of rows in units as that of rows without; what was left out has none."""
    return np.divide(mean, units, out=np.zeros(len(mean)), where=np.asarray(units) != 0)


def take(X, index) -> Any:
    """Rows of an array of another library, by their numbers."""
    xp = namespace_of(X)
    index = _sent(np.asarray(index, dtype=np.int64), X)
    return X[index] if xp.__name__ == "torch" else xp.take(X, index, axis=0)


def opened(X) -> Any:
    """An array of another library as `Foreign`; in memory where it has gaps or is no table."""
    xp = namespace_of(X)
    if xp is None:
        return X
    X = X.detach() if hasattr(X, "detach") else X
    if X.ndim != 2 or 0 in tuple(X.shape) or X.dtype not in (xp.float32, xp.float64):
        return in_memory(X)
    data = Foreign(X)
    with np.errstate(over="ignore", invalid="ignore"):
        is_finite = np.isfinite(data.column_sums()).all()
    return data if is_finite else in_memory(X)
