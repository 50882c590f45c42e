"""Supervised and semi-supervised probabilistic PCA."""

import numpy as np

from gnomon.estimators._door import (
    check_integer,
    check_option,
    check_real,
    check_strength,
    read_data,
    read_weights,
    repeatable,
    take_rows,
)
from gnomon.estimators._likelihood import Settings
from gnomon.estimators._likelihood_fit import LikelihoodFit, Rows, read_noise
from gnomon.estimators._supervised import SupervisedModel
from gnomon.estimators._targets import KINDS, read_targets
from gnomon.models.strength import fit as strength

SOLVERS = ("auto", "moments", "dual", "subspace", "em")
SCALES = ("auto", "latent", "energy")


class SPPCA(LikelihoodFit, SupervisedModel):
    """Supervised probabilistic PCA, semi-supervised where y has unlabelled rows.

    Inputs and outputs share latent variables: x = mean + W z + noise, y = W_y z + noise. With
    all rows labelled this is SPPCA [1]_, with some it is S2PPCA, with none it is PPCA. How much
    the outputs turn the components is the strength of supervision.

    Parameters
    ----------
    n_components : int, default=2
        Number of latent dimensions.
    supervision : "auto", "likelihood" or float in [0, 1], default="auto"
        A number is the share of the energy that the outputs hold, once they have been
        completed on all rows by a tuned ridge regression: 0 is PCA, 1 keeps only what
        predicts y. "auto" chooses it by trials on the labelled rows, and lets unlabelled rows
        take part with the class on which all candidates agree; where the labels are not
        predictable from x it is 0. "likelihood" is the maximum-likelihood S2PPCA of [1]_; with
        few labels its subspace is nearly PCA's.
    target : {"auto", "classes", "numeric", "multilabel"}, default="auto"
        What y holds. "auto": strings, integers, booleans and categories are classes, floats
        are numbers unless they are few whole numbers that repeat, a matrix of 0, 1 and NaN is
        multilabel and any other is numeric.
    solver : {"auto", "moments", "dual", "subspace", "em"}, default="auto"
        How "likelihood" finds its maximum: from second moments in one pass, in the span of the
        rows, by a growing subspace with few products, or by the EM of [1]_ for study (random
        start, mean of the labelled y, rows that lack an output count as unlabelled). "auto"
        takes the cheapest for the shape of X.
    noise : {"learn", "per_output"}, float or pair of floats, default="learn"
        For "likelihood": one noise level for x and one for y are learnt, or one for every
        output. A float ties the noise of y to that of x at this ratio, a pair fixes both.
        Numeric outputs have unit variance here, classes are orthonormal contrasts.
    target_mean : {"likelihood", "labelled"}, default="likelihood"
        For "likelihood": the mean of y is learnt, or kept at that of the labelled rows.
    prior : float, default=0.0
        For "likelihood": precision of a Gaussian prior on the loadings, in units of the mean
        variance of x and of y. Zero is maximum likelihood.
    scale : {"auto", "latent", "energy"}, default="auto"
        Scale of the coordinates. "latent" is the posterior mean of z, nearly whitened;
        "energy" stretches each axis to the length it explains, in units of x, and with
        ``supervision=0`` is PCA's. "auto" is "latent" for "likelihood", else "energy".
    max_iter : int, default=500
        Most iterations of "likelihood" and of any fit to rows with gaps, or rounds of
        "subspace". Without gaps a number needs none.
    tol : float, default=1e-7
        An iteration ends when the log likelihood changes by less than this per entry of X.
    callback : callable, default=None
        ``callback(n_iter, state, objective)`` is called after every iteration; it stops the
        fit by returning True.
    random_state : int, RandomState instance, Generator or None, default=None
        Draws of "auto", "subspace" and "em". None stands for 0, so that two fits agree.

    Attributes
    ----------
    components_ : ndarray of shape (n_components, n_features)
        The loadings W'.
    mean_ : ndarray of shape (n_features,)
    noise_variance_ : float
    projection_ : ndarray of shape (n_features, n_components)
        ``transform(X)`` is ``(X - mean_) @ projection_``.
    latent_scale_ : ndarray of shape (n_components,)
        Coordinates, of `transform` or of `posterior`, times this are the latent variables z.
    latent_covariance_ : ndarray of shape (n_components, n_components)
        Posterior covariance of z, not of the coordinates, given complete x.
    coef_ : ndarray of shape (n_features, n_outputs)
        Regression of the coded outputs on x: ``target_mean_ + (X - mean_) @ coef_``.
    target_mean_ : ndarray of shape (n_outputs,)
    target_covariance_ : ndarray of shape (n_outputs, n_outputs)
        Covariance of the coded outputs given x.
    target_components_ : ndarray of shape (n_components, n_outputs)
        Loadings W_y' of the coded outputs, of the completed ones unless "likelihood".
    target_noise_variance_ : ndarray of shape (n_outputs,)
    target_coding_ : Coding
        How y became columns; ``classes`` for classes.
    classes_ : ndarray of shape (n_classes,)
        Only where y holds classes.
    supervision_ : float or "likelihood"
        The strength used.
    supervision_curve_ : dict of str to ndarray
        For "auto", where there was something to try: the strengths and pools of principal
        components tried, their losses and the criterion.
    input_share_, target_share_ : ndarray of shape (n_components,)
        Share of the energy of x, and of the outputs, that each component explains.
    log_likelihood_ : float
        For "likelihood": log likelihood of the data (less the penalty of the prior).
    objective_ : list of float
        The log likelihood (less its penalty) at every iteration. For a number or "auto" that
        of x and the completed outputs where X has gaps; the share of the energy that the
        components hold where it has none.
    n_iter_ : int
        Iterations; with gaps and a number or "auto", those after PPCA has filled them.
    n_passes_ : int
        Passes over X, those for its mean left out.
    converged_ : bool
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has column names.

    See Also
    --------
    PPCA : Without outputs.
    KernelSPPCA : With nonlinear components.

    References
    ----------
    .. [1] S. Yu, K. Yu, V. Tresp, H.-P. Kriegel and M. Wu, "Supervised probabilistic principal
       component analysis", KDD 2006, 464-473.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gnomon import SPPCA
    >>> X, y = load_iris(return_X_y=True)
    >>> y[5:45] = y[55:95] = y[105:145] = -1
    >>> model = SPPCA(n_components=2).fit(X, y)
    >>> model.transform(X).shape
    (150, 2)
    >>> model.predict(X[:3])
    array([0, 0, 0])
    """

    def __init__(
        self,
        n_components=2,
        *,
        supervision="auto",
        target="auto",
        solver="auto",
        noise="learn",
        target_mean="likelihood",
        prior=0.0,
        scale="auto",
        max_iter=500,
        tol=1e-7,
        callback=None,
        random_state=None,
    ):
        self.n_components = n_components
        self.supervision = supervision
        self.target = target
        self.solver = solver
        self.noise = noise
        self.target_mean = target_mean
        self.prior = prior
        self.scale = scale
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
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Outputs. -1 or None marks rows without class, NaN missing numbers or indicators.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a weight of two is a row that occurs twice.

        Returns
        -------
        self : SPPCA
        """
        settings = self._check_parameters()
        X = read_data(self, X, fitting=True, min_samples=2)
        high_is = f", the least of {X.shape[0]} rows and {X.shape[1]} features"
        q = check_integer(
            "n_components", self.n_components, low=1, high=min(X.shape), high_is=high_is
        )
        weights = read_weights(sample_weight, X.shape[0])
        if weights is not None and not weights.all():
            X, y = take_rows(X, weights > 0), None if y is None else take_rows(y, weights > 0)
            weights = weights[weights > 0]
        targets = read_targets(y, X.shape[0], self.target, weights)
        rows = Rows(X, targets, weights)
        if self.supervision == "likelihood":
            return self._fit_likelihood(rows, q, settings)
        problem = strength.Problem(X, targets.Y, targets.observed, targets.labels, weights)
        found = strength.fit(problem, self._strength_settings(q), self._iterate)
        return self._keep_strength(rows, found)

    def _check_parameters(self):
        check_strength(self.supervision)
        check_option("target", self.target, ("auto", *KINDS))
        check_option("solver", self.solver, SOLVERS)
        check_option("target_mean", self.target_mean, ("likelihood", "labelled"))
        check_option("scale", self.scale, SCALES)
        check_real("prior", self.prior, low=0)
        check_integer("max_iter", self.max_iter, low=1)
        check_real("tol", self.tol, low=0)
        return Settings(read_noise(self.noise), self.target_mean, float(self.prior))

    def _strength_settings(self, q):
        return strength.Settings(
            q,
            self.supervision,
            self.scale == "latent",
            self.max_iter,
            self.tol,
            self._generator(),
        )

    def _keep_strength(self, rows, found):
        self._keep(rows, found.fitted, found.strength, found.passes)
        if found.curve is not None:
            self.supervision_curve_ = found.curve._asdict()
        self._keep_run(found.run, max_iter=self.max_iter)
        return self

    def _generator(self):
        return repeatable(self.random_state)

    def _keep(self, rows, fitted, strength, passes):
        dtype, coding = rows.X.dtype, rows.targets.coding
        state = fitted.state
        self.mean_ = np.asarray(fitted.mean, dtype=dtype)
        self.components_ = np.ascontiguousarray(state.W.T.astype(dtype))
        self.noise_variance_ = float(state.sigma2)
        self.projection_ = fitted.projection
        self.latent_scale_ = fitted.latent_scale
        self.latent_covariance_ = fitted.latent_covariance
        self.coef_, self.target_mean_, self.target_covariance_ = fitted.outputs
        self.target_components_ = state.W_y.T
        self.target_noise_variance_ = state.sigma2_y
        self.target_whitener_ = fitted.whitener
        self.target_coding_ = coding
        self.input_share_ = fitted.input_share
        self.target_share_ = fitted.target_share
        self.supervision_ = strength
        self.n_passes_ = passes
        for name in ("classes_", "supervision_curve_", "log_likelihood_"):
            vars(self).pop(name, None)
        if coding.kind == "classes":
            self.classes_ = coding.classes
