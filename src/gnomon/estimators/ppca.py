"""Probabilistic PCA."""

import warnings
from numbers import Integral, Real
from typing import Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.metaestimators import available_if

from gnomon.estimators._base import LinearGaussianModel
from gnomon.estimators._door import (
    check_integer,
    check_option,
    check_prior,
    check_real,
    check_size,
    read_data,
    read_weights,
    repeatable,
)
from gnomon.estimators._fit import IterativeFit, warn_without_evidence
from gnomon.linalg.data import weighted
from gnomon.linalg.moments import Summed, joined, moments_of
from gnomon.models.gaussian.fit import Problem, Settings, fit
from gnomon.typing import CallbackLike, OutputsLike, RowsLike, SeedLike

SOLVERS = ("auto", "moments", "dual", "subspace", "em")


def _keeps_moments(model):
    """Whether moments of the rows are all that the fit needs."""
    if model.n_components == "auto" or model.solver not in ("auto", "moments"):
        raise AttributeError(
            f"n_components == {model.n_components!r} and solver == {model.solver!r}; partial_fit "
            "keeps moments, not rows: accepted are a number or a share of components, and the "
            "solvers 'auto' and 'moments'"
        )
    return True


class PPCA(IterativeFit, LinearGaussianModel):
    """Probabilistic principal component analysis.

    Rows are x = mean + W z + noise with latent z ~ N(0, I) and noise of one variance, fitted
    by maximum likelihood: in closed form where X is complete, by the exact likelihood of the
    observed entries where NaN marks missing ones.

    Parameters
    ----------
    n_components : int, float or "auto", default=2
        Number of latent dimensions. A float between 0 and 1 takes as many as explain that
        share of the variance. "auto" takes the least number whose log likelihood of held-out
        rows (five folds) is within a standard error of the greatest, kept in `criterion_`.
    prior : {None, "ard"}, default=None
        "ard" is Bayesian PCA [2]_: every component has a prior of its own on its loadings, and
        those without evidence are left out. ``n_components`` is then the most that there may
        be, with "auto" as many as can have evidence.
    solver : {"auto", "moments", "dual", "subspace", "em"}, default="auto"
        How the maximum is found, where X is complete: from X'X in one pass, from X X', by
        products with X alone, or by EM as in [1]_. All reach the same maximum; "auto" takes
        the cheapest for the shape of X.
    max_iter : int, default=500
        Most iterations of EM (missing values, or ``solver="em"``) or rounds of "subspace".
    tol : float, default=1e-7
        An iteration ends when the log likelihood changes by less than this per entry of X.
    callback : callable, default=None
        ``callback(n_iter, state, objective)`` is called after every iteration of EM; it stops
        the fit by returning True.
    random_state : int, RandomState instance, Generator or None, default=None
        Start of "subspace" and "em", and the folds of ``n_components="auto"``. None stands
        for 0, so that two fits agree.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The loadings W', rows orthogonal, in order of decreasing length.
    mean_ : ndarray of shape (n_features,)
    noise_variance_ : float
    explained_variance_ : ndarray of shape (n_components,)
        Variance of the data along each component, noise included.
    explained_variance_ratio_ : ndarray of shape (n_components,)
        Their shares of the total variance.
    n_components_ : int
        Number of components of the fit.
    criterion_ : dict of str to ndarray
        For ``n_components="auto"``: "n_components" tried, "mean" and "std" over the folds of
        the log likelihood per held-out row.
    prior_variances_ : ndarray of shape (n_components,)
        With ``prior="ard"``: variance of the prior of each component's loadings.
    log_likelihood_ : float
        Log likelihood of the data, a sum over rows. Not with ``prior="ard"``.
    objective_ : list of float
        The log likelihood at every iteration; with ``prior="ard"`` the lower bound of the
        logarithm of the evidence.
    n_iter_ : int
        Number of iterations; 1 for a closed form.
    converged_ : bool
        Whether the iteration settled.
    moments_ : Moments
        After `partial_fit`: number, weight, mean and scatter of all rows so far.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has column names.

    See Also
    --------
    sklearn.decomposition.PCA : The same subspace, without missing values or weights.

    Notes
    -----
    Variances are maximum-likelihood estimates with divisor n, where scikit-learn's PCA has
    n - 1.

    References
    ----------
    .. [1] M. E. Tipping and C. M. Bishop, "Probabilistic principal component analysis",
       Journal of the Royal Statistical Society B 61 (1999), 611-622.
    .. [2] C. M. Bishop, "Variational principal components", International Conference on
       Artificial Neural Networks (1999), 509-514.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import PPCA
    >>> X = np.array([[1.0, 2.0, 3.1], [2.0, np.nan, 5.9], [3.0, 6.1, 9.0], [4.0, 8.0, np.nan]])
    >>> model = PPCA(n_components=1).fit(X)
    >>> model.transform(X).shape
    (4, 1)
    >>> filled, std = model.impute(X, return_std=True)
    >>> bool(abs(filled[1, 1] - 4) < 0.2)
    True
    """

    def __init__(
        self,
        n_components: int | float | str = 2,
        *,
        prior: str | None = None,
        solver: str = "auto",
        max_iter: int = 500,
        tol: float = 1e-7,
        callback: CallbackLike = None,
        random_state: SeedLike = None,
    ) -> None:
        self.n_components = n_components
        self.prior = prior
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.random_state = random_state

    def fit(
        self, X: RowsLike, y: OutputsLike = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows. NaN marks missing values in a dense X.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a weight of two is a row that occurs twice.

        Returns
        -------
        self : PPCA
        """
        settings = self._settings()
        X = read_data(self, X, fitting=True, min_samples=2, look=False)
        if isinstance(self.n_components, Integral):
            check_size(self.n_components, X.shape)
        problem = Problem(X, read_weights(sample_weight, X.shape[0]))
        return self._keep(X.dtype, fit(problem, settings, self._loop(problem)))

    @available_if(_keeps_moments)
    def partial_fit(
        self, X: RowsLike, y: OutputsLike = None, sample_weight: ArrayLike | None = None
    ) -> Self:
        """Fit the model to these rows and all that `partial_fit` was given before, exactly.

        Rows are not kept, only their number, mean and scatter: after the last part the model is
        that of `fit` with all rows at once, whatever the parts. After `fit` it begins anew.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            More rows, without missing values. With those before at least as many as components.
        y : None
            Ignored.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a weight of two is a row that occurs twice.

        Returns
        -------
        self : PPCA

        Examples
        --------
        >>> import numpy as np
        >>> from gnomon import PPCA
        >>> X = np.random.default_rng(0).normal(size=(100, 5))
        >>> model = PPCA(2)
        >>> for part in np.split(X, 10):
        ...     model = model.partial_fit(part)
        >>> bool(np.allclose(model.get_covariance(), PPCA(2).fit(X).get_covariance()))
        True
        """
        settings, before = self._settings(), getattr(self, "moments_", None)
        X = read_data(self, X, fitting=before is None, allow_nan=False)
        moments = moments_of(weighted(X, read_weights(sample_weight, X.shape[0])))
        if before is not None:
            moments = joined(before, moments)
        if isinstance(self.n_components, Integral):
            check_size(self.n_components, (moments.n_rows, X.shape[1]))
        problem = Problem(Summed(moments))
        found = fit(problem, settings._replace(solver="moments"), self._loop(problem))
        self.moments_ = moments
        return self._keep(X.dtype, found)

    @property
    def _fits_gaps_in_blocks(self):
        return self.prior is None

    def _settings(self):
        """Checked parameters, as the model takes them."""
        return Settings(
            _check_components(self.n_components),
            check_option("solver", self.solver, SOLVERS),
            check_integer("max_iter", self.max_iter, low=1),
            check_real("tol", self.tol, low=0),
            repeatable(self.random_state),
            check_prior(self.prior, self.n_components, self.solver),
        )

    def _keep(self, dtype, found):
        W, sigma2 = found.view
        self.n_components_ = W.shape[1]
        self.components_ = np.ascontiguousarray(W.T.astype(dtype))
        self.mean_ = np.asarray(found.mean, dtype=dtype)
        self.noise_variance_ = float(sigma2)
        self.explained_variance_ = np.sum(W**2, axis=0) + sigma2
        self.explained_variance_ratio_ = self.explained_variance_ / found.total
        for name in ("criterion_", "log_likelihood_", "prior_variances_"):
            self.__dict__.pop(name, None)
        if found.evidence is None:
            self.log_likelihood_ = found.run.objective[-1]
        else:
            self.prior_variances_ = found.evidence.variances
            warn_without_evidence(self.prior_variances_)
        if found.curve is not None:
            names = ("n_components", "mean", "std")
            self.criterion_ = {name: getattr(found.curve, name) for name in names}
        if found.at_floor:
            self._warn_at_floor()
        self._keep_run(found.run, max_iter=self.max_iter)
        return self

    def _warn_at_floor(self):
        warnings.warn(
            f"n_components == {self.n_components_} explains all variance of X: the noise variance "
            "is held at its floor, and the log likelihood has no maximum",
            ConvergenceWarning,
            stacklevel=4,
        )


def _check_components(value):
    """A number of components, a share of the variance, or "auto"."""
    if isinstance(value, str):
        return check_option("n_components", value, ("auto",))
    if not isinstance(value, Real) or isinstance(value, Integral):
        return check_integer("n_components", value, low=1)
    if not 0 < value < 1:  # type: ignore[operator]
        raise ValueError(
            f"n_components == {value!r}; accepted are integers >= 1, "
            "shares of variance between 0 and 1, and 'auto'"
        )
    return float(value)
