"""The maximum of the likelihood of SPPCA for large X, by products with a growing subspace."""

from functools import partial
from typing import NamedTuple

import numpy as np

from gnomon.estimators._likelihood import Settings, maximise, noise_rule, tolerance
from gnomon.inference import subspace
from gnomon.inference.loop import Run
from gnomon.linalg.data import Data
from gnomon.linalg.solve import Cholesky
from gnomon.models import sppca
from gnomon.models.gaussian.ppca import EXTRA, SINGLE_ABOVE, starting_block
from gnomon.models.sppca_statistics import Statistics, no_outputs, outputs, shrunk

# Steps inside a basis that will grow, and inside one that may be the last.
FEW, MANY = 3, 30
# The gap left is at most a few tenths of what a round promises to gain, mostly hundredths.
PROMISE = 4.0
# Blocks of directions kept before the basis is cut: on text it never is.
MOST_BLOCKS = 8


class _Labels(NamedTuple):
    """The labelled rows: where they are, their outputs, mask and weights."""

    rows: np.ndarray
    Y: np.ndarray
    observed: np.ndarray
    weights: np.ndarray | None


class Found(NamedTuple):
    """The run, the basis of its coordinates (None: all), the noise rule, passes, likelihood.

    The trace of a run in single precision is not exact; ``log_likelihood`` is.
    """

    run: Run
    basis: np.ndarray | None
    noise: sppca.Noise
    passes: int
    log_likelihood: float


def maximise_by_products(X: Data, targets, weights, q, settings: Settings, rng, **options) -> Found:
    """The maximum for centred X; options are energy (its squared norm), max_iter, tol, loop."""
    labels = _labels(targets, weights)
    tol = options["tol"]
    fast = X.as_float32() if tol > SINGLE_ABOVE else X
    solve = partial(_solve_small, labels=labels, q=q, settings=settings, tol=tol)
    solve = partial(solve, whole=(X.n_samples, X.n_features, options["energy"]))
    found = subspace.maximise(
        fast,
        solve,
        starting_block(fast, q + EXTRA, rng),
        tol=PROMISE * tol * X.n_samples * X.n_features,
        max_rounds=options["max_iter"],
        special=labels.rows if len(labels.rows) else None,
        exact=X,
        loop=options["loop"],
        most_blocks=MOST_BLOCKS,
    )
    state = found.small.state
    noise = _noise(found.reduced, labels, (X.n_samples, X.n_features, options["energy"]), settings)
    run = Run(state, found.objective, found.converged)
    return Found(
        run,
        np.asarray(found.basis, dtype=float),
        noise,
        2 * len(found.objective) + 1,
        found.small.objective,
    )


def _labels(targets, weights):
    rows = np.flatnonzero(targets.observed.any(axis=1))
    own = None if weights is None else weights[rows]
    return _Labels(rows, targets.Y[rows], targets.observed[rows], own)


def _solve_small(reduced, *, labels, q, settings, tol, whole):
    rows = _outputs(reduced, labels)
    stats = Statistics(*whole, reduced.energies, shrunk(rows))
    noise = noise_rule(stats, settings)
    run = maximise(
        stats,
        q,
        noise,
        max_iter=MANY if reduced.final else FEW,
        tol=tolerance(stats, tol),
        start=_start(reduced, stats, q, noise),
    )
    return _answer(run.state, noise, stats, rows)


def _noise(reduced, labels, whole, settings):
    stats = Statistics(*whole, reduced.energies, shrunk(_outputs(reduced, labels)))
    return noise_rule(stats, settings)


def _outputs(reduced, labels):
    if reduced.special is None:
        return no_outputs(len(reduced.energies), labels.Y.shape[1])
    return outputs(reduced.special, labels.Y, labels.observed, labels.weights)


def _start(reduced, stats, q, noise):
    """A step from the better of PPCA inside the basis and the last answer."""
    if reduced.last is None:
        return None
    last = reduced.last
    if reduced.rotation is not None:
        last = last._replace(W=reduced.rotation.T @ last.W)
    step = partial(sppca.em_step, stats=stats, noise=noise)
    fresh, _ = step(sppca.init(stats, q, noise))
    return max(step(last), step(fresh), key=lambda reached: reached[1])[0]


def _answer(state, noise, stats, rows):
    expected, log_likelihood = sppca.e_step(state, stats)
    A = Cholesky(np.eye(state.W.shape[1]) + state.W.T @ state.W / state.sigma2)
    return subspace.SmallSolution(
        A.solve(state.W.T / state.sigma2).T,
        sppca.labelled_means(state, rows) if len(rows.T) else None,
        expected.ZZ,
        state.sigma2,
        log_likelihood - sppca.penalty(state, noise),
        state,
    )
