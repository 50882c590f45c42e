"""Bayesian supervised dimensionality reduction for numbers: Bayesian reduced-rank regression."""

from typing import Any, Self

import numpy as np
from sklearn.base import RegressorMixin

from gnomon.estimators._bsdr import BayesianReduction, labelled_data
from gnomon.estimators._door import (
    by_rows,
    read_data,
)
from gnomon.estimators._predict import LabelledScore
from gnomon.estimators._targets import read_targets, require_targets
from gnomon.linalg.data import has_gaps
from gnomon.models.bsdr.fit import Problem, fit
from gnomon.models.bsdr.gibbs import merge_chains
from gnomon.models.bsdr.outputs import NumberOutputs, mask_of
from gnomon.models.bsdr.predict import (
    noise_without_gaps,
    number_variances,
    number_variances_of_draws,
)
from gnomon.models.gaussian import filling
from gnomon.typing import CallbackLike, OutputsLike, RowsLike, SeedLike


class BSDRRegressor(LabelledScore, RegressorMixin, BayesianReduction):
    """Bayesian reduced-rank regression: a projection and linear outputs of it.

    Rows are projected to a few latent variables z, from which every output is predicted
    linearly with a noise of its own; all are learnt together, with a posterior [1]_. Outputs
    may be one or many, and some may be unknown (NaN).

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of latent variables. "auto" starts from the number of outputs and lets the
        columnwise prior switch off what is not needed; see `kept_`.
    prior : {"auto", "entry", "column", "row"}, default="auto"
        Which entries of the projection share a precision, as in `BSDR`.
    projection_prior : "auto" or pair of float, default="auto"
        Shape and scale of the gamma prior of these precisions, as in `BSDR`.
    weight_prior : pair of float, default=(1, 1)
        The same for the weights and biases of the outputs, which are standardised.
    latent_noise : float, default=1.0
        Standard deviation of z around the projection of x.
    standardize : bool or "auto", default="auto"
        Whether features are divided by their standard deviations. They are always centred. "auto"
        is True but for principal components, columns of falling variance that are uncorrelated,
        which are divided by one number.
    n_init : int or "auto", default="auto"
        Number of starts, the first by reduced-rank regression, the others random. "auto" is 5
        where n_components is below the number of outputs less one, and 1 otherwise.
    solver : {"accelerated", "paper"}, default="accelerated"
        How the bound is raised: by sweeps with a joint step for projection and z and a change
        of basis, three to an accelerated step; or by Algorithm 1 of [1]_ as it is printed, each
        factor in turn from one random start, for study. ``n_init`` is then not used, and a
        step of ``max_iter`` is one sweep; the paper takes 500 of them.
    inference : {"variational", "gibbs"}, default="variational"
    n_chains, n_draws, n_warmup : int, default=4, 1000, 500
    max_iter : int, default=100
    tol : float, default=1e-4
    callback : callable, default=None
    random_state : int, RandomState instance, Generator or None, default=None
        How the posterior is found, as in `BSDR`.

    Attributes
    ----------
    components_, loadings_sd_ : ndarray of shape (n_components, n_features)
    mean_, feature_relevance_ : ndarray of shape (n_features,)
    n_components_ : int
    latent_noise_ : float
    relevance_, kept_ : ndarray
        The projection and what of it matters, as in `BSDR`.
    weights_ : ndarray of shape (n_components, n_outputs)
        Weights of the standardised outputs on z.
    bias_ : ndarray of shape (n_outputs,)
    weights_covariance_ : ndarray of shape (n_outputs, 1 + n_components, 1 + n_components)
        Posterior covariance of bias and weights of each output.
    noise_variance_ : ndarray of shape (n_outputs,)
        Posterior mean of the noise variances, in units of y.
    target_mean_, target_scale_ : ndarray of shape (n_outputs,)
        Mean and standard deviation of the known outputs.
    draws_, rhat_, ess_ : dict of str to ndarray
        For ``inference="gibbs"``, as in `BSDR`; with "noise_variance", in units of y.
    filling_ : Filling or None
        PPCA of the rows in standard units, by which missing values are filled; None where the
        rows of the fit were sparse or in blocks.
    objective_ : list of float
        The lower bound on log p(y | X) at every step.
    n_iter_, n_features_in_, converged_ : int, int, bool
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has column names.

    See Also
    --------
    BSDR : The same for classes and labels.

    References
    ----------
    .. [1] M. Gönen, "Bayesian supervised dimensionality reduction", IEEE Transactions on
       Cybernetics 43 (2013), 2179-2189.

    Examples
    --------
    >>> from sklearn.datasets import load_linnerud
    >>> from gnomon import BSDRRegressor
    >>> X, y = load_linnerud(return_X_y=True)
    >>> model = BSDRRegressor(n_components=1, random_state=0).fit(X, y)
    >>> mean, std = model.predict(X[:2], return_std=True)
    >>> mean.shape, std.shape
    ((2, 3), (2, 3))
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        prior: str = "auto",
        projection_prior: str | tuple[float, float] = "auto",
        weight_prior: tuple[float, float] = (1.0, 1.0),
        latent_noise: float = 1.0,
        standardize: bool | str = "auto",
        n_init: int | str = "auto",
        solver: str = "accelerated",
        inference: str = "variational",
        n_chains: int = 4,
        n_draws: int = 1000,
        n_warmup: int = 500,
        max_iter: int = 100,
        tol: float = 0.0001,
        callback: CallbackLike = None,
        random_state: SeedLike = None,
    ) -> None:
        self.n_components = n_components
        self.prior = prior
        self.projection_prior = projection_prior
        self.weight_prior = weight_prior
        self.latent_noise = latent_noise
        self.standardize = standardize
        self.n_init = n_init
        self.solver = solver
        self.inference = inference
        self.n_chains = n_chains
        self.n_draws = n_draws
        self.n_warmup = n_warmup
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.random_state = random_state

    def fit(self, X: RowsLike, y: OutputsLike) -> Self:
        """Fit projection and outputs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            NaN marks missing values in a dense X.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers, NaN where unknown.

        Returns
        -------
        self : BSDRRegressor
        """
        X = read_data(self, X, fitting=True, min_samples=2)
        self.filling_, holed = filling.learn(X), X
        X = self._filled(X)
        settings = self._settings(X.shape[1])
        require_targets(y, "BSDRRegressor")
        targets = read_targets(y, X.shape[0], "numeric")
        known = targets.observed.any(axis=1)
        if not known.any():
            raise ValueError("y has no known value; BSDRRegressor needs rows with numbers")
        outputs = NumberOutputs(targets.Y[known], mask_of(targets.observed[known]))
        problem = Problem(labelled_data(X, known, "BSDRRegressor"), outputs)
        found = fit(problem, settings, self._loop(problem))
        self._keep(found, X.dtype)
        noise = found.noise_variance
        if has_gaps(holed):
            unseen = self._gap_covariances(self._some_labelled(holed, known)).mean(axis=0)
            noise = noise_without_gaps(noise, unseen, self.weights_)
        self._keep_units(targets.coding, noise)
        self._keep_run(found.run, max_iter=self.max_iter)
        return self

    @by_rows
    def predict(self, X: RowsLike, return_std: bool = False) -> Any:
        """Mean of the outputs, and their standard deviations if asked.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return standard deviations too: noise, latent noise and the uncertainty
            of projection, weights and missing values.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
        std : ndarray of the same shape
            Only if ``return_std``.
        """
        X = self._read(X)
        drawn = self.inference == "gibbs"
        means = self._means_of_draws(X) if drawn else self._means(X)
        y = self._shaped(self.target_mean_ + self.target_scale_ * means)
        if not return_std:
            return y
        variances = self._variances_of_draws(X, means) if drawn else self._variances(X)
        noise = self.noise_variance_ / self.target_scale_**2
        return y, self._shaped(self.target_scale_ * np.sqrt(variances + noise))

    def __sklearn_tags__(self):
        """Several outputs are welcome."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _means(self, X):
        """Standardised outputs (n, c) at the mean projection."""
        return np.asarray(self._project(X), dtype=float) @ self.weights_ + self.bias_

    def _variances(self, X):
        """Their variances, less the noise of the outputs."""
        Z = np.asarray(self._project(X), dtype=float)
        B, C = np.vstack([self.bias_, self.weights_]), self.weights_covariance_
        return number_variances(Z, self._latent_covariances(X, Z), B, C, 0.0)

    def _means_of_draws(self, X):
        """Standardised outputs (n, c), averages over the draws."""
        P, V = (merge_chains(self.draws_[name]) for name in ("projection", "weights"))
        coefficients = np.einsum("kqd,kqc->cd", P, V, optimize=True) / len(P)
        return np.asarray(self._project(X, coefficients), dtype=float) + self.bias_

    def _variances_of_draws(self, X, means):
        """Their variances, less the noise of the outputs."""
        V, b = (merge_chains(self.draws_[name]) for name in ("weights", "bias"))
        rows, noise = self._drawn_projections(X), self._inputs.noise
        return number_variances_of_draws(rows, V, b, means, noise)

    def _keep_units(self, coding, noise_variance):
        """Means and scales of the outputs, and noise variances in their units."""
        self.target_mean_, self.target_scale_ = coding.center, coding.scale
        self.noise_variance_ = coding.scale**2 * noise_variance
        if self.inference == "gibbs":
            self.draws_["noise_variance"] = coding.scale**2 * self.draws_["noise_variance"]
        self._one_column = coding.one_column

    def _shaped(self, y):
        return y[:, 0] if self._one_column else y
