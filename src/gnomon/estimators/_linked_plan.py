"""How far `relation="learnt"` is to be fitted, by cross-validation over the nodes."""

import math
from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.estimators._linked import axes_of, spectrum_of
from gnomon.inference.loop import Method, momentum, settled
from gnomon.linalg import graph, lanczos
from gnomon.linalg.data import Centered, center
from gnomon.models import relational
from gnomon.models.relational_heldout import HeldOut, foresight, hold_out

# Parts of the nodes; as many of them are held out in turn as make up so many rows.
FOLDS, HELD_OUT = 5, 1000
# Most rounds that are tried, and rounds without gain after which no more are.
ROUNDS, PATIENCE = 30, 5
# Factors on the shared variances that are tried.
FACTORS = 0.5 ** np.arange(6)


class Plan(NamedTuple):
    """How many rounds (None: until they settle), and a factor on the shared variances then."""

    rounds: int | None
    factor: float


class Fold(NamedTuple):
    """The rows that are fitted, a start from them, and the rows that are held out."""

    data: relational.Linked
    start: relational.Relational
    held: HeldOut


def from_principal(data, axes, q, rng) -> np.ndarray:
    """The principal axes, the smoothest first."""
    return relational.smoothest_first(axes, q, data)


def from_smoothed(data, axes, q, rng) -> np.ndarray:
    """The axes of smoothed rows, then principal axes of the rest."""
    return relational.join_axes(axes_of(relational.smoothed(data), q, rng), axes, data)


STARTS = from_principal, from_smoothed


def linked(centered, A, rng) -> relational.Linked:
    """Centred rows with their links and the spectrum of these."""
    S = graph.normalized(A)
    return relational.link(centered, S, lanczos.density(S, graph.component_basis(A), rng))


def accelerated(data, start) -> Method:
    """Rounds on these rows from a start, with momentum."""
    return momentum(Method(start, partial(relational.step, data=data)), relational.leap)


def plan(X, A, axes, start, sizes, rng) -> Plan:
    """The rounds and the factor by which held-out rows are foreseen best.

    ``start`` is one of `STARTS`, ``sizes`` q and the least number of rounds. Each held-out row is
    foreseen from all other rows and the links.
    """
    q, least = sizes
    curve = _curve(_folds(X, A, axes, start, q, rng), least)
    more, factor = np.unravel_index(np.argmax(curve[least - 1 :]), curve[least - 1 :].shape)
    rounds = least + int(more)
    return Plan(rounds if rounds < ROUNDS else None, float(FACTORS[factor]))


def _folds(X, A, axes, start, q, rng):
    """Every row is held out once, or some are where there are many.

    Folds follow the order of the rows along the first axis, so that they do not depend on
    the order of the nodes.
    """
    n, k = X.shape[0], axes.shape[1]
    _, centered = center(X)
    ranks = np.argsort(np.argsort((centered @ axes[:, :1])[:, 0]))
    number = (rng.permutation(n) % FOLDS)[ranks]
    S = graph.normalized(A).astype(X.dtype)
    for j in range(min(FOLDS, math.ceil(FOLDS * HELD_OUT / n))):
        rows, old = np.flatnonzero(number == j), np.flatnonzero(number != j)
        mean, centered = center(X.rows(old))
        data = linked(centered, A[old][:, old], rng)
        U = start(data, spectrum_of(centered, k, rng).vectors, q, rng)
        held = hold_out(Centered(X, mean), S, rows)
        yield Fold(data, relational.init(U, q, data), held)


def _curve(folds, least) -> np.ndarray:
    """Foresight (rounds, factors) after every round, summed over the folds."""
    runs = [_foresights(fold) for fold in folds]
    curve: list[np.ndarray] = []
    while len(curve) < ROUNDS and not settled(
        [each.max() for each in curve[least - 1 :]], 0.0, PATIENCE
    ):
        curve.append(np.sum([next(run) for run in runs], axis=0))
    return np.array(curve)


def _foresights(fold):
    """Foresight (factors,) after every round on the rows of a fold."""
    method = accelerated(fold.data, fold.start)
    memory = method.start
    while True:
        memory, _ = method.step(memory)
        state, _ = relational.settle(method.finish(memory), fold.data)
        yield foresight(state, fold.held, FACTORS)
