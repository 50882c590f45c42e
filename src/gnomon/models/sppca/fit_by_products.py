"""The maximum of the likelihood of SPPCA for large X, by products with a growing subspace.

Inside the basis of `gnomon.inference.subspace` the problem is SPPCA again, of few coordinates:
each round solves it by `em.maximise`, from where the last round ended. Floors and tolerance do
not depend on the basis.
"""

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.inference import subspace
from gnomon.inference.loop import Run, Step
from gnomon.linalg.data import Data
from gnomon.models.sppca import em
from gnomon.models.sppca.statistics import (
    Noise,
    State,
    Statistics,
    noise_rule,
    outputs,
    shrunk,
    tolerance,
)

# Steps inside a basis that will grow, where more would be lost on directions that are not yet
# right (three take as many rounds on texts, 5, 100 and all labels a class), and inside one that
# may be the last.
FEW, MANY = 1, 30
# The gap left is at most a few tenths of what a round promises to gain, mostly hundredths: so
# much larger than the tolerance may the promise be.
PROMISE = 4.0
# Blocks of directions kept before the basis is cut: on text it never is.
MOST_BLOCKS = 8


class Small(NamedTuple):
    """SPPCA of the rows in coordinates of a basis: where to start, how to step, what to answer.

    ``maximise(start=state or None, max_iter=...)`` returns a run; ``answer(state)`` is what the
    solver wants to know; ``most`` is the number of steps inside a basis that may be the last.
    """

    first: State
    step: Step
    maximise: Callable[..., Run]
    answer: Callable[[State], subspace.SmallSolution]
    most: int = MANY


def maximise(X: Data, energy, problem, settings, loop) -> tuple[subspace.Solution, Noise]:
    """The maximum for centred X with the squared norm ``energy``, and its noise rule.

    States are `State`, in the coordinates of the basis. The objective on the way may be that of
    products in single precision; the one of the answer is exact.
    """
    rows = np.flatnonzero(problem.observed.T.any(axis=0))
    own = None if problem.weights is None else problem.weights[rows]
    # The outputs without coordinates of their rows, which the basis will give.
    labelled = outputs(np.zeros((len(rows), 0)), problem.Y[rows], problem.observed[rows], own)
    stats = Statistics(X.n_samples, X.n_features, energy, np.zeros(0), labelled)
    noise, tol = noise_rule(stats, settings), tolerance(stats, settings.tol)
    small = partial(_gaussian, stats=stats, q=settings.n_components, noise=noise, tol=tol)
    return grow(X, rows, small, settings, loop), noise


def grow(X: Data, rows, small: Callable[..., Small], settings, loop) -> subspace.Solution:
    """The maximum in a growing subspace, where ``small(reduced)`` is the model inside of it.

    ``rows`` are the numbers of the labelled rows.
    """
    q, tol = settings.n_components, settings.tol
    fast = X.as_float32() if tol > subspace.SINGLE_ABOVE else X
    return subspace.maximise(
        fast,
        partial(_solve_small, small=small),
        subspace.starting_block(fast, q + subspace.EXTRA, settings.rng),
        tol=PROMISE * tol * X.n_samples * X.n_features,
        max_rounds=settings.max_iter,
        special=rows if len(rows) else None,
        exact=X,
        loop=loop,
        most_blocks=MOST_BLOCKS,
    )


def _solve_small(reduced, small):
    """The model inside the basis, maximised from the better of its first and its last state."""
    model = small(reduced)
    start = None if reduced.last is None else _start(reduced, model)
    run = model.maximise(start=start, max_iter=model.most if reduced.final else FEW)
    return model.answer(run.state)


def _start(reduced, model):
    """A step from the better of a new start inside the basis and the last answer."""
    last = reduced.last
    if reduced.rotation is not None:
        last = last._replace(W=reduced.rotation.T @ last.W)
    fresh, _ = model.step(model.first)
    return max(model.step(last), model.step(fresh), key=lambda reached: reached[1])[0]


def _gaussian(reduced, *, stats, q, noise, tol) -> Small:
    """SPPCA of numbers."""
    m = len(reduced.energies)
    T = np.zeros((0, m)) if reduced.special is None else reduced.special
    rows = stats.outputs._replace(T=T)
    stats = stats._replace(g=reduced.energies, outputs=shrunk(rows))
    return Small(
        em.first(stats, q, noise),
        partial(em.em_step, stats=stats, noise=noise),
        partial(em.maximise, stats, q, noise, tol=tol),
        partial(_answer, noise=noise, stats=stats, rows=rows),
    )


def _answer(state, noise, stats, rows):
    expected, log_likelihood = em.e_step(state, stats)
    return subspace.SmallSolution(
        em.given_inputs(state).h,
        em.posteriors(state, rows).Z if len(rows.T) else None,
        expected.ZZ,
        state.sigma2,
        log_likelihood - em.penalty(state, noise),
        state,
    )
