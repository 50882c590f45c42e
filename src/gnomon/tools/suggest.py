"""Which rows to label next, and why.

A rule sees the rows as `View` has them: places on the map, probabilities of the classes, which
are labelled. It returns rows in the order in which they should be labelled, each with its reason.
Rows that a batch has taken already count as labelled for the next, so that a batch is diverse.
"""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
from scipy.spatial import KDTree
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators import check_integer, check_option, labelled_rows, n_rows

WITHOUT_CLASSES = ("auto", "coverage", "random")
# Rows that are looked at where there are more, drawn at random: the best of so many is as good.
MOST_CANDIDATES = 4000
# Neighbours that say how dense the map is about a row.
NEIGHBOURS = 10
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
    """Rows as a rule sees them: places Z (n, q), probabilities P (n, C) or None, labelled rows."""

    Z: np.ndarray
    P: np.ndarray | None
    labelled: np.ndarray
    names: tuple = ()


class Pick(NamedTuple):
    """A row that a rule takes, and why."""

    row: int
    reason: str


def suggest(model, X, y=None, *, n=10, rule="auto", random_state=0):
    """Rows to label next, chosen by a stated rule, with the reason of each.

    Parameters
    ----------
    model : fitted estimator
        Anything with ``transform``, as `SPPCA`; all rules but "coverage" and "random" need
        ``predict_proba`` too. A pipeline will do.
    X : {array-like, sparse matrix} of shape (n_samples, n_features)
        Rows to choose from.
    y : array-like of shape (n_samples,), default=None
        Labels so far; -1 or None marks rows without. Labelled rows are never suggested, and
        rows near them on the map come later. Without y all rows are unlabelled.
    n : int, default=10
        How many rows to suggest.
    rule : {"auto", "coverage", "margin", "entropy", "density", "random"}, default="auto"
        "coverage" takes the row farthest from all labelled ones on the map; "margin" the one
        whose two most probable classes are closest, "entropy" the one with the most even
        probabilities; "density" weighs the margin by how many rows are about; "random" draws.
        "auto" is coverage until every class has been seen twice, then density.
    random_state : int, RandomState instance, Generator or None, default=0
        Draws of "random", and of the rows that are looked at where there are very many.

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
    >>> len(suggest(model, X, y, n=3))
    3
    """
    check_is_fitted(model)
    n, rule = check_integer("n", n, low=1), check_option("rule", rule, tuple(RULES))
    view = look(model, X, y)
    if view.P is None and rule not in WITHOUT_CLASSES:
        raise ValueError(
            f"rule == {rule!r} needs predict_proba, which {type(model).__name__} does not have "
            f"here; rules without are {', '.join(WITHOUT_CLASSES)}"
        )
    return choose(view, n=n, rule=rule, rng=np.random.default_rng(random_state))


def look(model, X, y=None) -> View:
    """The rows on the map of a fitted model, with its probabilities where it has some."""
    labelled = np.zeros(n_rows(X), dtype=bool) if y is None else labelled_rows(y, "classes")
    P = np.asarray(model.predict_proba(X)) if hasattr(model, "predict_proba") else None
    names = tuple(np.asarray(getattr(model, "classes_", ())).tolist())
    return View(np.asarray(model.transform(X), dtype=float), P, labelled, names)


def choose(view: View, *, n, rule, rng) -> list[Suggestion]:
    """At most n unlabelled rows by a rule, with their reasons and likely classes."""
    rows = np.flatnonzero(~view.labelled)
    if len(rows) > MOST_CANDIDATES:
        rows = np.sort(rng.choice(rows, MOST_CANDIDATES, replace=False))
    picks = RULES[rule](view, rows, min(n, len(rows)), rng)
    return [Suggestion(pick.row, pick.reason, likely(view, pick.row)) for pick in picks]


def likely(view: View, row) -> tuple:
    """The most probable classes of a row with their probabilities, the first first."""
    if view.P is None or not view.names:
        return ()
    order = np.argsort(-view.P[row], kind="stable")[:MOST_LIKELY]
    return tuple(
        (view.names[c], float(view.P[row, c])) for c in order if view.P[row, c] >= LEAST_LIKELY
    )


def by_coverage(view, rows, n, rng) -> list[Pick]:
    """Rows farthest from all labelled ones on the map, one after the other (k-centre)."""
    Z, picks = view.Z[rows], []
    away = distances_to(view.Z[view.labelled], Z)
    usual = np.median(away) if view.labelled.any() else np.nan
    for _ in range(n):
        best = int(np.argmax(away))
        picks.append(Pick(int(rows[best]), _far(away[best], usual)))
        own = np.linalg.norm(Z - Z[best], axis=1)
        away = np.minimum(away, own)
        away[best] = -1.0
    return picks


def _far(distance, usual):
    if not np.isfinite(usual) or not usual > 0:
        return "first of a part of the map where nothing is labelled"
    return f"{distance / usual:.1f} times as far from any labelled row as half of the rows are"


def distances_to(labelled, Z) -> np.ndarray:
    """Distance of every row to the nearest labelled one; without any, nearness to the middle."""
    if len(labelled):
        return KDTree(labelled).query(Z)[0]
    return -np.linalg.norm(Z - np.median(Z, axis=0), axis=1)


def by_margin(view, rows, n, rng) -> list[Pick]:
    """Rows whose two most probable classes are closest."""
    return _top(view, rows, n, -margins(view.P[rows]))


def by_entropy(view, rows, n, rng) -> list[Pick]:
    """Rows whose probabilities are most even."""
    return _top(view, rows, n, entropies(view.P[rows]))


def by_density(view, rows, n, rng) -> list[Pick]:
    """Rows between two classes where many rows are about."""
    doubt = 1 - margins(view.P[rows])
    return _top(view, rows, n, doubt * density(view.Z[rows]))


def by_chance(view, rows, n, rng) -> list[Pick]:
    """Rows drawn at random."""
    return [Pick(int(row), "drawn at random") for row in rng.choice(rows, n, replace=False)]


def by_default(view, rows, n, rng) -> list[Pick]:
    """Coverage while the map is not covered, then doubt where rows are dense."""
    few = view.P is None or view.P.shape[1] < 2
    if few or view.labelled.sum() < 2 * view.P.shape[1]:
        return by_coverage(view, rows, n, rng)
    return by_density(view, rows, n, rng)


def margins(P) -> np.ndarray:
    """Difference between the two largest probabilities of every row."""
    if P.shape[1] < 2:
        return np.ones(len(P))
    top = np.partition(P, -2, axis=1)[:, -2:]
    return top[:, 1] - top[:, 0]


def entropies(P) -> np.ndarray:
    """Entropy of the probabilities of every row."""
    return -np.sum(P * np.log(np.maximum(P, np.finfo(float).tiny)), axis=1)


def density(Z) -> np.ndarray:
    """How close the nearest rows of every row are, between 0 and 1."""
    k = min(NEIGHBOURS + 1, len(Z))
    away = KDTree(Z).query(Z, k)[0].reshape(len(Z), -1).mean(axis=1)
    return 1 / (1 + away / max(np.median(away), np.finfo(float).tiny))


def _top(view, rows, n, scores) -> list[Pick]:
    order = np.argsort(-scores, kind="stable")[:n]
    return [Pick(int(row), _between(view, row)) for row in rows[order]]


def _between(view, row):
    found = likely(view, row)
    if len(found) < 2:
        return "of little doubt, as all rows left are"
    (first, p), (second, q) = found[:2]
    return f"between {first} ({p:.2f}) and {second} ({q:.2f})"


RULES: dict[str, Callable[..., list[Pick]]] = {
    "auto": by_default,
    "coverage": by_coverage,
    "margin": by_margin,
    "entropy": by_entropy,
    "density": by_density,
    "random": by_chance,
}
