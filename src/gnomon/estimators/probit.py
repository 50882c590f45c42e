"""The Bayesian multinomial probit classifier."""

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin

from gnomon.estimators._bsdr import labelled_data, read_prior
from gnomon.estimators._door import (
    FillsGaps,
    by_rows,
    check_integer,
    check_option,
    check_real,
    read_data,
)
from gnomon.estimators._fit import IterativeFit
from gnomon.estimators._predict import PredictsLabels
from gnomon.estimators._targets import read_classes, require_classes, require_targets
from gnomon.linalg.data import as_data, has_gaps
from gnomon.models.bsdr.inputs import gap_variances, latent_variances
from gnomon.models.bsdr.multinomial import Problem, Settings, fit
from gnomon.models.bsdr.outputs import ClassOutputs
from gnomon.models.bsdr.predict import beyond, integrated_scores
from gnomon.models.bsdr.probit import class_probabilities
from gnomon.models.gaussian import filling
from gnomon.typing import CallbackLike, OutputsLike, RowsLike


class MultinomialProbit(FillsGaps, PredictsLabels, ClassifierMixin, IterativeFit, BaseEstimator):
    """Bayesian multinomial probit classifier, by mean-field inference.

    The class is the largest of normal scores that are linear in x; weights have normal priors
    with gamma precisions. It is what `BSDR` becomes without a projection (MNP in [1]_).

    Parameters
    ----------
    prior : {"auto", "entry", "column"}, default="auto"
        Whether each weight has a precision of its own or those of a class share one. "column"
        needs one eigendecomposition and, of a sparse X, products only; "auto" takes it for more
        than 1000 features and for a sparse X with more features than rows.
    weight_prior : pair of float, default=(1, 1)
        Shape and scale of the gamma priors of the precisions of weights and biases.
    standardize : bool or "auto", default="auto"
        Whether features are divided by their standard deviations. They are always centred. "auto"
        is True but for principal components, columns of falling variance that are uncorrelated,
        which are divided by one number.
    max_iter : int, default=100
        Most accelerated steps, each of three sweeps over the factors.
    tol : float, default=1e-4
        The fit ends when a step raises the bound by less than this per row.
    callback : callable, default=None
        ``callback(n_iter, state, objective)`` is called after every step; it stops the fit by
        returning True.

    Attributes
    ----------
    coef_ : ndarray of shape (n_classes, n_features)
        Posterior mean of the weights, in units of X.
    coef_sd_ : ndarray of shape (n_classes, n_features)
        Their posterior standard deviations.
    intercept_ : ndarray of shape (n_classes,)
        Scores at x = 0.
    mean_ : ndarray of shape (n_features,)
    classes_ : ndarray of shape (n_classes,)
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
    BSDR : With a projection to a few latent variables.

    References
    ----------
    .. [1] M. Gönen, "Bayesian supervised dimensionality reduction", IEEE Transactions on
       Cybernetics 43 (2013), 2179-2189.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gnomon import MultinomialProbit
    >>> X, y = load_iris(return_X_y=True)
    >>> bool(MultinomialProbit().fit(X, y).score(X, y) > 0.95)
    True
    """

    def __init__(
        self,
        *,
        prior: str = "auto",
        weight_prior: tuple[float, float] = (1.0, 1.0),
        standardize: bool | str = "auto",
        max_iter: int = 100,
        tol: float = 0.0001,
        callback: CallbackLike = None,
    ) -> None:
        self.prior = prior
        self.weight_prior = weight_prior
        self.standardize = standardize
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback

    def fit(self, X: RowsLike, y: OutputsLike) -> Self:
        """Fit the classifier.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            NaN marks missing values in a dense X.
        y : array-like of shape (n_samples,)
            Classes; rows with -1 or None are left out, with a warning. -1 and 1 alone are two
            classes.

        Returns
        -------
        self : MultinomialProbit
        """
        settings = self._settings()
        X = read_data(self, X, fitting=True, min_samples=2)
        self.filling_, holed = filling.learn(X), X
        X = self._filled(X)
        require_targets(y, "MultinomialProbit")
        classes = read_classes(y, X.shape[0])
        require_classes(classes, "MultinomialProbit")
        outputs = ClassOutputs(classes.labels[classes.labelled], len(classes.names))
        problem = Problem(labelled_data(X, classes.labelled, "MultinomialProbit"), outputs)
        found = fit(problem, settings, self._loop(problem))
        self._keep(found, X.dtype)
        self.classes_, self._seen_gaps = classes.names, 0.0
        if has_gaps(holed):
            some = self._some_labelled(holed, classes.labelled)
            self._seen_gaps = self._gap_covariances(some).mean(axis=0)
        self._keep_run(found.run, max_iter=self.max_iter)
        return self

    @by_rows
    def predict_proba(self, X: RowsLike) -> np.ndarray:
        """Probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes)
        """
        X = self._read(X)
        rows, c = as_data(self._filled(X)), len(self.classes_)
        M = rows.less_mean(self.mean_) @ self.coef_.T.astype(X.dtype) + self._bias
        M, fit = np.asarray(M, dtype=float), (self._inputs, self._precisions)
        # The inputs were read with unit noise, so this is 1 + x' Sigma_c x.
        variance = latent_variances(*fit, c, rows) + self._bias_variance
        P = class_probabilities(M, variance)
        if has_gaps(X):
            gone = np.isnan(X).any(axis=1)
            known, part = self._filling(), X[gone]
            wider = variance[gone] + gap_variances(*fit, c, known, part)
            unseen = beyond(self._gap_covariances(part), self._seen_gaps)
            P[gone] = integrated_scores(M[gone], wider, unseen)
        return P

    def _gap_covariances(self, X):
        """What missing values add to the covariances (n, c, c) of the scores."""
        found, pattern = filling.covariances(self._filling(), X, self.coef_.T)
        return found[pattern]

    def _settings(self) -> Settings:
        """The parameters, checked."""
        return Settings(
            prior=check_option("prior", self.prior, ("auto", "entry", "column")),
            weight_prior=read_prior("weight_prior", self.weight_prior),
            standardize=check_option("standardize", self.standardize, ("auto", True, False)),
            max_iter=check_integer("max_iter", self.max_iter, low=1),
            tol=check_real("tol", self.tol, low=0),
        )

    def _keep(self, found, dtype):
        self.coef_ = found.loadings.T.astype(dtype)
        self.coef_sd_ = found.loadings_sd.T.astype(dtype)
        self.mean_ = found.inputs.mean.astype(dtype)
        self.intercept_ = found.bias - self.coef_ @ self.mean_
        self._bias, self._bias_variance = found.bias, found.bias_variance
        self._inputs, self._precisions = found.inputs, found.precisions
