"""What the estimators of BSDR share: inputs, starts, sweeps, the latent posterior."""

import warnings
from functools import partial

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import pairwise_kernels
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators._base import LatentPosterior
from gnomon.estimators._door import (
    check_integer,
    check_option,
    check_real,
    generator,
    read_data,
)
from gnomon.estimators._draws import PosteriorDraws
from gnomon.estimators._fit import IterativeFit
from gnomon.estimators._priors import PRIORS, make_plan
from gnomon.estimators.kernel_features import WITH_GAMMA, KernelFeatures
from gnomon.inference.loop import Method, best_of, iterate, squarem
from gnomon.linalg.data import Centered, as_data
from gnomon.linalg.solve import fix_signs
from gnomon.models import bsdr, bsdr_factors, bsdr_inputs
from gnomon.models import bsdr_variational as variational
from gnomon.stats.gamma import Gamma

# Sparse priors prune at once what has not grown yet; steps at (1, 1) come first.
WARM_UP_STEPS = 10
# Before that the order of the bounds says little of where the runs will end.
TRIAL_STEPS = 20
N_STARTS = 5
# Components whose projections spread less than this share of the latent noise carry nothing.
KEPT_ABOVE = 0.1
SUPPORT_ABOVE = 0.03
# Attributes that only some fits have; a new fit forgets those of the last.
LINEAR = ("components_", "loadings_sd_", "feature_relevance_", "mean_")
OF_KERNELS = ("dual_coef_", "X_fit_", "kernel_means_", "gamma_")
OF_DRAWS = ("draws_", "rhat_", "ess_")


class BayesianReduction(
    ClassNamePrefixFeaturesOutMixin, PosteriorDraws, IterativeFit, TransformerMixin, BaseEstimator
):
    """Fits a projection with its classifier or regression; transform is E[z | x]."""

    def transform(self, X):
        """Posterior mean of the latent variables of every row, E[z | x].

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        X = self._read(X)
        return self._project(X).astype(X.dtype, copy=False)

    def posterior(self, X):
        """Posterior of the latent variables of every row, mean and covariance of z given x.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        posterior : LatentPosterior
            Named tuple (mean, covariance) with arrays of shape (n_samples, n_components) and
            (n_samples, n_components, n_components). The covariance has the latent noise and
            the uncertainty of the projection.
        """
        X = self._read(X)
        Z = np.asarray(self._project(X), dtype=float)
        if self.inference == "gibbs":
            return LatentPosterior(Z, self._drawn_covariance(X))
        return LatentPosterior(Z, self._latent_variances(X)[:, :, None] * np.eye(Z.shape[1]))

    def get_support(self, indices=False):
        """Mask or indices of the features that the projection uses.

        Parameters
        ----------
        indices : bool, default=False
            Whether to return indices in place of a mask.

        Returns
        -------
        support : ndarray
            Features whose `feature_relevance_` is more than 0.03 of the largest. With
            ``prior="row"`` the others have been switched off by their precisions.
        """
        check_is_fitted(self)
        if self.kernel is not None:
            raise ValueError(f"kernel == {self.kernel!r}; get_support needs kernel=None")
        mask = self.feature_relevance_ > SUPPORT_ABOVE * self.feature_relevance_.max()
        return np.flatnonzero(mask) if indices else mask

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_tags__(self):
        """Sparse X and both float types are welcome; y is needed."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = self.kernel != "precomputed"
        tags.input_tags.pairwise = self.kernel == "precomputed"
        tags.target_tags.required = True
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags

    def _fit(self, X, keep, outputs):
        """Everything from checked rows and outputs to fitted attributes."""
        data = as_data(X) if keep.all() else as_data(X).rows(keep)
        plan = make_plan(self, data, outputs)
        inputs, ridge, extra = self._read_inputs(X, keep, data, plan)
        problem = bsdr.pose(ridge, outputs, plan.priors)
        run = self._run(problem, plan, generator(self.random_state))
        factors, relevance, kept = self._canonical(run.state, inputs, plan)
        self._keep_factors(factors, inputs, plan, X.dtype)
        self.relevance_, self.kept_ = relevance, kept
        for name, value in extra.items():
            setattr(self, name, value)
        self._keep_run(run, max_iter=self.max_iter)
        self._warn_if_null(relevance)
        return problem, factors

    def _check_parameters(self):
        self._check_sampling()
        check_option("prior", self.prior, PRIORS)
        check_option("standardize", self.standardize, (True, False))
        KernelFeatures(gamma=self.gamma, degree=self.degree, coef0=self.coef0)._check_parameters()
        check_integer("max_iter", self.max_iter, low=1)
        check_real("tol", self.tol, low=0)
        check_real("latent_noise", self.latent_noise, low=0, open_low=True)
        if self.n_init != "auto":
            check_integer("n_init", self.n_init, low=1)
        if self.kernel is not None and self.prior not in ("auto", "column"):
            raise ValueError(
                f"prior == {self.prior!r} with kernel == {self.kernel!r}; a kernel accepts "
                "'auto' and 'column'"
            )

    def _read_inputs(self, X, keep, data, plan):
        if self.kernel is None:
            inputs, ridge = bsdr_inputs.read_inputs(data, plan.kind, plan.noise, self.standardize)
            if not inputs.factors.any():
                raise ValueError(
                    "X has no variation: all rows are equal; accepted are rows that differ"
                )
            return inputs, ridge, {"mean_": inputs.mean.astype(X.dtype)}
        rows = X[keep]
        K = np.asarray(rows[:, keep] if self.kernel == "precomputed" else self._kernel(rows, rows))
        means = K.mean(axis=0)
        inputs, ridge = bsdr_inputs.read_kernel(bsdr_inputs.center_kernel(K, means), plan.noise)
        extra = {"kernel_means_": means}
        if self.kernel == "precomputed":
            extra["_kept_rows"] = keep
        else:
            extra["X_fit_"] = rows
        if self.kernel in WITH_GAMMA:
            extra["gamma_"] = float(self.gamma or 1.0 / X.shape[1])
        return inputs, ridge, extra

    def _kernel(self, X, Y):
        parameters = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        if callable(self.kernel):
            return pairwise_kernels(X, Y, metric=self.kernel)
        return pairwise_kernels(X, Y, metric=self.kernel, filter_params=True, **parameters)

    def _run(self, problem, plan, rng):
        sparse_prior = plan.priors.projection.shape < 1
        easy = problem
        if sparse_prior:
            easy = problem._replace(priors=plan.priors._replace(projection=Gamma(1.0, 1.0)))
        state = self._start(easy, plan.q, rng)
        if sparse_prior:
            steps = min(WARM_UP_STEPS, self.max_iter)
            state = iterate(_accelerated(easy, state), max_iter=steps, tol=0).state
            state = variational.update_projection_precisions(state, problem)
        tol = self.tol * problem.n_samples
        return self._iterate(_accelerated(problem, state), max_iter=self.max_iter, tol=tol)

    def _start(self, problem, q, rng):
        """The state of the best of several short runs: discriminant analysis, then random."""
        crowded = q < problem.outputs.n_outputs - 1
        n_starts = (N_STARTS if crowded else 1) if self.n_init == "auto" else self.n_init
        starts = [bsdr.coded_start(problem, q, rng)]
        starts += [bsdr.random_start(problem, q, rng) for _ in range(n_starts - 1)]
        states = [variational.init(problem, P) for P in starts]
        if n_starts == 1:
            return states[0]
        runs = [
            iterate(_accelerated(problem, state), max_iter=TRIAL_STEPS, tol=0) for state in states
        ]
        return best_of(runs).state

    def _canonical(self, factors, inputs, plan):
        """Components by falling relevance, largest loading positive; pruned ones left out."""
        relevance = np.sqrt(np.mean(factors.projected**2, axis=0) / plan.noise)
        order = np.argsort(-relevance, kind="stable")
        relevance = relevance[order]
        kept = relevance > KEPT_ABOVE
        if self.n_components == "auto":
            order = order[: max(1, kept.sum())]
        P = bsdr_inputs.standard_loadings(inputs, factors.P[:, order])
        signs = np.where(np.sum(fix_signs(P) * P, axis=0) < 0, -1.0, 1.0)
        return bsdr_factors.reorder(factors, order, signs, plan.kind), relevance, kept

    def _keep_factors(self, factors, inputs, plan, dtype):
        for name in LINEAR + OF_KERNELS + OF_DRAWS:
            vars(self).pop(name, None)
        phi = factors.phi.mean
        P = bsdr_inputs.loadings(inputs, factors.P)
        self.n_components_ = P.shape[1]
        if self.kernel is None:
            variances = bsdr_inputs.loading_variances(inputs, phi, factors.spread.variance)
            self.components_ = P.T.astype(dtype)
            self.loadings_sd_ = np.sqrt(variances.T).astype(dtype)
            standard = bsdr_inputs.standard_loadings(inputs, factors.P)
            self.feature_relevance_ = np.linalg.norm(standard, axis=1)
        else:
            self.dual_coef_ = P
        self.weights_, self.bias_ = factors.B[1:], factors.B[0]
        self.weights_covariance_ = factors.C
        self._inputs, self._precisions = inputs, phi

    def _warn_if_null(self, relevance):
        if not np.any(relevance > KEPT_ABOVE):
            warnings.warn(
                f"{type(self).__name__} found the null solution: no component spreads the rows "
                "by more than the latent noise; give more labelled rows, other features, a number "
                "as n_components, or a projection_prior that prunes less, as (0.1, 10)",
                UserWarning,
                stacklevel=4,
            )

    def _read(self, X):
        check_is_fitted(self)
        return read_data(self, X, fitting=False, allow_nan=False)

    def _project(self, X, weights=None):
        """Centred rows, or kernel values, times the fitted or the given weights (d, q)."""
        if self.kernel is not None:
            weights = self.dual_coef_ if weights is None else weights
            return self._centered_kernel(X) @ weights
        weights = self.components_.T if weights is None else weights
        return Centered(as_data(X), self.mean_) @ weights.astype(X.dtype)

    def _latent_variances(self, X):
        if self.inference == "gibbs":
            return np.diagonal(self._drawn_covariance(X), axis1=1, axis2=2)
        rows = as_data(X) if self.kernel is None else self._centered_kernel(X)
        q = self.n_components_
        return bsdr_inputs.latent_variances(self._inputs, self._precisions, q, rows)

    def _centered_kernel(self, X):
        K = X[:, self._kept_rows] if self.kernel == "precomputed" else self._kernel(X, self.X_fit_)
        return bsdr_inputs.center_kernel(np.asarray(K, dtype=float), self.kernel_means_)


def _accelerated(problem, start):
    plain = Method(start, partial(variational.step, problem=problem))
    return squarem(plain, bsdr_factors.pack, partial(bsdr_factors.unpack, like=start))
