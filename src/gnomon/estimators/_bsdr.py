"""What `BSDR` and `BSDRRegressor` share: checked settings, the latent posterior, what is kept."""

import warnings
from collections.abc import Iterable
from itertools import repeat
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.validation import check_is_fitted

from gnomon._lazy import import_extra
from gnomon.estimators._base import LatentPosterior
from gnomon.estimators._door import (
    FillsGaps,
    by_rows,
    check_integer,
    check_option,
    check_real,
    generator,
)
from gnomon.estimators._fit import IterativeFit
from gnomon.linalg.data import as_data, has_gaps
from gnomon.models.bsdr.factors import Gamma
from gnomon.models.bsdr.fit import BsdrFit, Settings
from gnomon.models.bsdr.gibbs import LEAST_DRAWS, LEAST_ESS, MOST_RHAT, Sampling, merge_chains
from gnomon.models.bsdr.inputs import gap_variances, latent_variances
from gnomon.models.bsdr.predict import covariance_of_draws
from gnomon.models.gaussian import filling
from gnomon.typing import RowsLike

# Loadings below this share of the largest are those of features that a rowwise prior switched off.
SUPPORT_ABOVE = 0.03


class BayesianReduction(
    FillsGaps, ClassNamePrefixFeaturesOutMixin, IterativeFit, TransformerMixin, BaseEstimator
):
    """A projection with its classifier or regression; transform is E[z | x]."""

    @by_rows
    def transform(self, X: RowsLike) -> np.ndarray:
        """Posterior mean of the latent variables of every row, E[z | x].

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            NaN marks missing values, which are at their means given the rest of the row.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        X = self._read(X)
        return self._project(X).astype(X.dtype, copy=False)

    @by_rows
    def posterior(self, X: RowsLike) -> LatentPosterior:
        """Posterior of the latent variables of every row, mean and covariance of z given x.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            NaN marks missing values, which widen the posterior.

        Returns
        -------
        posterior : LatentPosterior
            Named tuple (mean, covariance) with arrays of shape (n_samples, n_components) and
            (n_samples, n_components, n_components). The covariance has the latent noise, the
            uncertainty of the projection and that of missing values.
        """
        X = self._read(X)
        Z = np.asarray(self._project(X), dtype=float)
        return LatentPosterior(Z, self._latent_covariances(X, Z))

    def get_support(self, indices: bool = False) -> np.ndarray:
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
        mask = self.feature_relevance_ > SUPPORT_ABOVE * self.feature_relevance_.max()
        return np.flatnonzero(mask) if indices else mask

    def to_arviz(self) -> Any:
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
        arviz = import_extra("arviz", "mcmc", "to_arviz")
        if int(arviz.__version__.split(".")[0]) >= 1:
            return arviz.from_dict({"posterior": dict(self.draws_)})
        return arviz.from_dict(posterior=dict(self.draws_))

    @property
    def _n_features_out(self):
        return self.n_components_

    def __sklearn_tags__(self):
        """Outputs are needed."""
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags

    def _settings(self, n_features) -> Settings:
        """The parameters, checked."""
        return Settings(
            n_components=self._n_components(n_features),
            prior=check_option("prior", self.prior, ("auto", "entry", "column", "row")),
            projection_prior=self._projection_prior(),
            weight_prior=read_prior("weight_prior", self.weight_prior),
            latent_noise=self._latent_noise(),
            standardize=check_option("standardize", self.standardize, ("auto", True, False)),
            n_init=None if self.n_init == "auto" else check_integer("n_init", self.n_init, low=1),
            max_iter=check_integer("max_iter", self.max_iter, low=1),
            tol=check_real("tol", self.tol, low=0),
            rng=generator(self.random_state),
            solver=check_option("solver", self.solver, ("accelerated", "paper")),
            sampling=self._sampling(),
        )

    def _n_components(self, n_features):
        if self.n_components == "auto":
            return None
        high_is = ", the number of features"
        return check_integer(
            "n_components", self.n_components, low=1, high=n_features, high_is=high_is
        )

    def _latent_noise(self):
        return check_real("latent_noise", self.latent_noise, low=0, open_low=True)

    def _projection_prior(self):
        if isinstance(self.projection_prior, str):
            check_option("projection_prior", self.projection_prior, ("auto",))
            return None
        return read_prior("projection_prior", self.projection_prior, "'auto' and ")

    def _sampling(self):
        """How to draw, None for a variational fit; a checkpoint does not watch the draws."""
        sampling = Sampling(
            n_chains=check_integer("n_chains", self.n_chains, low=1),
            n_draws=check_integer("n_draws", self.n_draws, low=LEAST_DRAWS),
            n_warmup=check_integer("n_warmup", self.n_warmup, low=0),
            watch=None if hasattr(self.callback, "resume") else self.callback,
        )
        drawn = check_option("inference", self.inference, ("variational", "gibbs")) == "gibbs"
        return sampling if drawn else None

    def _keep(self, found: BsdrFit, dtype):
        """Fitted attributes; that the fit came to its end is kept last, by `_keep_run`."""
        self.n_components_ = found.loadings.shape[1]
        self.components_ = found.loadings.T.astype(dtype)
        self.loadings_sd_ = found.loadings_sd.T.astype(dtype)
        self.mean_ = found.inputs.mean.astype(dtype)
        self.latent_noise_ = float(np.sqrt(found.inputs.noise))
        self.relevance_, self.kept_ = found.relevance, found.kept
        self.feature_relevance_ = found.feature_relevance
        self.weights_, self.bias_, self.weights_covariance_ = found.B[1:], found.B[0], found.C
        self._inputs, self._precisions = found.inputs, found.precisions
        if found.draws is not None:
            self.draws_, self.rhat_, self.ess_ = found.draws
        self._warn(found)

    def _warn(self, found: BsdrFit):
        if not found.kept.any():
            warnings.warn(
                f"{type(self).__name__} found the null solution: no component spreads the rows "
                "by more than the latent noise; give more labelled rows, other features, a number "
                "as n_components, a projection_prior that prunes less, as (0.1, 10), or "
                "inference='gibbs', whose posterior does not collapse with few labels",
                UserWarning,
                stacklevel=4,
            )
        if found.draws is not None and not found.draws.have_mixed:
            warnings.warn(
                f"the chains have not mixed: largest R-hat {found.draws.worst_rhat:.3f} (wanted "
                f"at most {MOST_RHAT}), least effective sample size {found.draws.least_ess:.0f} "
                f"(wanted at least {LEAST_ESS}); raise n_warmup == {self.n_warmup} or "
                f"n_draws == {self.n_draws}",
                ConvergenceWarning,
                stacklevel=4,
            )

    def _project(self, X, loadings=None):
        """Centred rows, gaps filled, times the fitted or the given loadings (q, d)."""
        loadings = self.components_ if loadings is None else loadings
        rows = as_data(self._filled(X)).less_mean(self.mean_)
        return rows @ loadings.T.astype(X.dtype)

    def _drawn_projections(self, X):
        """The projections (n, q) of rows under every draw, one after another, gaps drawn too."""
        drawn = merge_chains(self.draws_["projection"])
        rows: Iterable = repeat(X)
        if has_gaps(X):
            rows = filling.draws(self._filling(), X, len(drawn), np.random.default_rng(0))
        for loadings, part in zip(drawn, rows, strict=False):
            yield np.asarray(self._project(part, loadings), dtype=float)

    def _latent_covariances(self, X, Z):
        """Covariances (n, q, q) of z given x, whose mean is Z."""
        if self.inference == "gibbs":
            return covariance_of_draws(self._drawn_projections(X), Z, self._inputs.noise)
        fit, q = (self._inputs, self._precisions), Z.shape[1]
        variances = latent_variances(*fit, q, as_data(self._filled(X)))
        if not has_gaps(X):
            return variances[:, :, None] * np.eye(q)
        variances = variances + gap_variances(*fit, q, self._filling(), X)
        return variances[:, :, None] * np.eye(q) + self._gap_covariances(X)

    def _gap_covariances(self, X):
        """What missing values add to the covariances (n, q, q) of z by the mean projection."""
        found, pattern = filling.covariances(self._filling(), X, self.components_.T)
        return found[pattern]


def read_prior(name, value, also="") -> Gamma:
    """A gamma prior from a pair (shape, scale) of positive numbers."""
    if np.shape(value) != (2,):
        raise ValueError(f"{name} == {value!r}; accepted are {also}pairs (shape, scale)")
    shape, scale = (
        check_real(f"{name}[{i}]", v, low=0, open_low=True) for i, v in enumerate(value)
    )
    return Gamma(shape, scale)


def labelled_data(X, labelled, owner):
    """The rows of X that have an output, as `Data`; warns where there are others.

    A fit goes over them hundreds of times: of rows in blocks those are kept that fit in memory.
    """
    if labelled.all():
        return as_data(X).kept_in_memory()
    warnings.warn(
        f"y has no label for {np.sum(~labelled)} of {len(labelled)} rows; {owner} leaves them "
        "out, as they say nothing of the projection in this model",
        UserWarning,
        stacklevel=3,
    )
    return as_data(X).rows(labelled).kept_in_memory()
