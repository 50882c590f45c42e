"""Probabilistic PCA."""

import warnings
from functools import partial
from numbers import Integral, Real

import numpy as np
from sklearn.exceptions import ConvergenceWarning

from gnomon.estimators._base import LinearGaussianModel
from gnomon.estimators._door import (
    check_integer,
    check_option,
    check_real,
    read_data,
    read_weights,
    repeatable,
)
from gnomon.estimators._fit import IterativeFit
from gnomon.estimators._spectrum import leading_spectrum
from gnomon.inference.loop import Method, Run, anderson, iterate
from gnomon.linalg.data import Weighted, as_data, center, check_columns, check_spread, has_gaps
from gnomon.models import dimension, incomplete, ppca

SOLVERS = ("auto", "moments", "dual", "subspace", "em")


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
    log_likelihood_ : float
        Log likelihood of the data, a sum over rows.
    objective_ : list of float
        The log likelihood at every iteration.
    n_iter_ : int
        Number of iterations; 1 for a closed form.
    converged_ : bool
        Whether the iteration settled.
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
        n_components=2,
        *,
        solver="auto",
        max_iter=500,
        tol=1e-7,
        callback=None,
        random_state=None,
    ):
        self.n_components = n_components
        self.solver = solver
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.random_state = random_state

    def fit(self, X, y=None, sample_weight=None):
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
        self._check_parameters()
        X = read_data(self, X, fitting=True, min_samples=2)
        weights = read_weights(sample_weight, X.shape[0])
        # Numbers out of range are found by what they lead to, and named.
        with np.errstate(over="ignore", invalid="ignore"):
            if has_gaps(X):
                return self._fit_gaps(X, weights)
            return self._fit_complete(X, weights)

    def _check_parameters(self):
        check_option("solver", self.solver, SOLVERS)
        check_integer("max_iter", self.max_iter, low=1)
        check_real("tol", self.tol, low=0)
        if isinstance(self.n_components, str):
            check_option("n_components", self.n_components, ("auto",))
        elif not isinstance(self.n_components, Real) or isinstance(self.n_components, Integral):
            check_integer("n_components", self.n_components, low=1)
        elif not 0 < self.n_components < 1:
            raise ValueError(
                f"n_components == {self.n_components!r}; accepted are integers >= 1, "
                "shares of variance between 0 and 1, and 'auto'"
            )

    def _check_size(self, shape):
        limit = min(shape)
        high_is = f", the least of {shape[0]} rows and {shape[1]} features"
        return check_integer("n_components", self.n_components, low=1, high=limit, high_is=high_is)

    def _fit_complete(self, X, weights):
        rng = repeatable(self.random_state)
        data = as_data(X) if weights is None else Weighted(as_data(X), weights)
        mean, centered = center(data)
        spectrum_of = partial(self._spectrum, rng=rng)
        curve = None
        if not isinstance(self.n_components, Integral):
            check_spread(centered.squared_norm)
        if self.n_components == "auto":
            curve = dimension.held_out_curve(data, spectrum_of, rng)
        q = self._size(X.shape, curve, partial(dimension.explained, centered, spectrum_of))
        if self.solver == "em":
            total = check_spread(centered.squared_norm)
            run = self._run_em(centered, q, rng)
            (view,) = run.state
            view = view._replace(W=ppca.canonical(view.W))
        else:
            spectrum = spectrum_of(centered, q)
            total = check_spread(spectrum.trace)
            fit = ppca.closed_form(spectrum, q, centered.n_samples)
            view, run = fit.view, Run(fit, [fit.log_likelihood], converged=True)
            _warn_at_floor(fit.floored, q)
        return self._keep(X, (mean, view.W, view.sigma2, total / centered.n_samples), run, curve)

    def _fit_gaps(self, X, weights):
        check_columns(X)
        rng = repeatable(self.random_state)
        data = incomplete.group_rows(X.astype(float), np.zeros(X.shape[1], dtype=int), weights)
        check_spread(incomplete.squared_norm(data))
        curve = None
        if self.n_components == "auto":
            curve = dimension.search_curve(data, self._fit_rows, rng)
        q = self._size(X.shape, curve, partial(dimension.explained_with_gaps, data, self._fit_rows))
        run = self._run_gaps(data, q, self._iterate)
        W, mean, (sigma2,) = run.state
        W = ppca.canonical(W)
        total = np.sum(W**2) + len(mean) * sigma2
        return self._keep(X, (mean, W, sigma2, total), run, curve)

    def _size(self, shape, curve, explained):
        """The number of components: asked for, of the best criterion, or for the share asked."""
        if curve is not None:
            return curve.best
        if isinstance(self.n_components, Integral):
            high_is = f", the least of {shape[0]} rows and {shape[1]} features"
            return check_integer(
                "n_components", self.n_components, low=1, high=min(shape), high_is=high_is
            )
        return dimension.size_for_share(self.n_components, explained, min(shape))

    def _spectrum(self, X, k, rng):
        solver = "auto" if self.solver == "em" else self.solver
        return leading_spectrum(X, k, rng, solver=solver, tol=self.tol, max_rounds=self.max_iter)

    def _run_em(self, X, q, rng):
        start = ppca.init(X, q, rng)
        plain = Method(start, partial(ppca.step, X=X))
        method = anderson(plain, ppca.pack, partial(ppca.unpack, like=start))
        tol = self.tol * X.n_samples * X.n_features
        return self._iterate(method, max_iter=self.max_iter, tol=tol)

    def _run_gaps(self, data, q, loop):
        start = incomplete.init(data, q)
        method = anderson(
            Method(start, partial(incomplete.step, data=data)),
            incomplete.pack,
            partial(incomplete.unpack, like=start),
        )
        tol = self.tol * incomplete.n_observed(data)
        return loop(method, max_iter=self.max_iter, tol=tol)

    def _fit_rows(self, data, q):
        return self._run_gaps(data, q, iterate).state

    def _keep(self, X, parameters, run, curve):
        mean, W, sigma2, total = parameters
        self.n_components_ = W.shape[1]
        self.components_ = np.ascontiguousarray(W.T.astype(X.dtype))
        self.mean_ = np.asarray(mean, dtype=X.dtype)
        self.noise_variance_ = float(sigma2)
        self.explained_variance_ = np.sum(W**2, axis=0) + sigma2
        self.explained_variance_ratio_ = self.explained_variance_ / total
        self.log_likelihood_ = run.objective[-1]
        self.__dict__.pop("criterion_", None)
        if curve is not None:
            names = ("n_components", "mean", "std")
            self.criterion_ = {name: getattr(curve, name) for name in names}
        self._keep_run(run, max_iter=self.max_iter)
        return self


def _warn_at_floor(floored, q):
    if floored:
        warnings.warn(
            f"n_components == {q} explains all variance of X: the noise variance is held at its "
            "floor, and the log likelihood has no maximum",
            ConvergenceWarning,
            stacklevel=4,
        )
