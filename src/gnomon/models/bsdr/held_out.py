"""Fits without some of the labels, which show how far probabilities of few labels are believed.

A projection that is free in many columns parts any few labels, also those that say nothing; and the
mean field, with few labels, may find no direction where a head on its coordinates still does.
"""

import numpy as np

from gnomon.inference.loop import iterate
from gnomon.models.bsdr import predict
from gnomon.models.bsdr.fit import BsdrFit, Problem, Settings, fit
from gnomon.models.bsdr.inputs import standard_rows
from gnomon.models.bsdr.outputs import ClassOutputs, SignOutputs
from gnomon.models.dcagm.few import Fold, are_few, dealt, sizes_of

# Steps of a fit without a fold: with three the head is as good as with ten, in a third of the time.
FOLD_STEPS = 3


def class_numbers(outputs) -> np.ndarray | None:
    """The class of every row; None for numbers and for several labels."""
    if isinstance(outputs, ClassOutputs):
        return outputs.labels
    one = isinstance(outputs, SignOutputs) and outputs.n_outputs == 1
    return (outputs.signs[:, 0] > 0).astype(int) if one else None


def of_classes(P) -> np.ndarray:
    """Probabilities of both classes where those of the second are given."""
    return np.column_stack([1.0 - P, P]) if P.shape[1] == 1 else P


def log_chances(P) -> np.ndarray:
    """Log probabilities of classes."""
    return np.log(np.maximum(P, np.finfo(float).tiny))


def held_out(problem: Problem, settings: Settings, found: BsdrFit) -> list[Fold]:
    """Fits without the labels of each fold; none where labels are many, or several of a row."""
    labels = class_numbers(problem.outputs)
    if labels is None or not are_few(labels, np.ones(len(labels)), problem.X.shape[1]):
        return []
    fold_of = dealt(labels, sizes_of(standard_rows(problem.X, found.inputs)))
    short = settings._replace(n_init=1, max_iter=min(settings.max_iter, FOLD_STEPS))
    numbers = np.unique(fold_of[fold_of >= 0])
    return [_without(problem, labels, fold_of == number, short) for number in numbers]


def _without(problem, labels, hidden, settings):
    """The fit that has not seen the hidden rows."""
    outputs = type(problem.outputs)(*(_part(value, ~hidden) for value in problem.outputs))
    found = fit(Problem(problem.X.rows(~hidden), outputs), settings, iterate)
    seen, unseen = (_placed(found, problem.X.rows(rows)) for rows in (~hidden, hidden))
    P = predict.plug_in(unseen, found.B, found.C, isinstance(outputs, ClassOutputs))
    weights = np.ones(len(labels))
    inside, outside = ((labels[rows], weights[rows]) for rows in (~hidden, hidden))
    return Fold(seen, *inside, unseen, *outside, log_chances(of_classes(P)))


def _part(value, rows):
    """What is known of some rows; a number stays."""
    return value[rows] if np.ndim(value) else value


def _placed(found, X):
    return np.asarray(X.less_mean(found.inputs.mean) @ found.loadings.astype(X.dtype), dtype=float)
