"""The fit of SPPCA by likelihood: one maximum, by the route that suits the shape of X."""

import warnings
from typing import NamedTuple

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gnomon.estimators._door import check_option, check_real
from gnomon.estimators._fit import IterativeFit
from gnomon.estimators._likelihood import (
    at_floor,
    maximise,
    maximise_with_gaps,
    noise_rule,
    paper_em,
    tolerance,
)
from gnomon.estimators._likelihood_subspace import Found, maximise_by_products
from gnomon.estimators._targets import Targets
from gnomon.linalg import eigen
from gnomon.linalg.data import Weighted, as_data, center, check_columns, check_spread, has_gaps
from gnomon.models import sppca, sppca_fitted, sppca_statistics
from gnomon.models.gaussian.ppca import EXTRA


class Rows(NamedTuple):
    """What a fit is given, checked."""

    X: object
    targets: Targets
    weights: np.ndarray | None


class LikelihoodFit(IterativeFit):
    """Fits `supervision="likelihood"` of an estimator with the parameters of SPPCA."""

    def _fit_likelihood(self, rows, q, settings):
        if has_gaps(rows.X):
            return self._fit_likelihood_with_gaps(rows, q, settings)
        mean, centered = center(weighted(rows.X, rows.weights))
        solver = _route(centered, q, self.solver)
        fit = {"em": self._run_em, "subspace": self._run_products}.get(solver, self._run_moments)
        found = fit(centered, rows, q, settings, solver)
        _warn_at_floor(*at_floor(found.run.state, found.noise), q)
        state = sppca.canonical(found.run.state, found.basis)
        return self._keep_likelihood(rows, mean, state, found)

    def _run_moments(self, X, rows, q, settings, solver):
        dual = solver == "dual"
        route = sppca_statistics.from_dual if dual else sppca_statistics.from_moments
        stats, basis = route(X, rows.targets.Y, rows.targets.observed, rows.weights)
        check_spread(stats.energy)
        noise = noise_rule(stats, settings)
        tol = tolerance(stats, self.tol)
        run = maximise(stats, q, noise, max_iter=self.max_iter, tol=tol, loop=self._iterate)
        return Found(run, basis, noise, 2 if dual else 1, run.objective[-1])

    def _run_products(self, X, rows, q, settings, solver):
        options = {"max_iter": self.max_iter, "tol": self.tol}
        options["energy"] = check_spread(X.squared_norm)
        problem = X, rows.targets, rows.weights, q, settings, self._generator()
        return maximise_by_products(*problem, **options, loop=self._iterate)

    def _run_em(self, X, rows, q, settings, solver):
        if settings.noise != "learn" or settings.prior:
            raise ValueError(
                f"solver == 'em', noise == {self.noise!r} and prior == {self.prior!r}; the EM of "
                "the paper accepts noise='learn' and prior=0"
            )
        check_spread(X.squared_norm)
        run = paper_em(
            X,
            rows.targets,
            rows.weights,
            q,
            self._generator(),
            loop=self._iterate,
            max_iter=self.max_iter,
            tol=self.tol,
        )
        free = sppca.Noise(0.0, np.zeros(1))
        return Found(run, None, free, 2 * len(run.objective), run.objective[-1])

    def _fit_likelihood_with_gaps(self, rows, q, settings):
        check_columns(rows.X)
        run, noise = maximise_with_gaps(
            rows.X.astype(float),
            rows.targets,
            rows.weights,
            q,
            settings,
            max_iter=self.max_iter,
            tol=self.tol,
            loop=self._iterate,
        )
        mean, state = run.state
        _warn_at_floor(*at_floor(state, noise), q)
        found = Found(run, None, noise, 2 * len(run.objective), run.objective[-1])
        return self._keep_likelihood(rows, mean, sppca.canonical(state), found)

    def _keep_likelihood(self, rows, mean, state, found):
        fitted = sppca_fitted.from_likelihood(mean, state, energy_scale=self.scale == "energy")
        self._keep(rows, fitted, "likelihood", found.passes)
        self.log_likelihood_ = found.log_likelihood
        self._keep_run(found.run, max_iter=self.max_iter)
        return self


def weighted(X, weights):
    """X as data, weighted where there are weights."""
    return as_data(X) if weights is None else Weighted(as_data(X), weights)


def _route(X, q, solver):
    """The cheapest route; a basis that would soon fill the space is formed at once."""
    solver = eigen.route(X, q) if solver == "auto" else solver
    if solver == "subspace" and 4 * (q + EXTRA) >= min(X.shape):
        return "dual" if X.shape[0] < X.shape[1] else "moments"
    return solver


def read_noise(noise):
    """The noise rule: a word, a ratio as a float, or a pair of levels."""
    if isinstance(noise, str):
        return check_option("noise", noise, ("learn", "per_output"))
    if isinstance(noise, tuple | list) and len(noise) == 2:
        return tuple(check_real("noise", level, low=0, open_low=True) for level in noise)
    return check_real("noise", noise, low=0, open_low=True)


def _warn_at_floor(inputs, outputs, q):
    if inputs or outputs:
        which = " and ".join(name for name, low in (("x", inputs), ("y", outputs)) if low)
        warnings.warn(
            f"n_components == {q} explains all variance of {which}: that noise is held at its "
            "floor, and without it the likelihood has no maximum; use fewer components, more "
            "labelled rows, or fix the noise",
            ConvergenceWarning,
            stacklevel=4,
        )
