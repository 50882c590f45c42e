"""Discriminative components by Gaussian mixtures, from labels, chunks and unlabelled rows."""

import numpy as np
from sklearn.base import BaseEstimator

from gnomon.estimators._discriminative import Options, choose_weights, solve
from gnomon.estimators._door import (
    check_integer,
    check_option,
    check_real,
    generator,
    read_data,
    read_numbers,
    read_weights,
    take_rows,
)
from gnomon.estimators._fit import IterativeFit
from gnomon.estimators._mixture import MixtureProjection
from gnomon.estimators._scoring import LabelledScore
from gnomon.estimators._targets import (
    UNLABELLED,
    keep_rows,
    read_classes,
    require_classes,
    require_targets,
)
from gnomon.estimators.chunks import read_chunks, spread_labels
from gnomon.linalg.data import as_data
from gnomon.linalg.standardize import standardize
from gnomon.models import dca_gm, dca_gm_problem, dca_gm_report
from gnomon.models.dca_gm_problem import Problem

# Weights used where none is given, and from which "auto" starts.
WEIGHTS = {"chunk_weight": 0.1, "unlabelled_weight": 0.01}


class DCAGM(IterativeFit, LabelledScore, MixtureProjection, BaseEstimator):
    """Components that part the classes, by a mixture of Gaussians per class.

    Finds the linear projection in which a mixture of Gaussians per class predicts the classes
    best, in time linear in the number of rows. Rows without label (-1 or None in ``y``) take
    part: as rows that should lie where the mixture is dense, and in chunks, as rows that share
    a class. With such rows this is SDCA-GM, without them DCA-GM [1]_.

    Parameters
    ----------
    n_components : int, default=2
        Number of components; unlike that of LDA it may exceed the number of classes.
    n_gaussians : int, dict or sequence of int, default=2
        Gaussians per class; a dict by class label, or a sequence in the order of `classes_`,
        gives each class its own number.
    covariance : {"class", "gaussian"}, default="class"
        Whether the Gaussians of a class share a covariance or have one each.
    objective : {"invariant", "paper"}, default="invariant"
        "paper" is the objective as printed, for study: without the determinant that keeps
        unlabelled rows from shrinking a component to nothing.
    solver : {"alternating", "joint"}, default="alternating"
        EM for the mixture in turn with conjugate gradients for the projection as in [1]_, or
        one ascent on all parameters together, which has a single objective.
    unlabelled_weight : float or "auto", default=0.01
        Weight of unlabelled rows in the objective. "auto" chooses it by cross-validation on
        the labelled rows, at the price of some 25 fits; 0.01 is left only for a value that
        predicts hidden labels better by more than a standard error.
    chunk_weight : float or "auto", default=0.1
        Weight of chunks in the objective; "auto" chooses it likewise.
    em_weight : float, default=0.3
        Weight of unlabelled rows, in chunks or not, when EM fits the mixture.
    generative_weight : float, default=0.1
        Weight of the log likelihood of the mixture in the objective of ``solver="joint"``.
    ridge : float, default=3.0
        Penalty on components of little variance.
    shrinkage : float, default=0.001
        Variance added to every feature where covariances are formed, as a share of the
        mean variance.
    prior_scale : float, default=0.05
        Every covariance is given ``n_components + 2`` pseudo-points with this share of the
        variance of all rows; it keeps small classes from collapse.
    n_em_steps : int, default=5
        EM steps after each step of the projection.
    metric : {"within", "unit", "raw"}, default="within"
        Coordinates of `transform`: the classes have unit covariance on average, all rows have,
        or as the solver ended. They decide about distances, not about the classifier.
    standardize : bool, default=True
        Whether features are brought to unit variance; if not, they are all divided by one
        number. Rare features, of which at most two rows in a hundred say something, are
        brought to the same size in those rows instead, or a crowd of them would drown the
        others. Use False where scales mean something: weights of words, principal components.
    batch_size : int, default=None
        Fit on batches of about this many rows at a time, an iteration being once through all
        of them; for rows that are many. Not with ``solver="joint"``.
    n_init : int, default=1
        Number of starts; the first is by discriminant analysis, the others add chance. The
        run with the best objective is kept.
    max_iter : int, default=100
        Most iterations.
    tol : float, default=1e-3
        The fit has settled when the best objective has risen by less than this per labelled
        row in five iterations (in one, for ``solver="joint"``).
    callback : callable, default=None
        ``callback(n_iter, state, objective)`` is called after every iteration; it stops the
        fit by returning True.
    random_state : int, RandomState instance, Generator or None, default=None
        Used by ``n_init > 1``, ``batch_size`` and weights chosen by cross-validation.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    components_ : ndarray of shape (n_components, n_features)
        The projection: ``transform(X)`` is ``(X - mean_) @ components_.T``.
    mean_ : ndarray of shape (n_features,)
    class_weights_ : ndarray of shape (n_classes,)
        Prior probabilities of the classes.
    gaussian_classes_ : ndarray of shape (n_gaussians_total,)
        For each Gaussian, the position of its class in `classes_`.
    weights_ : ndarray of shape (n_gaussians_total,)
        Weights of the Gaussians within their classes.
    means_ : ndarray of shape (n_gaussians_total, n_components)
    covariances_ : ndarray of shape (n_gaussians_total, n_components, n_components)
        Means and covariances of the Gaussians in the coordinates of `transform`.
    metric_ : ndarray of shape (n_features, n_features)
        Mahalanobis matrix of the distances between transformed rows.
    unlabelled_weight_, chunk_weight_ : float
        Weights used.
    weight_scores_ : dict of str to dict
        For weights chosen by cross-validation: the "values" tried and the mean log
        probability of hidden labels at each, "scores".
    labels_ : ndarray of shape (n_samples,)
        Labels of the training rows, those of chunks passed on to their members, -1 for none.
    objective_ : list of float
        Objective at every iteration; the state with the best is kept.
    n_iter_ : int
    converged_ : bool
        Whether the objective settled.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has column names.

    See Also
    --------
    sklearn.neighbors.NeighborhoodComponentsAnalysis : The same aim in quadratic time.
    sklearn.discriminant_analysis.LinearDiscriminantAnalysis : The start of this fit.

    References
    ----------
    .. [1] J. Peltonen, J. Goldberger and S. Kaski, "Fast semi-supervised discriminative
       component analysis", IEEE Workshop on Machine Learning for Signal Processing (2007).

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from gnomon import DCAGM
    >>> X, y = load_wine(return_X_y=True)
    >>> partly = y.copy()
    >>> partly[5:50] = partly[65:125] = partly[135:] = -1
    >>> model = DCAGM(n_components=2).fit(X, partly)
    >>> model.transform(X).shape
    (178, 2)
    >>> bool(model.score(X, y) > 0.9)
    True
    """

    def __init__(
        self,
        n_components=2,
        *,
        n_gaussians=2,
        covariance="class",
        objective="invariant",
        solver="alternating",
        unlabelled_weight=0.01,
        chunk_weight=0.1,
        em_weight=0.3,
        generative_weight=0.1,
        ridge=3.0,
        shrinkage=0.001,
        prior_scale=0.05,
        n_em_steps=5,
        metric="within",
        standardize=True,
        batch_size=None,
        n_init=1,
        max_iter=100,
        tol=1e-3,
        callback=None,
        random_state=None,
    ):
        self.n_components = n_components
        self.n_gaussians = n_gaussians
        self.covariance = covariance
        self.objective = objective
        self.solver = solver
        self.unlabelled_weight = unlabelled_weight
        self.chunk_weight = chunk_weight
        self.em_weight = em_weight
        self.generative_weight = generative_weight
        self.ridge = ridge
        self.shrinkage = shrinkage
        self.prior_scale = prior_scale
        self.n_em_steps = n_em_steps
        self.metric = metric
        self.standardize = standardize
        self.batch_size = batch_size
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.random_state = random_state

    def fit(self, X, y, *, chunks=None, sample_weight=None):
        """Fit the projection and the mixtures.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels; -1 or None for rows without.
        chunks : array-like of shape (n_samples,), default=None
            Rows with the same number >= 0 are known to share a class; -1 for rows in no
            chunk. A label of one member is passed on to all. See `gnomon.chunks_from_pairs`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a weight of two is a row that occurs twice, in its chunk if
            it has one.

        Returns
        -------
        self : DCAGM
        """
        settings, options = self._settings(), self._options()
        X = read_data(self, X, fitting=True, allow_nan=False, min_samples=2)
        n = X.shape[0]
        require_targets(y, "DCAGM")
        classes, ids = read_classes(y, n), read_chunks(chunks, n)
        classes = classes._replace(labels=spread_labels(classes.labels, ids, classes.names))
        weights = np.ones(n) if sample_weight is None else read_weights(sample_weight, n)
        # A row of weight zero is no row: neither its features nor its class may count.
        present = weights > 0
        seen = keep_rows(classes, present)
        require_classes(seen, "DCAGM")
        X = X if present.all() else take_rows(X, present)
        standard, problem, lift = self._prepare(X, seen, ids[present], weights[present])
        rng = generator(self.random_state)
        wanted = [name for name in WEIGHTS if getattr(self, name) == "auto"]
        settings, choices = choose_weights(problem, settings, wanted, options, rng)
        run = solve(problem, settings, options, rng, self._iterate)
        rows, state = problem.rows, run.state._replace(P=lift(run.state.P))
        state = dca_gm_report.reported(state, rows, settings, self.metric)
        self._keep_state(state, standard, X.dtype)
        self.density_quantiles_ = dca_gm_report.density_quantiles(state, rows)
        self.classes_ = seen.names
        names = classes.names if classes.names.dtype.kind in "iuf" else classes.names.astype(object)
        self.labels_ = np.append(names, UNLABELLED)[classes.labels]
        self.unlabelled_weight_ = settings.unlabelled_weight
        self.chunk_weight_ = settings.chunk_weight
        self.weight_scores_ = choices
        self._keep_run(run, max_iter=self.max_iter)
        return self

    def _settings(self):
        """Checked parameters, as the model takes them."""
        q = check_integer("n_components", self.n_components, low=1)
        check_option("objective", self.objective, ("invariant", "paper"))
        check_option("covariance", self.covariance, ("class", "gaussian"))
        check_option("metric", self.metric, dca_gm_report.METRICS)
        check_option("standardize", self.standardize, (True, False))
        if self.solver == "joint" and self.objective == "paper":
            raise ValueError(
                "solver == 'joint' needs objective == 'invariant': the paper's objective has no "
                "maximum to ascend to"
            )
        return dca_gm.Settings(
            chunk_weight=_check_weight("chunk_weight", self.chunk_weight),
            unlabelled_weight=_check_weight("unlabelled_weight", self.unlabelled_weight),
            em_weight=check_real("em_weight", self.em_weight, low=0),
            ridge=check_real("ridge", self.ridge, low=0),
            shrinkage=check_real("shrinkage", self.shrinkage, low=0, open_low=True),
            prior_count=q + 2.0,
            prior_scale=check_real("prior_scale", self.prior_scale, low=0, open_low=True),
            n_em=check_integer("n_em_steps", self.n_em_steps, low=1),
            per_gaussian=self.covariance == "gaussian",
            as_printed=self.objective == "paper",
            generative_weight=check_real("generative_weight", self.generative_weight, low=0),
        )

    def _options(self):
        """Checked parameters of the solver."""
        solvers = ("alternating", "joint") if self.batch_size is None else ("alternating",)
        batch_size = self.batch_size
        if batch_size is not None:
            batch_size = check_integer("batch_size", batch_size, low=1)
        if hasattr(self.callback, "resume"):
            # A file holds one run; with several it would be taken for that of another start.
            high_is = ", since callback is a checkpoint"
            check_integer("n_init", self.n_init, low=1, high=1, high_is=high_is)
        return Options(
            check_option("solver", self.solver, solvers),
            batch_size,
            check_integer("n_init", self.n_init, low=1),
            check_integer("max_iter", self.max_iter, low=1),
            check_real("tol", self.tol, low=0),
        )

    def _prepare(self, X, classes, chunks, weights):
        """The data in standard units, the problem, and the way of its P back to these units."""
        high_is = f", the least of {X.shape[0]} rows and {X.shape[1]} features"
        q = check_integer(
            "n_components", self.n_components, low=1, high=min(X.shape), high_is=high_is
        )
        standard = standardize(as_data(X), weights, by_column=self.standardize)
        if not standard.factors.any():
            raise ValueError(
                "X has no variation: all rows are equal; accepted are rows that differ"
            )
        owner = dca_gm_problem.owners(read_numbers("n_gaussians", self.n_gaussians, classes.names))
        data, lift = dca_gm_problem.in_row_space(standard.data, q)
        n_varying = np.count_nonzero(standard.factors)
        problem = Problem(data, classes.labels, chunks, weights, owner, q, n_varying)
        return standard, problem, lift


def _check_weight(name, value):
    """A weight as a number; the one "auto" starts from."""
    if isinstance(value, str):
        check_option(name, value, ("auto",))
        return WEIGHTS[name]
    return check_real(name, value, low=0)
