"""Maximise a linear Gaussian likelihood in a growing subspace, by few products with the data.

The loadings of a maximum lie in the row space of X, and within an orthonormal basis V the
likelihood needs only the rows X V. So: solve the small problem inside V; look at the M-step
X'Z in full space; add what of it lies outside V to the basis; repeat. What a full EM step
would gain is known before the next product is paid, and it is the stopping rule.

The solver knows no model. The model is a function

    solve_small(SmallProblem) -> SmallSolution

that maximises the likelihood of rows whose inputs are reduced to r coordinates. Rows that
observe more than the inputs (labelled ones) are ``special``: their latent means are the model's
own; the latent means of all others are linear in the reduced rows.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from gnomon.exceptions import NumericalError
from gnomon.inference.loop import Method, Run, iterate

# Directions beyond those asked for with which a basis starts: the last one wanted then
# converges with the others.
EXTRA = 10
# Rows whose mixtures are the start: enough to lean towards the leading axes, more of many rows,
# and steps of the power method on these. Of 1,000,000 texts 50,000 with 8 steps save 3 of 7 rounds,
# of 18,820 texts 4000 with two steps save one of 8.
SAMPLED_ROWS, SAMPLED_SHARE, SAMPLED_MOST, SAMPLED_ENTRIES = 4000, 20, 50_000, 2**23
MOST_POWERS = 8
# Below this tolerance per entry of X, products in single precision are not exact enough.
SINGLE_ABOVE = 1e-9
# Directions whose gain is below this share of what may be left are not multiplied further.
LOCK = 0.1
# Gain of a whole round over the gain of one EM step, before a round has been seen.
FIRST_RATIO = 3.0
# Loss of orthogonality beyond which a new block is projected a second time.
CLEAN = 1e3
# Blocks of q directions that the basis may hold before it is cut to the best of them.
MOST_BLOCKS = 3
# Rows of a tall matrix that are mixed at a time, in place: few enough for the cache.
ROWS_AT_ONCE = 4096


class SmallProblem(NamedTuple):
    """Rows in principal coordinates of the basis: T'T = diag(energies), descending.

    ``special`` are the rows (n1, r) of T that observe more than the inputs, or None; ``last``
    is the state that the previous round's answer carried, and ``rotation`` (r_before, r) maps
    coordinates of that round to these; ``final`` asks for the maximum in full.
    """

    energies: np.ndarray
    special: np.ndarray | None
    last: Any
    rotation: np.ndarray | None
    final: bool


class SmallSolution(NamedTuple):
    """The maximum in reduced coordinates.

    Latent means are T @ H (r, q) for ordinary rows and ``special`` (n1, q) for the special
    ones; ``second`` (q, q) is the sum of E[z z'] over all rows, ``sigma2`` the noise variance of
    the inputs, ``state`` what the next round may start from.
    """

    H: np.ndarray
    special: np.ndarray | None
    second: np.ndarray
    sigma2: float
    objective: float
    state: Any


class Solution(NamedTuple):
    """An orthonormal basis (d, q') of the loadings, the answer in it, and how it was found."""

    basis: np.ndarray
    reduced: SmallProblem
    small: SmallSolution
    objective: list[float]
    n_products: int
    converged: bool


def maximise(  # noqa: PLR0913 - a solver and its settings
    X,
    solve_small: Callable[[SmallProblem], SmallSolution],
    start: np.ndarray,
    *,
    tol: float,
    max_rounds: int = 50,
    loop: Callable[..., Run] = iterate,
    special=None,
    exact=None,
    most_blocks: int = MOST_BLOCKS,
) -> Solution:
    """Grow a basis from the columns of ``start`` until a full EM step gains less than tol nats.

    X needs products and ``shape`` only; ``special`` is an index of rows. The answer is given on
    the span of the last full M-step with products of ``exact``, X in higher precision.
    ``most_blocks`` trades memory for time: more directions are kept before the basis is cut.
    Callbacks of the loop see the state that the last answer carries; since the basis is not part
    of it, a checkpoint cannot go on from there.
    """
    basis = _basis(X, special, most_blocks * start.shape[1])
    method = Method(
        _Round(block=orthonormal(start)),
        partial(_next_round, basis=basis, solve_small=solve_small, tol=tol, most=most_blocks),
        _last_state,
        settled=partial(_is_last, basis=basis, tol=tol),
        resumes=False,
    )
    run = loop(method, max_iter=max_rounds, tol=0.0)
    last = run.rest.start  # type: ignore[union-attr]
    # The basis is large, and the answer does not need it any more.
    run = run._replace(rest=None)
    del basis, method
    found = _polish(exact if exact is not None else X, last.step, solve_small, special)
    n_products = last.n_columns + last.step.full.shape[1]
    return found._replace(objective=run.objective, n_products=n_products, converged=run.converged)


def starting_block(X, k, rng) -> np.ndarray:
    """Mixtures (d, k) of sampled rows of `Data` that lean towards the leading axes.

    They are random, then turned by the power method on the sample for as long as that costs a
    product with all rows: a round that is saved costs two.
    """
    n, size = X.shape[0], _sample_size(X, k)
    try:
        rows = X.rows(np.sort(rng.choice(n, size, replace=False))).fetched()
    except TypeError:
        rows, size = X, n
    block = rows.T @ rng.standard_normal((size, k)).astype(X.dtype)
    for _ in range(min(n // (2 * size), MOST_POWERS)):
        block = rows.T @ (rows @ orthonormal(block))
    return block


def _sample_size(X, k):
    """Rows of the sample, fewer where rows are long and dense."""
    n, d = X.shape
    most = SAMPLED_MOST if X.is_sparse else SAMPLED_ENTRIES // d
    return min(n, max(SAMPLED_ROWS, 20 * k, min(n // SAMPLED_SHARE, most)))


class _Round(NamedTuple):
    """What a round ends with: directions to add, the answer, the M-step and what it promises.

    ``state`` is where the next round starts from. ``gain`` bounds what an EM step in full space
    would gain, ``ratio`` is the gain of the last round over that bound.
    """

    block: np.ndarray
    small: SmallSolution | None = None
    step: "_Step | None" = None
    state: Any = None
    objective: float | None = None
    ratio: float = FIRST_RATIO
    gain: float = np.inf
    n_columns: int = 0


def _next_round(before: _Round, basis, solve_small, tol, most):
    """Add the directions to the basis, solve inside it, look outside it."""
    if before.small is not None:
        basis.make_room(before.block.shape[1], before.small.H, most)
    columns = before.n_columns + basis.append(before.block)
    reduced = basis.reduce(before.state, final=before.ratio * before.gain < 30 * tol)
    small = solve_small(reduced)
    state, objective, ratio = small.state, small.objective, _ratio(before, small.objective)
    step, block, gain = _look_outside(basis, small, tol)
    columns += small.H.shape[1]
    if ratio * gain < tol and not reduced.final:
        small = solve_small(reduced._replace(final=True, last=small.state, rotation=None))
        step, block, gain = _look_outside(basis, small, tol)
        columns += small.H.shape[1]
    return _Round(block, small, step, state, objective, ratio, gain, columns), objective


def _last_state(last: _Round):
    return None if last.small is None else last.small.state


def _is_last(last: _Round, basis, tol):
    """Whether a further round would gain next to nothing, or there is no room for one."""
    settled = last.ratio * last.gain < tol or last.block.shape[1] == 0
    return settled or basis.is_full(last.block)


def orthonormal(B) -> np.ndarray:
    """An orthonormal basis of the columns of B, by the eigenvectors of its Gram matrix.

    Faster than Householder QR for tall B; done twice, so that it is as orthonormal.
    """
    for _ in range(2):
        values, U = np.linalg.eigh(_gram(B))
        kept = values > values[-1] * np.finfo(B.dtype).eps * 10
        B = B @ (U[:, kept] / np.sqrt(values[kept])).astype(B.dtype)
    return B


class _Step(NamedTuple):
    """The M-step X'Z in full space (d, q), and its part outside of the basis."""

    full: np.ndarray
    outside: np.ndarray
    second: np.ndarray


class _Columns:
    """A matrix that grows by columns, with a little room to spare."""

    def __init__(self, n, dtype, room):
        self._room = np.empty((n, room), dtype=dtype, order="F")
        self._used = 0

    @property
    def filled(self):
        return self._room[:, : self._used]

    def append(self, block):
        needed = self._used + block.shape[1]
        if needed > self._room.shape[1]:
            room = np.empty(
                (len(self._room), needed + needed // 2), dtype=self._room.dtype, order="F"
            )
            room[:, : self._used] = self.filled
            self._room = room
        self._room[:, self._used : needed] = block
        self._used = needed

    def mix(self, M):
        """Replace the columns by mixtures of them, a block of rows at a time, in place."""
        k = M.shape[1]
        for start in range(0, len(self._room), ROWS_AT_ONCE):
            rows = slice(start, start + ROWS_AT_ONCE)
            self._room[rows, :k] = self.filled[rows] @ M.astype(self._room.dtype)
        self._used = k


class _Basis:
    """The basis V (d, r), the reduced rows T = X V (n, r), and their Gram matrices."""

    def __init__(self, X, special, room):
        self.X, self.special = X, special
        room = min(room, *X.shape)
        self._V = _Columns(X.shape[1], X.dtype, room)
        self._T = _Columns(X.shape[0], X.dtype, room)
        self.S, self.G = np.empty((0, 0)), np.empty((0, 0))
        self._map = None

    @property
    def V(self):
        return self._V.filled

    @property
    def T(self):
        return self._T.filled

    def make_room(self, width, H, most_blocks):
        """Keep the span of the answer and the leading axes, if ``width`` more would be too many."""
        r, q = H.shape
        if r + width <= most_blocks * (q + 10):
            return
        kept, _ = np.linalg.qr(np.hstack([H, np.eye(r, min(2 * q, r))]))
        self._mix(self._map @ kept)
        self.S = kept.T @ (self._map.T @ self.S @ self._map) @ kept  # type: ignore[union-attr]
        self.G = kept.T @ (self._map.T @ self.G @ self._map) @ kept  # type: ignore[union-attr]
        self._map = kept.T

    def _mix(self, M):
        self._V.mix(M)
        self._T.mix(M)

    def append(self, block) -> int:
        rows = self.X @ block
        self._grow(block, self.T.T @ rows, _gram(rows))
        self._T.append(rows)
        return block.shape[1]

    def _grow(self, block, side, corner):
        """Take in directions whose rows have these products with those before, and together."""
        self.S = _border(self.S, self.V.T @ block, _gram(block))
        self.G = _border(self.G, side, corner)
        self._V.append(block)

    def _special_rows(self):
        """Reduced special rows (n1, r)."""
        return self.T[self.special]

    def reduce(self, last, final) -> SmallProblem:
        """Coordinates in which the basis is orthonormal and the energies are diagonal."""
        try:
            L = np.linalg.cholesky(self.S)
        except np.linalg.LinAlgError as error:
            raise NumericalError("the basis of the subspace has lost its rank") from error
        inverse = np.linalg.solve(L, np.eye(len(L)))
        values, U = np.linalg.eigh(inverse @ self.G @ inverse.T)
        mapping = (inverse.T @ U)[:, ::-1]
        rotation = None
        if self._map is not None:
            before = self._map.shape[0]
            rotation = self._map.T @ self.S[:before] @ mapping
        self._map = mapping
        special = None
        if self.special is not None:
            special = self._special_rows().astype(float) @ mapping
        return SmallProblem(np.maximum(values[::-1], 0.0), special, last, rotation, final)

    def m_step(self, small: SmallSolution) -> _Step:
        """X'Z, and what of it lies outside; V'X'Z comes from the small side, without V."""
        H = self._map @ small.H
        inside = self.G @ H
        if self.special is not None:
            rows = self._special_rows().astype(float)
            inside += rows.T @ (small.special - rows @ H)
        full = self._backwards(H, small.special)
        outside = full - self.V @ np.linalg.solve(self.S, inside).astype(full.dtype)
        if np.linalg.norm(outside) < CLEAN * np.finfo(full.dtype).eps * np.linalg.norm(full):
            outside -= self.V @ np.linalg.solve(self.S, self.V.T @ outside).astype(full.dtype)
        return _Step(full, outside, small.second)

    def _backwards(self, H, special):
        """X'Z for the latent means Z = T H of ordinary rows and those given of special ones."""
        Z = self.T @ H.astype(self.T.dtype)
        if self.special is not None:
            Z[self.special] = special
        return self.X.T @ Z

    def is_full(self, block) -> bool:
        return self.V.shape[1] + block.shape[1] > min(self.X.shape)


class _DistantBasis(_Basis):
    """The same for rows elsewhere: T is never formed, and only reduced special rows are kept."""

    def __init__(self, X, special, room):
        super().__init__(X, special, room)
        self._T = _Columns(0 if special is None else len(special), X.dtype, min(room, *X.shape))
        # The number of each row among the special ones, -1 for ordinary ones.
        self._place = np.full(X.shape[0], -1, dtype=np.int32)
        if special is not None:
            self._place[special] = np.arange(len(special))

    def append(self, block) -> int:
        normal, rows = self.X.reduced(partial(_forwards, B=block), self._place, join=_both)
        self._grow(block, self.V.T @ normal, block.T @ normal)
        self._T.append(rows)
        return block.shape[1]

    def _special_rows(self):
        return self.T

    def _backwards(self, H, special):
        B = self.V @ H.astype(self.V.dtype)
        return self.X.reduced(partial(_there_and_back, B=B, special=special), self._place)


def _basis(X, special, room):
    """An empty basis for rows that are here or elsewhere."""
    distant = getattr(X, "is_elsewhere", False)
    return (_DistantBasis if distant else _Basis)(X, special, room)


def _forwards(X, place, B):
    """X'X B (d, k), and the special rows of X B (n1, k)."""
    rows = X @ B
    return X.T @ rows, rows[place >= 0]


def _both(a, b):
    return a[0] + b[0], np.concatenate([a[1], b[1]])


def _there_and_back(X, place, B, special):
    """X'Z with Z = X B but for special rows, whose Z are given."""
    Z, given = X @ B, place >= 0
    if given.any():
        Z[given] = special[place[given]]
    return X.T @ Z


def _look_outside(basis, small: SmallSolution, tol):
    """The M-step in full space, the directions it adds to the basis, and what they gain."""
    step = basis.m_step(small)
    return step, *_ascent_directions(step.outside, small, tol)


def _ascent_directions(outside, small: SmallSolution, tol):
    """Orthonormal directions outside the basis, strongest first, and the gain of an EM step.

    In coordinates where E[z z'] sums to the identity, the squared length of a direction over
    twice the noise is what the likelihood gains by it. What rounding leaves of their products
    is kept with the basis.
    """
    L = np.linalg.cholesky(small.second)
    whitened = outside @ np.linalg.solve(L, np.eye(len(L))).T.astype(outside.dtype)
    values, U = np.linalg.eigh(_gram(whitened))
    gains = np.maximum(values, 0.0) / (2 * small.sigma2)
    kept = gains > LOCK * tol / len(gains)
    directions = (U[:, kept] / np.sqrt(values[kept])).astype(outside.dtype)
    return whitened @ directions, gains.sum()


def _ratio(before: _Round, reached):
    if before.objective is None or not np.isfinite(before.gain) or before.gain <= 0:
        return before.ratio
    return float(np.clip((reached - before.objective) / before.gain, 1.0, 10.0))


def _polish(X, step: _Step, solve_small, special) -> Solution:
    """The maximum on the span of the last M-step, with products in full precision."""
    block = orthonormal(step.full.astype(X.dtype))
    basis = _basis(X, special, block.shape[1])
    basis.append(block)
    reduced = basis.reduce(None, final=True)
    small = solve_small(reduced)
    return Solution(basis.V @ basis._map, reduced, small, [], 0, False)


def _gram(B):
    return np.asarray(B.T @ B, dtype=float)


def _border(A, side, corner):
    return np.block([[A, side], [side.T, corner]]).astype(float)
