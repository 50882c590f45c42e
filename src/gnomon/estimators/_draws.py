"""Draws of the posterior by Gibbs sampling: made, judged, averaged, handed to ArviZ."""

import warnings
from functools import partial

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators._door import check_integer, check_option, generator
from gnomon.inference.sampling import Schedule, bulk_ess, draw_chains, split_rhat, tail_ess
from gnomon.models import bsdr_gibbs, bsdr_inputs

# Vehtari et al. (2021): above and below these, means over draws are not to be trusted.
MOST_RHAT = 1.01
LEAST_ESS = 400
# Fewer cannot be split in halves to be compared.
LEAST_DRAWS = 4
# What no rotation of the latent variables changes.
INVARIANT = ("log_joint", "bias_contrasts", "score_spread")


class PosteriorDraws:
    """Gibbs sampling started at a variational fit, for `BSDR` and `BSDRRegressor`."""

    def to_arviz(self):
        """The draws as ArviZ takes them.

        Returns
        -------
        data : arviz.InferenceData or xarray.DataTree
            The former with ArviZ 0.x, the latter with 1.x; the group "posterior" has the
            entries of `draws_`.
        """
        check_is_fitted(self)
        if self.inference != "gibbs":
            raise ValueError(f"inference == {self.inference!r}; to_arviz needs 'gibbs'")
        import arviz

        return as_arviz(self.draws_, arviz)

    def _check_sampling(self):
        check_option("inference", self.inference, ("variational", "gibbs"))
        for name, low in (("n_chains", 1), ("n_draws", LEAST_DRAWS), ("n_warmup", 0), ("thin", 1)):
            check_integer(name, getattr(self, name), low=low)

    def _sample(self, problem, factors):
        """Run the chains and replace means and spreads of the fit by those of the draws."""
        rng = generator(self.random_state)
        starts = [bsdr_gibbs.init(factors, problem, rng) for _ in range(self.n_chains)]
        kept = draw_chains(
            partial(bsdr_gibbs.kernel, problem=problem),
            starts,
            rng,
            Schedule(self.n_draws, self.n_warmup, self.thin),
            keep=partial(bsdr_gibbs.keep, problem=problem, reference=factors.projected),
            callback=self._watch_rounds(problem),
            least=LEAST_DRAWS,
        )
        draws = self._read_draws(kept)
        rhat = {name: split_rhat(draws[name]) for name in INVARIANT}
        ess = {name: np.minimum(bulk_ess(draws[name]), tail_ess(draws[name])) for name in INVARIANT}
        self.draws_, self.rhat_, self.ess_ = draws, rhat, ess
        self._average(problem)
        self._warn_if_unmixed()
        return kept

    def _watch_rounds(self, problem):
        """The user's callback, told of every round after the steps of the variational fit."""
        if self.callback is None or hasattr(self.callback, "resume"):
            return None

        def watch(n_iter, states):
            value = bsdr_gibbs.log_joint(states[0], problem)
            return self.callback(self.n_iter_ + n_iter, states, value)

        return watch

    def _read_draws(self, kept):
        """Arrays (chain, draw, ...), projections in the units of X."""
        P = kept.P
        flat = [bsdr_inputs.loadings(self._inputs, p).T for p in P.reshape(-1, *P.shape[2:])]
        return {
            "projection": np.stack(flat).reshape(*P.shape[:2], *flat[0].shape),
            "weights": kept.V,
            "bias": kept.b,
            "log_joint": kept.log_joint,
            "bias_contrasts": kept.bias_contrasts,
            "score_spread": kept.score_spread,
        }

    def _average(self, problem):
        dtype = getattr(self, "components_", self.weights_).dtype
        projection, V, b = (_pooled(self.draws_[k]) for k in ("projection", "weights", "bias"))
        if self.kernel is None:
            self.components_ = projection.mean(axis=0).astype(dtype)
            self.loadings_sd_ = projection.std(axis=0).astype(dtype)
        else:
            self.dual_coef_ = projection.mean(axis=0).T
        self.weights_, self.bias_ = V.mean(axis=0), b.mean(axis=0)
        B = np.concatenate([b[:, None], V], axis=1)
        B = B - B.mean(axis=0)
        self.weights_covariance_ = np.einsum("lac,lbc->cab", B, B) / len(B)

    def _drawn_projections(self, X):
        """The projections (n, q) of rows under every draw, one after another."""
        for P in _pooled(self.draws_["projection"]):
            yield np.asarray(self._project(X, P.T), dtype=float)

    def _drawn_covariance(self, X):
        """Covariance (n, q, q) of z over draws and latent noise."""
        mean = np.asarray(self._project(X), dtype=float)
        q = mean.shape[1]
        total = np.zeros((len(mean), q, q))
        for Z in self._drawn_projections(X):
            gap = Z - mean
            total += gap[:, :, None] * gap[:, None, :]
        n_draws = self.draws_["log_joint"].size
        return total / n_draws + float(self.latent_noise) ** 2 * np.eye(q)

    def _warn_if_unmixed(self):
        rhat = max(float(np.max(v)) for v in self.rhat_.values())
        ess = min(float(np.min(v)) for v in self.ess_.values())
        if rhat > MOST_RHAT or ess < LEAST_ESS:
            warnings.warn(
                f"the chains have not mixed: largest R-hat {rhat:.3f} (wanted at most "
                f"{MOST_RHAT}), least effective sample size {ess:.0f} (wanted at least "
                f"{LEAST_ESS}); raise n_warmup == {self.n_warmup} or n_draws == {self.n_draws}",
                ConvergenceWarning,
                stacklevel=4,
            )


def as_arviz(draws, arviz):
    """Draws (chain, draw, ...) as the posterior group of the given ArviZ module."""
    if int(arviz.__version__.split(".")[0]) >= 1:
        return arviz.from_dict({"posterior": dict(draws)})
    return arviz.from_dict(posterior=dict(draws))


def pooled_draws(draws, name):
    """Draws of all chains in one row."""
    return _pooled(draws[name])


def _pooled(x):
    return x.reshape(-1, *x.shape[2:])
