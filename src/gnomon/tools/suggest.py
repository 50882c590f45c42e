"""Which rows to label next, and why.

A rule sees the rows as `View` has them: their places on the map, their content, probabilities of
the classes, which are labelled. It returns rows in the order in which they should be labelled,
each with its reason.

The default, "representative", takes the row j that stands for most rows in doubt [WIB15]:

    gain_j = sum_i d_i max(0, K_ij - c_i),    c_i = max over labelled l of K_il

    d_i     doubt: 1 less the difference of the two largest probabilities of row i, 1 without any
    K_ij    = exp(-|f_i - f_j|^2 / 2h^2), f the content: leading principal coordinates of all rows
    h       the usual distance of a row to its tenth neighbour

c_i is how well row i is covered by what is labelled, so that a row beside a labelled one gains
nothing; with each row that a batch takes, c grows. Without classes it is coverage by density;
with a K that is zero but for a row itself it would be the margin.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import KDTree
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators import as_array, check_integer, check_option, labelled_rows, n_rows
from gnomon.estimators.sppca import SPPCA
from gnomon.typing import OutputsLike, RowsLike, SeedLike

# Rows that are looked at, and stood for, where there are more: drawn at random, so many are as
# good, and what they are to each other is known within 10 ms.
MOST_CANDIDATES = 1000
# Principal coordinates that are the content of a row, and the neighbour that says what is near.
CONTENT, NEIGHBOUR = 20, 10
# Rows whose neighbours say how far is near; the median of more is the same.
ROWS_OF_WIDTH = 200
# Doubt of a row that is certain: where all are, the most representative one comes first.
LEAST_DOUBT = 1e-3
# Classes named as likely: so many fit beside a row, and less probable ones are left out.
MOST_LIKELY, LEAST_LIKELY = 3, 0.05


class Suggestion(NamedTuple):
    """A row to label, why, and its likely classes.

    Attributes
    ----------
    row : int
        Its place in X.
    reason : str
        Why this row, in a sentence.
    classes_likely : tuple of (class, float)
        The most probable classes and their probabilities, the first first; empty where the model
        predicts none.
    """

    row: int
    reason: str
    classes_likely: tuple = ()


class View(NamedTuple):
    """Rows as a rule sees them, and those that may be taken.

    Places Z (n, q) on the map, content F (n, p), probabilities P (n, C) of the classes ``names``
    or None, the mask of labelled rows, and that of rows that are not to be suggested.
    """

    Z: np.ndarray
    F: np.ndarray
    P: np.ndarray | None
    labelled: np.ndarray
    names: tuple = ()
    passed: np.ndarray | None = None


class Pick(NamedTuple):
    """A row that a rule takes, and why."""

    row: int
    reason: str


def suggest(
    model: Any,
    X: RowsLike,
    y: OutputsLike = None,
    *,
    n: int = 10,
    rule: str = "representative",
    random_state: SeedLike = 0,
) -> list[Suggestion]:
    """Rows to label next, chosen by a stated rule, with the reason of each.

    Parameters
    ----------
    model : fitted estimator
        Anything with ``transform``, as `SPPCA`, or a pipeline that ends in it; "margin",
        "entropy" and "density" need ``predict_proba`` too.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows to choose from, those that are labelled among them. Rows without any value are not
        suggested.
    y : array-like of shape (n_samples,), default=None
        Labels so far; -1 or None marks rows without. Labelled rows are not suggested, nor are
        rows like them. Without y all rows are taken as unlabelled.
    n : int, default=10
        How many rows to suggest. Fewer, and a fit after each few labels, need fewer labels.
    rule : {"representative", "margin", "entropy", "density", "coverage", "random"}
        "representative", the default, takes the row that stands for most rows in doubt which no
        labelled row is like, and needs the fewest labels. "margin" takes the row whose two most
        probable classes are closest, "entropy" the one with the most even probabilities,
        "density" weighs the margin by how many rows are about, "coverage" takes the row
        farthest from all labelled ones on the map, "random" draws.
    random_state : int, Generator or None, default=0
        Draws of "random", and of the 1,000 rows that are looked at where there are more.

    Returns
    -------
    suggestions : list of Suggestion
        Named tuples (row, reason, classes_likely), the first first; fewer than n where fewer
        rows are unlabelled.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gnomon import SPPCA, suggest
    >>> X, y = load_iris(return_X_y=True)
    >>> y[5:50] = y[55:100] = y[105:] = -1
    >>> model = SPPCA().fit(X, y)
    >>> row, reason, likely = suggest(model, X, y)[0]
    >>> print(row, reason)  # doctest: +ELLIPSIS
    96 stands for about 5 rows, with no labelled row like it; between 1 (...) and 2 (...)
    """
    check_is_fitted(model)
    n, rule = check_integer("n", n, low=1), check_option("rule", rule, tuple(RULES))
    view = _look(model, X, y)
    if view.P is None and rule in OF_CLASSES:
        rules = ", ".join(name for name in RULES if name not in OF_CLASSES)
        raise ValueError(
            f"rule == {rule!r} needs predict_proba, which {type(model).__name__} does not have "
            f"here; rules without are {rules}"
        )
    return choose(view, n=n, rule=rule, rng=np.random.default_rng(random_state))


def _look(model, X, y) -> View:
    """The rows on the map of a fitted model, with its probabilities where it has some."""
    names = tuple(np.asarray(getattr(model, "classes_", ())).tolist())
    labelled = np.zeros(n_rows(X), dtype=bool) if y is None else _labelled(y, names)
    if len(labelled) != n_rows(X):
        raise ValueError(f"y has {len(labelled)} rows, X has {n_rows(X)}; both must be equal")
    P = np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
    seen = model[:-1].transform(X) if isinstance(model, Pipeline) and len(model) > 1 else X
    Z = np.asarray(model.transform(X), dtype=float)
    return View(Z, content(seen), P, labelled, names, without_values(X))


def without_values(X) -> np.ndarray:
    """Mask of the rows that have no value at all: nothing tells what to label them."""
    values = np.zeros(0) if hasattr(X, "toarray") else as_array(X)
    if values.dtype.kind != "f" or values.ndim < 2:
        return np.zeros(n_rows(X), dtype=bool)
    return np.asarray(np.isnan(values).all(axis=1))


def _labelled(y, names):
    """Rows with a label; where 1 is the only one so far, -1 beside it is no class."""
    y = as_array(y)
    labelled = labelled_rows(y, "classes", names)
    return labelled if -1 in names or y.dtype.kind not in "if" else labelled & (y != -1)


def content(X) -> np.ndarray:
    """Leading principal coordinates of the rows, whatever they are labelled."""
    size = max(1, min(CONTENT, min(X.shape) - 1))
    return np.asarray(SPPCA(size, supervision=0.0, random_state=0).fit(X).transform(X))


def choose(view: View, *, n, rule, rng) -> list[Suggestion]:
    """At most n unlabelled rows by a rule, with their reasons and likely classes."""
    passed = view.labelled if view.passed is None else view.labelled | view.passed
    rows = np.flatnonzero(~passed)
    if not len(rows):
        return []
    if len(rows) > MOST_CANDIDATES:
        rows = np.sort(rng.choice(rows, MOST_CANDIDATES, replace=False))
    picks = RULES[rule](view, rows, min(n, len(rows)), rng)
    return [Suggestion(pick.row, pick.reason, _likely(view, pick.row)) for pick in picks]


def by_reach(view, rows, n, rng) -> list[Pick]:
    """Rows that stand for most rows in doubt which no labelled row is like, one after another."""
    doubt = doubts(None if view.P is None else view.P[rows], len(rows))
    K, covered = nearness(view.F[rows], view.F[view.labelled])
    share, picks = (~view.labelled).sum() / len(rows), []
    gains = doubt @ np.maximum(K - covered[:, None], 0.0)
    for _ in range(n):
        best = _best(gains, K, covered, doubt)
        stands_for = share * np.maximum(K[best] - covered, 0.0).sum()
        picks.append(Pick(int(rows[best]), _standing(view, rows[best], stands_for)))
        covered, gains[best] = np.maximum(covered, K[best]), -1.0
    return picks


def nearness(F, labelled) -> tuple[np.ndarray, np.ndarray]:
    """K (n, n) of the rows, and how near to each the nearest labelled row is (n,)."""
    # In units of the largest entry: squares in single precision end at 1e-38 and at 3e38.
    unit = np.abs(F).max(initial=0.0) or 1.0
    F, labelled = (F / unit).astype(np.float32), labelled / unit
    squares = np.sum(F**2, axis=1)
    D = np.maximum(squares[:, None] + squares - 2 * F @ F.T, 0)
    D[np.diag_indices_from(D)] = 0
    some, k = D[:: 1 + len(D) // ROWS_OF_WIDTH], min(NEIGHBOUR, len(D) - 1)
    width2 = float(np.median(np.partition(some, k, axis=1)[:, k])) or float(D.max()) or 1.0
    D /= -2 * width2
    covered = np.zeros(len(F))
    if len(labelled):
        covered = np.exp(-(distances_to(labelled, F) ** 2) / (2 * width2))
    return np.exp(D, out=D), covered.astype(np.float32)


def _best(gains, K, covered, doubt):
    """The row of largest gain; gains only fall as more is covered, so few are computed anew."""
    while True:
        best = int(np.argmax(gains))
        now = doubt @ np.maximum(K[best] - covered, 0.0)
        if now >= gains[best] or gains[best] < 0:
            return best
        gains[best] = now


def doubts(P, n) -> np.ndarray:
    """How little the probabilities say of each of n rows, from nearly 0 to 1; 1 without any."""
    doubt = np.ones(n) if P is None else np.maximum(1 - margins(P), LEAST_DOUBT)
    return doubt.astype(np.float32)


def margins(P) -> np.ndarray:
    """Difference between the two largest probabilities of every row."""
    if P.shape[1] < 2:
        return np.ones(len(P))
    top = np.partition(P, -2, axis=1)[:, -2:]
    return top[:, 1] - top[:, 0]


def by_margin(view, rows, n, rng) -> list[Pick]:
    """Rows whose two most probable classes are closest."""
    return _top(view, rows, n, -margins(view.P[rows]))


def by_entropy(view, rows, n, rng) -> list[Pick]:
    """Rows whose probabilities are most even."""
    P = view.P[rows]
    return _top(view, rows, n, -np.sum(P * np.log(np.maximum(P, np.finfo(float).tiny)), axis=1))


def by_density(view, rows, n, rng) -> list[Pick]:
    """Rows between two classes, by how many rows are about."""
    K, _ = nearness(view.F[rows], view.F[:0])
    return _top(view, rows, n, (1 - margins(view.P[rows])) * K.sum(axis=0))


def _top(view, rows, n, scores) -> list[Pick]:
    order = np.argsort(-scores, kind="stable")[:n]
    return [Pick(int(row), _between(view, row)) for row in rows[order]]


def by_coverage(view, rows, n, rng) -> list[Pick]:
    """Rows farthest from all labelled ones on the map, one after another (k-centre)."""
    Z, picks = view.Z[rows], []
    away = distances_to(view.Z[view.labelled], Z)
    usual = float(np.median(away))
    for _ in range(n):
        best = int(np.argmax(away))
        picks.append(Pick(int(rows[best]), _far(away[best], usual)))
        away = np.minimum(away, np.linalg.norm(Z - Z[best], axis=1))
        away[best] = -1.0
    return picks


def distances_to(labelled, Z) -> np.ndarray:
    """Distance of every row to the nearest labelled one; to the middle where there is none."""
    points = labelled if len(labelled) else np.median(Z, axis=0)[None]
    return np.asarray(KDTree(points).query(Z)[0])


def by_chance(view, rows, n, rng) -> list[Pick]:
    """Rows drawn at random."""
    return [Pick(int(row), "drawn at random") for row in rng.choice(rows, n, replace=False)]


def _likely(view, row) -> tuple:
    """The most probable classes of a row with their probabilities, the first first."""
    if view.P is None or not view.names:
        return ()
    order = np.argsort(-view.P[row], kind="stable")[:MOST_LIKELY]
    found = [(view.names[c], float(view.P[row, c])) for c in order]
    return tuple(pair for pair in found if pair[1] >= LEAST_LIKELY)


def _standing(view, row, rows_like_it):
    """Why a row represents others."""
    several = rows_like_it >= 1.5
    text = f"stands for about {rows_like_it:.0f} rows" if several else "stands for itself alone"
    text += ", with no labelled row like it" if several else ""
    return text if view.P is None else f"{text}; {_between(view, row)}"


def _between(view, row):
    found = _likely(view, row)
    if len(found) < 2:
        return f"likely {found[0][0]} ({found[0][1]:.2f})" if found else "of no likely class"
    (first, p), (second, q) = found[:2]
    return f"between {first} ({p:.2f}) and {second} ({q:.2f})"


def _far(distance, usual):
    return (
        f"{distance / usual:.1f} times as far from a labelled row as is usual"
        if usual
        else ("apart from all labelled rows")
    )


RULES: dict[str, Callable[..., list[Pick]]] = {
    "representative": by_reach,
    "margin": by_margin,
    "entropy": by_entropy,
    "density": by_density,
    "coverage": by_coverage,
    "random": by_chance,
}
OF_CLASSES = ("margin", "entropy", "density")
