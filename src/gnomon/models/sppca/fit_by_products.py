"""The maximum of the likelihood of SPPCA for large X, by products with a growing subspace.

Inside the basis of `gnomon.inference.subspace` the problem is SPPCA again, of few coordinates:
each round solves it by `em.maximise`, from where the last round ended. Floors and tolerance do
not depend on the basis.
"""

from functools import partial

import numpy as np

from gnomon.inference import subspace
from gnomon.linalg.data import Data
from gnomon.models.sppca import em
from gnomon.models.sppca.statistics import Noise, Statistics, noise_rule, outputs, shrunk, tolerance

# Steps inside a basis that will grow, where more would be lost on directions that are not yet
# right, and inside one that may be the last.
FEW, MANY = 3, 30
# The gap left is at most a few tenths of what a round promises to gain, mostly hundredths: so
# much larger than the tolerance may the promise be.
PROMISE = 4.0
# Blocks of directions kept before the basis is cut: on text it never is.
MOST_BLOCKS = 8


def maximise(X: Data, energy, problem, settings, loop) -> tuple[subspace.Solution, Noise]:
    """The maximum for centred X with the squared norm ``energy``, and its noise rule.

    States are `State`, in the coordinates of the basis. The objective on the way may be that of
    products in single precision; the one of the answer is exact.
    """
    rows = np.flatnonzero(problem.observed.any(axis=1))
    own = None if problem.weights is None else problem.weights[rows]
    # The outputs without coordinates of their rows, which the basis will give.
    labelled = outputs(np.zeros((len(rows), 0)), problem.Y[rows], problem.observed[rows], own)
    stats = Statistics(X.n_samples, X.n_features, energy, np.zeros(0), labelled)
    noise = noise_rule(stats, settings)
    q, tol = settings.n_components, settings.tol
    fast = X.as_float32() if tol > subspace.SINGLE_ABOVE else X
    found = subspace.maximise(
        fast,
        partial(_solve_small, stats=stats, q=q, noise=noise, tol=tolerance(stats, tol)),
        subspace.starting_block(fast, q + subspace.EXTRA, settings.rng),
        tol=PROMISE * tol * X.n_samples * X.n_features,
        max_rounds=settings.max_iter,
        special=rows if len(rows) else None,
        exact=X,
        loop=loop,
        most_blocks=MOST_BLOCKS,
    )
    return found, noise


def _solve_small(reduced, *, stats, q, noise, tol):
    """SPPCA of the rows in coordinates of the basis, as the solver wants the answer."""
    m = len(reduced.energies)
    T = np.zeros((0, m)) if reduced.special is None else reduced.special
    rows = stats.outputs._replace(T=T)
    stats = stats._replace(g=reduced.energies, outputs=shrunk(rows))
    start = None if reduced.last is None else _start(reduced, stats, q, noise)
    limit = MANY if reduced.final else FEW
    run = em.maximise(stats, q, noise, max_iter=limit, tol=tol, start=start)
    return _answer(run.state, noise, stats, rows)


def _start(reduced, stats, q, noise):
    """A step from the better of PPCA inside the basis and the last answer."""
    last = reduced.last
    if reduced.rotation is not None:
        last = last._replace(W=reduced.rotation.T @ last.W)
    step = partial(em.em_step, stats=stats, noise=noise)
    fresh, _ = step(em.init(stats, q, noise))
    return max(step(last), step(fresh), key=lambda reached: reached[1])[0]


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
