"""Graphs as sparse arrays, and functions of their normalised adjacency S from products alone.

Weights are float64 from the start, so that no product of small integers wraps around.

Functions of S are by Lanczos. For each column b of B the recursion gives a basis Q of b, S b, ...
and a small tridiagonal matrix T = Q'S Q with eigenvalues theta and eigenvectors V, such that

    b' f(S) b  =  |b|^2 sum_j V_1j^2 f(theta_j)         (Gauss quadrature)
    f(S) b     =  |b| Q V f(theta) V_1'

exactly for polynomials of low degree, and for all f once there are as many steps as
distinct eigenvalues. All columns run side by side.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from scipy.sparse.csgraph import connected_components, reverse_cuthill_mckee
from scipy.sparse.linalg import ArpackNoConvergence, LinearOperator, eigsh

from gnomon.linalg.data import row_slices, slices
from gnomon.linalg.solve import above_rounding, fix_signs

# Below this many rows the basis is kept orthogonal, which makes full-length runs exact. Short runs
# on more rows stay orthogonal to rounding by themselves.
ORTHOGONAL_BELOW = 500
# Below this many rows all eigenvalues are taken, in about a second; above it they are sampled.
EXACT_BELOW = 1500
# Rows worked on at a time: few enough for the cache, and for sums in the precision of the data.
RUN = 2048
# Columns of the identity that run side by side: enough for fast products, few enough for memory.
COLUMNS = 64
# Eigenvalues next to 1 that are computed one by one: those that smooth functions depend on most.
N_LEADING = 24
# Random vectors for the rest of the spectrum, up to so many rows, and Lanczos steps from each; the
# log likelihood of a relational model of 1,400 rows is then right to a tenth of a nat.
N_PROBES, MANY_ROWS, PROBE_STEPS = 20, 5000, 80
# Eigenvalues that are kept of all that the probes give: more than a smooth function tells apart.
N_MERGED = 400


def undirected(A) -> sparse.csr_array:
    """The larger of the two weights between each two nodes; A and A' give the same."""
    A = sparse.csr_array(A.maximum(A.T))
    A.eliminate_zeros()
    A.sort_indices()
    return A


def without_loops(A) -> sparse.csr_array:
    """A copy of A with a zero diagonal."""
    A = sparse.csr_array(A, copy=True)
    A.setdiag(0)
    A.eliminate_zeros()
    return A


def colinks(directed) -> sparse.csr_array:
    """1 where a third node links to both, or both link to a third; 0 elsewhere."""
    D = without_loops(directed)
    D.data[:] = 1.0
    A = without_loops(D.T @ D + D @ D.T)
    A.data[:] = 1.0
    return A


def joined_pairs(directed) -> tuple[int, int]:
    """The most links of one kind that a node has, and a bound on the pairs that `colinks` joins."""
    D = without_loops(directed)
    ends = D.nonzero()
    degrees = [np.bincount(end, minlength=D.shape[0]).astype(float) for end in ends]
    pairs = sum(float((k * (k - 1) / 2).sum()) for k in degrees)
    n = D.shape[0]
    return int(max(k.max() for k in degrees)), int(min(pairs, n * (n - 1) / 2))


def from_pairs(pairs, weights, n) -> sparse.coo_array:
    """Each pair once, with the largest of its weights; a sparse array would add them up."""
    low, high = pairs.min(axis=1), pairs.max(axis=1)
    order = np.lexsort((-weights, high, low))
    low, high, weights = low[order], high[order], weights[order]
    first = np.ones(len(low), dtype=bool)
    first[1:] = (np.diff(low) != 0) | (np.diff(high) != 0)
    return sparse.coo_array((weights[first], (low[first], high[first])), shape=(n, n))


def normalized(A) -> sparse.csr_array:
    """S = D^(-1/2) (A + I) D^(-1/2) with D the degrees of A + I; spectrum in (-1, 1]."""
    roots = _loop_roots(A)
    n = A.shape[0]
    S = sparse.csr_array(A + sparse.eye_array(n, format="csr"))
    return sparse.csr_array(S / roots[:, None] / roots[None, :])


def leading_axes(A, size) -> np.ndarray:
    """V |L|^(-1/2) (n, at most size), V and L the eigenpairs of A that are largest in size.

    A times it has the rows' places on these axes, in units in which they span |A|.
    """
    n = A.shape[0]
    if n <= 4 * size:
        values, V = np.linalg.eigh(A.toarray())
    else:
        values, V = eigsh(A, k=size, which="LM", v0=np.ones(n))
    order = np.argsort(-np.abs(values), kind="stable")[:size]
    order = order[above_rounding(np.abs(values[order]))]
    return fix_signs(V[:, order]) / np.sqrt(np.abs(values[order]))


def nearest(F, anchors, k) -> np.ndarray:
    """Numbers (n, k) of the anchors (m, p) nearest to each row of F (n, p), the nearest first.

    In the precision of F.
    """
    shape = len(F), len(anchors)
    # The lengths of the anchors in the product: no further pass over all distances.
    weights = np.vstack([-2 * anchors.T, np.sum(anchors**2, axis=1)])
    columns = np.empty((len(F), k), dtype=np.intp)
    for rows in row_slices(shape):
        distances = np.column_stack([F[rows], np.ones(len(F[rows]), F.dtype)]) @ weights
        near = np.argpartition(distances, k - 1, axis=1)[:, :k]
        order = np.argsort(np.take_along_axis(distances, near, axis=1), axis=1)
        columns[rows] = np.take_along_axis(near, order, axis=1)
    return columns


def means_of(columns, m) -> sparse.csr_array:
    """Rows (n, m) that take the mean of the columns (n, k) of each."""
    n, k = columns.shape
    entries, starts = np.full(n * k, 1 / k), np.arange(0, n * k + 1, k)
    return sparse.csr_array((entries, np.sort(columns, axis=1).ravel(), starts), shape=(n, m))


def _loop_roots(A):
    """Square roots of the degrees of A + I."""
    return np.sqrt(1.0 + np.asarray(A.sum(axis=1), dtype=float).ravel())


def component_basis(A) -> sparse.csr_array:
    """Orthonormal columns that span the eigenspace of `normalized` at 1, one per component."""
    n = A.shape[0]
    n_components, member = connected_components(A, directed=False)
    roots = _loop_roots(A)
    lengths = np.sqrt(np.bincount(member, roots**2, minlength=n_components))
    entries = roots / lengths[member]
    return sparse.csr_array((entries, (np.arange(n), member)), shape=(n, n_components))


def near_order(A) -> np.ndarray:
    """The nodes with linked ones close to one another, so that products stay in the cache."""
    return reverse_cuthill_mckee(sparse.csr_array(A), symmetric_mode=True)


class Krylov(NamedTuple):
    """Bases (steps, n, k), theta and |b| V_1 (steps, k), eigenvectors V (k, steps, steps)."""

    basis: np.ndarray
    theta: np.ndarray
    heads: np.ndarray
    vectors: np.ndarray

    @property
    def weights(self) -> np.ndarray:
        """Weights (steps, k) of the quadrature b' f(S) b = sum_j weights_j f(theta_j)."""
        return self.heads**2


class Density(NamedTuple):
    """Eigenvalues and how often they occur: trace f(S) = sum_j counts_j f(eigenvalues_j)."""

    eigenvalues: np.ndarray
    counts: np.ndarray


def lanczos(S, B, steps: int) -> Krylov:
    """The Krylov spaces of S from the columns of B, at most n steps."""
    steps = min(steps, B.shape[0])
    basis = np.empty((steps, *B.shape), dtype=B.dtype)
    orthogonal = B.shape[0] <= ORTHOGONAL_BELOW
    norms = np.sqrt(_dots(B, B))
    diagonal, beside = np.zeros((steps, B.shape[1])), np.zeros((steps, B.shape[1]))
    np.multiply(B, _reciprocal(norms, B.dtype), out=basis[0])
    for j in range(steps):
        # Before the first vector there is none: beside[-1] is still zero.
        w, diagonal[j], beside[j] = _advance(
            S, basis[j], basis[j - 1] if j else basis[0], beside[j - 1]
        )
        if orthogonal:
            w = _against(basis[: j + 1], w)
            beside[j] = np.sqrt(_dots(w, w))
        # What is left of an invariant space is rounding; the recursion ends there.
        beside[j][beside[j] < 100 * np.finfo(B.dtype).eps] = 0.0
        if j + 1 < steps:
            np.multiply(w, _reciprocal(beside[j], B.dtype), out=basis[j + 1])
    theta, V = _small(diagonal, beside)
    return Krylov(basis, theta.T, (V[:, 0, :] * norms[:, None]).T, V)


def apply(krylov: Krylov, values) -> np.ndarray:
    """f(S) B (n, k) from the values f(theta) (steps, k) at theta."""
    coefficients = np.einsum("kij,jk,jk->ik", krylov.vectors, values, krylov.heads)
    basis = krylov.basis
    coefficients, out = coefficients.astype(basis.dtype), np.empty_like(basis[0])
    for run in slices(len(out), RUN):
        out[run] = basis[0, run] * coefficients[0]
        for j in range(1, len(basis)):
            out[run] += basis[j, run] * coefficients[j]
    return out


def unit_rule(S, nodes, steps: int) -> tuple[np.ndarray, np.ndarray]:
    """Theta and weights (steps, m) such that f(S)_ii = sum_j weights_ji f(theta_ji)."""
    parts = []
    for columns in slices(len(nodes), COLUMNS):
        part = nodes[columns]
        E = np.zeros((S.shape[0], len(part)), dtype=S.dtype)
        E[part, np.arange(len(part))] = 1.0
        krylov = lanczos(S, E, steps)
        parts.append((krylov.theta, krylov.weights))
    theta, weights = zip(*parts, strict=True)
    return np.concatenate(theta, axis=1), np.concatenate(weights, axis=1)


def density(S, top, rng: np.random.Generator) -> Density:
    """The spectrum of S: all of it for small n, else its upper end exact and the rest by probes.

    ``top`` are sparse orthonormal columns that span the eigenspace of S at 1. Random probes
    would see these eigenvalues and their neighbours too rarely, and a model that looks for
    smooth functions depends on them; so they are split off first.
    """
    n = S.shape[0]
    if n <= EXACT_BELOW:
        return Density(np.linalg.eigvalsh(S.toarray()), np.ones(n))
    # What is sampled is not exact, so that single precision is enough for it.
    S, top = S.astype(np.float32), top.astype(np.float32)
    values, vectors = _next_eigenpairs(S, top, rng)
    # A probe averages over the rows, so that more of these need fewer of those.
    n_probes = int(np.clip(N_PROBES * MANY_ROWS / n, 4, N_PROBES))
    probes = rng.choice(np.array([-1, 1], dtype=S.dtype), size=(n, n_probes))
    probes -= top @ (top.T @ probes) + vectors @ (vectors.T @ probes)
    theta, weights = _probe(S, probes)
    known = top.shape[1] + len(values)
    weights *= (n - known) / weights.sum()
    return Density(
        np.concatenate([[1.0], values, theta]),
        np.concatenate([[top.shape[1]], np.ones(len(values)), weights]),
    )


def _next_eigenpairs(S, top, rng):
    """The largest eigenpairs of S below 1, to 1e-3, since the probes take what is left."""
    n = S.shape[0]
    rest = LinearOperator((n, n), matvec=lambda b: S @ b - top @ (top.T @ b), dtype=S.dtype)
    k = min(N_LEADING, n - top.shape[1] - 1)
    if k < 1:
        return np.empty(0), np.empty((n, 0), dtype=S.dtype)
    v0 = rng.standard_normal(n).astype(S.dtype)
    try:
        return eigsh(rest, k, which="LA", tol=1e-3, v0=v0)
    except ArpackNoConvergence as error:
        return error.eigenvalues, error.eigenvectors


def _probe(S, B):
    """Eigenvalues and weights from every column of B, without keeping a basis."""
    norms = np.sqrt(_dots(B, B))
    v, previous, beta = B * _reciprocal(norms, B.dtype), np.zeros_like(B), np.zeros(B.shape[1])
    diagonal, beside = np.zeros((PROBE_STEPS, B.shape[1])), np.zeros((PROBE_STEPS, B.shape[1]))
    for j in range(PROBE_STEPS):
        w, diagonal[j], beta = _advance(S, v, previous, beta)
        beside[j] = beta
        previous, v = v, w * _reciprocal(beta, B.dtype)
    theta, V = _small(diagonal, beside)
    return _merge(theta.ravel(), (V[:, 0, :] * norms[:, None]).ravel() ** 2)


def _advance(S, v, previous, beta):
    """S v less its parts along v and the vector before, their factors, and its length."""
    w = S @ v
    diagonal = _subtract(w, previous, beta, onto=v)
    return w, diagonal, np.sqrt(_subtract(w, v, diagonal, onto=w))


def _subtract(w, v, factors, onto):
    """Take v times the factors from w, in place, and return inner products of w with ``onto``."""
    factors, total = factors.astype(w.dtype), np.zeros(w.shape[1])
    for run in slices(len(w), RUN):
        w[run] -= v[run] * factors
        total += np.einsum("nk,nk->k", w[run], onto[run])
    return total


def _merge(theta, weights):
    """Neighbouring eigenvalues joined to N_MERGED of them, each at its centre of weight."""
    order = np.argsort(theta)
    starts = np.unique(np.linspace(0, len(theta), N_MERGED, endpoint=False).astype(int))
    total = np.add.reduceat(weights[order], starts)
    moments = np.add.reduceat((weights * theta)[order], starts)
    kept = total > 0
    return moments[kept] / total[kept], total[kept]


def _small(diagonal, beside):
    """Eigenpairs of the tridiagonal matrices, one per column."""
    steps, k = diagonal.shape
    T = np.zeros((k, steps, steps))
    i = np.arange(steps)
    T[:, i, i] = diagonal.T
    T[:, i[1:], i[:-1]] = T[:, i[:-1], i[1:]] = beside[:-1].T
    return np.linalg.eigh(T)


def _against(basis, w):
    """W less its part in the basis, column by column, twice for full accuracy."""
    for _ in range(2):
        w = w - np.einsum("jnk,jk->nk", basis, np.einsum("jnk,nk->jk", basis, w))
    return w


def _dots(A, B):
    """Inner products of the columns, added up in double precision a run of rows at a time."""
    total = np.zeros(A.shape[1])
    for run in slices(len(A), RUN):
        total += np.einsum("nk,nk->k", A[run], B[run])
    return total


def _reciprocal(norms, dtype):
    """One over the norms, 0 where a norm is."""
    return np.divide(1.0, norms, out=np.zeros_like(norms), where=norms > 0).astype(dtype)
