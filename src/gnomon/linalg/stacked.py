"""Rows stacked from parts, and the centring of data of every kind."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from gnomon.linalg.data import Centered, Data, Weighted


class Blocks(Data):
    """Rows of several `Data`, stacked; ``map`` decides where their products run."""

    def __init__(self, parts: Iterable[Data], map: Callable = map):
        self.parts: Sequence[Data] = list(parts)
        self.map = map
        if not self.parts:
            raise ValueError("parts is empty; Blocks needs at least one block of rows")
        widths = {part.shape[1] for part in self.parts}
        if len(widths) > 1:
            raise ValueError(f"parts have {sorted(widths)} columns; all must have the same")
        dtype = np.result_type(*[part.dtype for part in self.parts])
        self._starts = np.cumsum([0] + [part.shape[0] for part in self.parts])
        super().__init__(
            dtype,
            (int(self._starts[-1]), widths.pop()),
            sum(part.n_samples for part in self.parts),
        )

    @property
    def is_sparse(self):
        return all(part.is_sparse for part in self.parts)

    @property
    def squared_norm(self):
        return float(sum(self.map(_part_squared_norm, self.parts)))

    def row_squared_norms(self):
        return np.concatenate(list(self.map(_part_row_norms, self.parts)))

    def column_sums(self):
        return sum(self.map(_part_sums, self.parts))

    def gram(self):
        return sum(self.map(_part_gram, self.parts))

    def dense_blocks(self):
        for part in self.parts:
            yield from part.dense_blocks()

    def dual_gram(self):
        rows = np.concatenate(list(self.map(_part_rows, self.parts)))
        return (rows @ rows.T).astype(float)

    def single(self):
        return Blocks([part.single() for part in self.parts], self.map)

    def rows(self, mask):
        mask = np.asarray(mask)
        if mask.dtype != bool:
            if np.any(np.diff(mask) < 0):
                raise ValueError("an index into Blocks must be sorted")
            mask = np.isin(np.arange(self.shape[0]), mask)
        cut = np.split(mask, self._starts[1:-1])
        parts = [part.rows(m) for part, m in zip(self.parts, cut, strict=True) if m.any()]
        return Blocks(parts or [self.parts[0].rows(cut[0])], self.map)

    def _matmat(self, B):
        return np.concatenate(list(self.map(_part_product, self.parts, [B] * len(self.parts))))

    def _rmatmat(self, Z):
        cut = np.split(Z, self._starts[1:-1])
        return sum(self.map(_part_transposed_product, self.parts, cut))


def column_means(X: Data) -> np.ndarray:
    """Means of the columns in float64, weighted where X is."""
    if isinstance(X, Weighted):
        return np.asarray(X.X.T @ X.weights[:, None], dtype=float).ravel() / X.n_samples
    return X.column_sums() / X.n_samples


def center(X: Data) -> tuple[np.ndarray, Data]:
    """Column means of X, and X less them, not formed."""
    mean = column_means(X)
    return mean, less_mean(X, mean)


def less_mean(X: Data, mean) -> Data:
    """X - 1 mean', not formed, below the weights or blocks that X may have."""
    if isinstance(X, Weighted):
        return Weighted(Centered(X.X, mean), X.weights)
    if isinstance(X, Blocks):
        return Blocks([Centered(part, mean) for part in X.parts], X.map)
    return Centered(X, mean)


def _part_squared_norm(part):
    return part.squared_norm


def _part_row_norms(part):
    return part.row_squared_norms()


def _part_sums(part):
    return part.column_sums()


def _part_rows(part):
    return np.concatenate(list(part.dense_blocks()))


def _part_gram(part):
    return part.gram()


def _part_product(part, B):
    return part @ B


def _part_transposed_product(part, Z):
    return part.T @ Z
