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
from gnomon.linalg.eigen import leaning_block
from gnomon.linalg.sparse_products import LANES
from gnomon.linalg.tall import Tall, inner, mixed

# Directions beyond those asked for with which a basis starts: the last one wanted then
# converges with the others.
EXTRA = 10
# Rows whose mixtures are the start: enough to lean towards the leading axes, more of many rows,
# and rounds of products with these. With 4000 of 18,820 texts and 4 rounds, fits are 8 % sooner
# done than with two steps of the power method, of 23,149 others 14 %; dense ones some 10 % later.
SAMPLED_ROWS, SAMPLED_SHARE, SAMPLED_MOST, SAMPLED_ENTRIES = 4000, 20, 50_000, 2**23
MOST_SAMPLED_ROUNDS = 8
# Below this tolerance per entry of X, products in single precision are not exact enough.
SINGLE_ABOVE = 1e-9
# Directions whose gain is below this share of what may be left are not multiplied further.
LOCK = 0.1
# What fills up the lanes of a product has at least this share of the gain asked of a direction.
ROUNDING = 0.01
# Gain of a whole round over the gain of one EM step, before a round has been seen.
FIRST_RATIO = 3.0
# Loss of orthogonality beyond which a new block is projected a second time.
CLEAN = 1e3
# Blocks of q directions that the basis may hold before it is cut to the best of them.
MOST_BLOCKS = 3
# Columns of a row that count when special rows are held beside the data: texts have some hundreds.
MOST_STORED = 1000


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
    basis = _Basis(X, special)
    method = Method(
        _Round(block=orthonormal(start)),
        partial(_next_round, basis=basis, solve_small=solve_small, tol=tol, most=most_blocks),
        _last_state,
        settled=partial(_is_last, basis=basis, tol=tol),
        resumes=False,
    )
    run = loop(method, max_iter=max_rounds, tol=0.0)
    last = run.rest.start  # type: ignore[union-attr]
    full, n_columns = basis.full(last.step), last.n_columns + last.step.outside.shape[1]
    # The basis is large, and the answer does not need it any more.
    run, last = run._replace(rest=None), None
    del basis, method
    found = _polish(exact if exact is not None else X, full, solve_small, special)
    return found._replace(objective=run.objective, n_products=n_columns, converged=run.converged)


def starting_block(X, k, rng) -> np.ndarray:
    """Mixtures (d, k) of sampled rows of `Data` that lean towards the leading axes, or a few more.

    They are the best of a space that products with the sample make, as many as cost a round with
    all rows.
    """
    n, k = X.shape[0], _in_lanes(k)
    size = _sample_size(X, k)
    try:
        rows = X.rows(np.sort(rng.choice(n, size, replace=False))).fetched()
    except TypeError:
        rows, size = X, n
    start = rng.standard_normal((size, k)).astype(X.dtype)
    return leaning_block(rows, start, max(1, min(n // size, MOST_SAMPLED_ROUNDS)))


def _in_lanes(count):
    """So many columns or a few more, which cost a product nothing."""
    return -(-count // LANES) * LANES


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


def orthonormal(B, times=2) -> np.ndarray:
    """An orthonormal basis of the columns of B, by the eigenvectors of its Gram matrix.

    Faster than Householder QR for tall B; done twice, so that it is as orthonormal. Once is enough
    where what is left of their products is kept with the basis.
    """
    for _ in range(times):
        values, U = np.linalg.eigh(inner(B, B))
        kept = values > values[-1] * np.finfo(B.dtype).eps * 10
        B = mixed(B, U[:, kept] / np.sqrt(values[kept]))
    return B


class _Step(NamedTuple):
    """What of the M-step X'Z lies outside of the basis (d, q), and the coordinates (r, q) inside.

    ``gram`` (q, q) are the products of the part outside.
    """

    inside: np.ndarray
    outside: np.ndarray
    gram: np.ndarray


class _Basis:
    """The basis V (d, r), the products N = X'X V (d, r), and Gram matrices S = V'V, G = V'N.

    Reduced rows X V are kept of special rows alone, and these rows themselves where they are few:
    X'Z of all others is a mixture of N, without another product with the data.
    """

    def __init__(self, X, special):
        self.X, self.special = X, special
        self.V, self.N = Tall(X.shape[1]), Tall(X.shape[1])
        self.T = np.empty((0 if special is None else len(special), 0), dtype=X.dtype)
        self._place = _places(X.shape[0], special)
        self._special_rows = _kept_rows(X, special)
        self.S, self.G = np.empty((0, 0)), np.empty((0, 0))
        self._map: Any = None

    def make_room(self, width, H, most_blocks):
        """Keep the span of the answer and the leading axes, if ``width`` more would be too many."""
        r, q = H.shape
        if r + width <= most_blocks * (q + 10):
            return
        kept, _ = np.linalg.qr(np.hstack([H, np.eye(r, min(2 * q, r))]))
        mixing = self._map @ kept
        self.V.mix(mixing)
        self.N.mix(mixing)
        self.T = self.T @ mixing.astype(self.T.dtype)
        self.S, self.G = mixing.T @ self.S @ mixing, mixing.T @ self.G @ mixing
        self._map = kept.T

    def append(self, block) -> int:
        """Take in directions, by a product with the rows and one back."""
        normal, rows = self.X.reduced(partial(_there_and_back, B=block), self._place, join=_both)
        self.V.append(block)
        self.N.append(normal)
        self.T = np.hstack([self.T, rows])
        products = inner(self.V, block, normal)
        self.S = _border(self.S, products[:, : block.shape[1]])
        self.G = _border(self.G, products[:, block.shape[1] :])
        return block.shape[1]

    def reduce(self, last, final) -> SmallProblem:
        """Coordinates in which the basis is orthonormal and the energies are diagonal."""
        before, rotation = self._map, None
        self._map, values = _principal(self.S, self.G)
        if before is not None:
            rotation = before.T @ self.S[: len(before)] @ self._map
        special = None if self.special is None else self.T.astype(float) @ self._map
        return SmallProblem(np.maximum(values, 0.0), special, last, rotation, final)

    def m_step(self, small: SmallSolution) -> _Step:
        """X'Z = N H and what special rows differ by, in the basis and outside of it."""
        H = self._map @ small.H
        inside, more = self.G @ H, None
        if self.special is not None:
            rows = self.T.astype(float)
            own = small.special - rows @ H
            inside, more = inside + rows.T @ own, self._of_special_rows(own)
        inside = np.linalg.solve(self.S, inside)
        outside = mixed(self.N, H, less=(self.V, inside), plus=more)
        gram = inner(outside, outside)
        whole = np.trace(gram) + np.sum(inside * (self.S @ inside))
        if np.trace(gram) < (CLEAN * np.finfo(outside.dtype).eps) ** 2 * whole:
            rounding = np.linalg.solve(self.S, inner(self.V, outside))
            outside -= mixed(self.V, rounding)
            gram = inner(outside, outside)
        return _Step(inside, outside, gram)

    def _of_special_rows(self, Z):
        """X'Z of special rows."""
        if self._special_rows is not None:
            return self._special_rows.T @ Z.astype(self.X.dtype)
        return self.X.reduced(partial(_back, special=Z.astype(self.X.dtype)), self._place)

    def full(self, step: _Step):
        """The M-step X'Z (d, q)."""
        return step.outside + mixed(self.V, step.inside)

    def is_full(self, block) -> bool:
        return self.V.shape[1] + block.shape[1] > min(self.X.shape)


def _kept_rows(X, special):
    """The special rows, if they are few enough to be held beside the data; else None."""
    if special is None or len(special) * min(X.shape[1], MOST_STORED) > SAMPLED_ENTRIES:
        return None
    try:
        return X.rows(special).fetched()
    except TypeError:
        return None


def _places(n, special):
    """The number of each row among the special ones, -1 for ordinary ones."""
    place = np.full(n, -1, dtype=np.int32)
    if special is not None:
        place[special] = np.arange(len(special))
    return place


def _there_and_back(X, place, B):
    """X'X B (d, k), and the special rows of X B (n1, k)."""
    # The bare products: what SciPy wraps around them costs more than small ones.
    rows = X._matmat(B)
    return X._rmatmat(rows), rows[place >= 0]


def _both(a, b):
    return a[0] + b[0], np.concatenate([a[1], b[1]])


def _back(X, place, special):
    """X'Z for Z that is zero but for special rows."""
    Z, given = np.zeros((X.shape[0], special.shape[1]), dtype=special.dtype), place >= 0
    Z[given] = special[place[given]]
    return X.T @ Z


def _there(X, place, B):
    """The Gram matrix of X B (k, k), and its special rows (n1, k)."""
    rows = X @ B
    return inner(rows, rows), rows[place >= 0]


def _principal(S, G):
    """Mixtures of the basis that are orthonormal and have diagonal energies, and these."""
    try:
        L = np.linalg.cholesky(S)
    except np.linalg.LinAlgError as error:
        raise NumericalError("the basis of the subspace has lost its rank") from error
    inverse = np.linalg.solve(L, np.eye(len(L)))
    values, U = np.linalg.eigh(inverse @ G @ inverse.T)
    return (inverse.T @ U)[:, ::-1], values[::-1]


def _look_outside(basis, small: SmallSolution, tol):
    """The M-step in full space, the directions it adds to the basis, and what they gain."""
    step = basis.m_step(small)
    return step, *_ascent_directions(step.outside, step.gram, small, tol)


def _ascent_directions(outside, gram, small: SmallSolution, tol):
    """Orthonormal directions outside the basis, strongest first, and the gain of an EM step.

    In coordinates where E[z z'] sums to the identity, the squared length of a direction over
    twice the noise is what the likelihood gains by it. What rounding leaves of their products
    is kept with the basis.
    """
    L = np.linalg.cholesky(small.second)
    whitening = np.linalg.solve(L, np.eye(len(L))).T
    values, U = np.linalg.eigh(whitening.T @ gram @ whitening)
    gains = np.maximum(values, 0.0) / (2 * small.sigma2)
    kept = _whole_lanes(gains, LOCK * tol / len(gains))
    return mixed(outside, whitening @ (U[:, kept] / np.sqrt(values[kept]))), gains.sum()


def _whole_lanes(gains, least):
    """The gains (ascending) above the least, and next ones that cost nothing more.

    Those that are far below are rounding, by which a basis would lose its rank.
    """
    n, count = len(gains), _in_lanes(int(np.sum(gains > least)))
    return (np.arange(n) >= n - count) & (gains > ROUNDING * least)


def _ratio(before: _Round, reached):
    if before.objective is None or not np.isfinite(before.gain) or before.gain <= 0:
        return before.ratio
    return float(np.clip((reached - before.objective) / before.gain, 1.0, 10.0))


def _polish(X, full, solve_small, special) -> Solution:
    """The maximum on the span of the last M-step, with products in full precision."""
    block = orthonormal(full.astype(X.dtype), times=1)
    place = _places(X.shape[0], special)
    gram, rows = X.reduced(partial(_there, B=block), place, join=_both)
    mapping, values = _principal(inner(block, block), gram)
    own = None if special is None else rows.astype(float) @ mapping
    reduced = SmallProblem(np.maximum(values, 0.0), own, None, None, True)
    return Solution(mixed(block, mapping), reduced, solve_small(reduced), [], 0, False)


def _border(A, side):
    """A symmetric matrix with the columns that were added to it, (r, k) from the top."""
    r = len(A)
    return np.block([[A, side[:r]], [side[:r].T, side[r:]]])
