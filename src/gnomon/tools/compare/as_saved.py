"""How good a fitted model is, as it is, on a table that is not the one of its fit.

Nothing is fitted: the predictions are those that `predict` gives, the neighbours on the map are
the other labelled rows of this table.
"""

import numpy as np

from gnomon.estimators import as_floats, labelled_rows
from gnomon.tools.compare.held_out import (
    MOST_ROWS,
    THIS_TABLE,
    OutOfFold,
    Score,
    density,
    deviations,
    dimensions_of,
    on_the_map,
    summary,
)
from gnomon.tools.compare.scoring import SAVED, Problem, by_other_rows, constant_guess, row_sums


def as_saved(model, X, y, kind, *, names=(), graph=None) -> Score | None:
    """Scores of a model's predictions for a table, and of the neighbours on its map there.

    Without a target, the log likelihood per row. None where there is nothing to score, or no
    measure of it, as for numbers that are all the same.
    """
    if kind is None:
        values = model.score_samples(X) if hasattr(model, "score_samples") else None
        return None if values is None else density(values)._replace(on=THIS_TABLE)
    known = np.flatnonzero(labelled_rows(y, kind))
    rows = np.sort(np.random.default_rng(0).permutation(known)[:MOST_ROWS])
    if not len(rows) or (kind == "numeric" and not np.ptp(as_floats(y)[rows], axis=0).all()):
        return None
    links = {} if graph is None else graph.of(rows)
    return _scores(model, _problem(model, X[rows], y[rows], kind), names, links)


def _problem(model, X, y, kind) -> Problem:
    """Labelled rows; their classes are numbers among those of the model and of the table."""
    every = np.ones(len(y), dtype=bool)
    if kind != "classes":
        return Problem(X, as_floats(y), kind, every, np.array([]))
    classes = np.asarray(getattr(model, "classes_", ())).astype(str)
    classes, codes = np.unique([*classes, *y.astype(str)], return_inverse=True)
    return Problem(X, codes[-len(y) :], kind, every, classes)


def _scores(model, problem, names, links):
    """The model's prediction first, then the neighbours on its map; None where neither is."""
    guess = row_sums(problem, problem.y, constant_guess(problem.kind, problem.y, len(problem.y)))
    rows = _predicted(model, problem, links) if hasattr(model, "predict") else None
    figures = {} if rows is None else {SAVED: rows.predicted}
    figures |= _from_the_map(model, problem, links) if len(problem.y) > 1 else {}
    found = [
        summary(problem.kind, of, names, row_sums(problem, problem.y, told), guess=guess)
        for of, told in figures.items()
    ]
    if not found:
        return None
    first, *more = [score._replace(on=THIS_TABLE) for score in found]
    return first._replace(more=tuple(more), rows=rows)


def _predicted(model, problem, links) -> OutOfFold:
    """What the model says of the rows, in the coding of the problem."""
    predicted, proba = np.asarray(model.predict(problem.X, **links)), None
    if problem.kind == "classes":
        predicted = np.searchsorted(problem.names, predicted.astype(str))
    if problem.kind == "classes" and hasattr(model, "predict_proba"):
        proba = np.zeros((len(predicted), problem.n_classes))
        places = np.searchsorted(problem.names, np.asarray(model.classes_).astype(str))
        proba[:, places] = model.predict_proba(problem.X, **links)
    std = deviations(model, problem.X, problem.kind, links)
    return OutOfFold(problem.y, predicted, proba, std, problem.names, saved=True)


def _from_the_map(model, problem, links) -> dict:
    """What the nearest other rows say, in all dimensions of the map and in those drawn."""
    Z = np.asarray(model.transform(problem.X, **links), dtype=float)
    q = Z.shape[1]
    return {
        on_the_map(size, q): by_other_rows(problem.kind, Z[:, :size], problem.y)
        for size in dimensions_of(q)
    }
