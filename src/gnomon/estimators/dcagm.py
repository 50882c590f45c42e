"""Discriminative components by Gaussian mixtures, from labels, chunks and unlabelled rows."""

from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import (
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators._base import LatentPosterior
from gnomon.estimators._door import (
    NO_CHUNK,
    FillsGaps,
    by_rows,
    check_integer,
    check_option,
    check_real,
    check_size,
    generator,
    read_chunks,
    read_data,
    read_numbers,
    read_weights,
    share_labels,
    take_rows,
)
from gnomon.estimators._fit import IterativeFit
from gnomon.estimators._heads import (
    Telling,
    learn_telling,
    says_something,
    taught_rows,
    told,
)
from gnomon.estimators._predict import PredictsLabels
from gnomon.estimators._targets import (
    UNLABELLED,
    keep_rows,
    read_classes,
    require_classes,
    require_targets,
)
from gnomon.estimators.chunks import doubtful_labels, warn_of_wrong_members
from gnomon.estimators.links import read_links
from gnomon.estimators.selection import ChoosesSize
from gnomon.linalg.data import Data, as_data, has_gaps
from gnomon.linalg.solve import threads_for
from gnomon.linalg.standardize import standardize
from gnomon.models.dcagm import fit as dcagm
from gnomon.models.dcagm import gaps
from gnomon.models.dcagm.mixture import Mixture, by_class, log_joint, log_sum, whiten
from gnomon.models.dcagm.weights import DEFAULTS
from gnomon.models.gaussian import filling
from gnomon.typing import CallbackLike, GraphLike, OutputsLike, RowsLike, SeedLike

# Copies of a row with gaps that a fit sees, each with its gaps drawn anew and a part of its weight:
# more cost time and predict no better (benchmarks/gaps.py --copies).
N_COPIES = 4
# Weight of unlabelled rows in EM: 0.1 and 1 were no better (benchmarks/dcagm_defaults.py).
EM_WEIGHT = 0.3
# Section 5 of [PGK07]: the paper itself takes distances where the fit ended.
METRICS = {"invariant": "within", "paper": "raw"}


class DCAGM(
    ChoosesSize,
    FillsGaps,
    IterativeFit,
    PredictsLabels,
    ClassNamePrefixFeaturesOutMixin,
    ClassifierMixin,
    TransformerMixin,
    BaseEstimator,
):
    """Components that part the classes, by a mixture of Gaussians per class.

    Finds the linear projection in which a mixture of Gaussians per class predicts the classes
    best, in time linear in the number of rows. Rows without label (-1 or None in ``y``) take
    part: as rows that should lie where the mixture is dense, and in chunks, as rows that share
    a class. With such rows this is SDCA-GM, without them DCA-GM [1]_.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of components; unlike that of LDA it may exceed the number of classes. "auto"
        chooses it as in `SPPCA`.
    n_gaussians : int, dict or sequence of int, default=2
        Gaussians per class; a dict by class label, or a sequence in the order of `classes_`,
        gives each class its own number.
    covariance : {"class", "gaussian"}, default="class"
        One covariance for the Gaussians of a class, or one for each, section 2.2 of [1]_.
    objective : {"invariant", "paper"}, default="invariant"
        "paper" is objective and algorithm of [1]_ as printed, for study: without the
        determinant that keeps unlabelled rows from shrinking a component to nothing, without
        a prior of the covariances, from LDA and RCA, ended where the iterations end.
    unlabelled_weight : float or "auto", default=0.01
        Weight of unlabelled rows in the objective. "auto" leaves 0.01 for a value that predicts
        hidden labels clearly better, by cross-validation that costs some 25 fits.
    chunk_weight : float or "auto", default=0.1
        Weight of chunks, and of pairs that cannot be linked, in the objective; "auto" chooses
        it likewise.
    em_weight : float, default=None
        Weight of unlabelled rows, in chunks or not, when EM fits the mixture. None is 0.3, and
        1 for ``objective="paper"``.
    ridge : float, default=3.0
        Penalty on components of little variance.
    metric : {"auto", "within", "raw"}, default="auto"
        Coordinates of `transform`, for distances and not for the classifier: the classes have
        unit covariance on average, or as the fit ended, where all rows together have it. "auto"
        is "within", and "raw" for ``objective="paper"``.
    standardize : bool or "auto", default="auto"
        Whether features are brought to unit variance, rare ones to the same size in the rows
        that have them; False divides all by one number, for scales that mean something. "auto"
        is True but for principal components, columns of falling variance that are uncorrelated.
    batch_size : int, default=None
        Fit on batches of about this many rows at a time; an iteration is all of them once.
    n_init : int, default=1
        Number of starts, of which the best run is kept; all but the first add chance.
    max_iter : int, default=100
        Most iterations.
    tol : float, default=1e-3
        Least rise of the best objective per labelled row in five iterations (two, in batches).
    callback : callable, default=None
        ``callback(n_iter, state, objective)`` is called after every iteration and stops the fit
        by returning True; ``state`` has projection ``P``, coordinates ``Z`` and ``mixture``.
    random_state : int, RandomState instance, Generator or None, default=None
        Used by ``n_init > 1``, ``batch_size`` and weights chosen by cross-validation.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
    class_head_ : ClassHead or None
        Logistic regression on the coordinates, which has half a say in the probabilities;
        None for ``objective="paper"``, and where labels left out are not found at all.
    class_shares_, class_doubt_ : ndarray of shape (n_classes,), float
        But for ``objective="paper"``: the shares of the classes among the labelled rows, and how
        much of the probabilities they are, whatever the row: as much as half a labelled row, or
        nearly all where labelled rows that are left out are not found better than by them.
    class_sharpness_ : float
        Factor of the log odds of mixture and head, below 1 where labels are fewer than two a
        column, so that the map fits them whatever they say: labels left out of a fit tell it.
    components_ : ndarray of shape (n_components, n_features)
        The projection: ``transform(X)`` is ``(X - mean_) @ components_.T``.
    n_components_ : int
    size_scores_, size_reason_ : dict of int to float, str
        For "auto": the scores of the sizes tried, and why this one was taken.
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
    unlabelled_weight_, chunk_weight_ : float
        Weights used.
    density_quantiles_ : ndarray of shape (1001,)
        Quantiles of the log density over the labelled rows, for `density_quantile`.
    weight_scores_ : dict of str to dict
        For weights chosen by cross-validation: the "values" tried and the mean log
        probability of hidden labels at each, "scores".
    filling_ : Filling or None
        PPCA of the rows in standard units, which says what missing values may be; None where
        the rows of the fit were sparse or in blocks.
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
        n_components: int | str = 2,
        *,
        n_gaussians: int | Any = 2,
        covariance: str = "class",
        objective: str = "invariant",
        unlabelled_weight: float | str = 0.01,
        chunk_weight: float | str = 0.1,
        em_weight: float | None = None,
        ridge: float = 3.0,
        metric: str = "auto",
        standardize: bool | str = "auto",
        batch_size: int | None = None,
        n_init: int | str = 1,
        max_iter: int = 100,
        tol: float = 0.001,
        callback: CallbackLike = None,
        random_state: SeedLike = None,
    ) -> None:
        self.n_components = n_components
        self.n_gaussians = n_gaussians
        self.covariance = covariance
        self.objective = objective
        self.unlabelled_weight = unlabelled_weight
        self.chunk_weight = chunk_weight
        self.em_weight = em_weight
        self.ridge = ridge
        self.metric = metric
        self.standardize = standardize
        self.batch_size = batch_size
        self.n_init = n_init
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.random_state = random_state

    def fit(
        self,
        X: RowsLike,
        y: OutputsLike,
        *,
        chunks: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
        cannot_link: GraphLike = None,
        sample_index: ArrayLike | None = None,
    ) -> Self:
        """Fit the projection and the mixtures.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            NaN marks missing values in a dense X.
        y : array-like of shape (n_samples,)
            Class labels; -1 or None for rows without. -1 and 1 alone are two classes.
        chunks : array-like of shape (n_samples,), default=None
            Rows with the same number >= 0 are known to share a class; -1 for rows in no
            chunk. A label of one member is passed on to all, but, with a warning, not to those
            that x speaks against. See `gnomon.chunks_from_pairs`.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a weight of two is a row, or member of a chunk, that occurs twice.
        cannot_link : Links, array-like or sparse matrix of shape (n_samples, n_samples), \
                default=None
            Links between rows known to be of different classes, though not of which, as from
            ``Links.from_edges(pairs, n_nodes=n_samples)``. They count in the objective of the
            projection, with ``chunk_weight``; in batches those within a batch do.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row in ``cannot_link``, where that has other nodes besides, as under
            cross-validation.

        Returns
        -------
        self : DCAGM
        """
        if self.n_components == "auto":
            known = {"chunks": chunks, "sample_weight": sample_weight}
            return self._fit_chosen(X, y, **known, **_whole_graph(cannot_link, sample_index, X))
        settings = self._settings()
        X = read_data(self, X, fitting=True, min_samples=2)
        require_targets(y, "DCAGM")
        with threads_for(as_data(X)):
            return self._fit_rows(
                X, y, settings, chunks, sample_weight, (cannot_link, sample_index)
            )

    def _fit_rows(self, X, y, settings, chunks, sample_weight, links):
        """The fit of rows that are read."""
        # A fit goes over the rows many times: those in blocks are kept where they fit in memory.
        X, n = X.kept_in_memory() if isinstance(X, Data) else X, X.shape[0]
        weights = np.ones(n) if sample_weight is None else read_weights(sample_weight, n)
        self.filling_, classes = filling.learn(X, weights), read_classes(y, n)
        X = self._filled(X) if isinstance(X, Data) else X
        classes, groups = self._share_labels(
            self._filled(X), classes, read_chunks(chunks, n), weights
        )
        cannot_link, sample_index = links
        apart = _read_apart(cannot_link, sample_index, classes, groups)
        named = classes.names if classes.names.dtype.kind in "iuf" else classes.names.astype(object)
        self.labels_ = np.append(named, UNLABELLED)[classes.labels]
        if has_gaps(X):
            X, index = filling.copies(self._filling(), X, N_COPIES, np.random.default_rng(0))
            classes, groups = keep_rows(classes, index), _together(groups, classes.labels)[index]
            weights = weights[index] / np.bincount(index)[index]
            apart = None if apart is None else apart[index][:, index]
        names, problem = self._problem(X, classes, groups, weights, apart)
        fitted = dcagm.fit(problem, settings, self._loop(problem))
        self._keep(fitted, X.dtype)
        self.classes_ = names
        self._keep_head(problem, fitted.held_out)
        self._keep_run(fitted.run, max_iter=self.max_iter)
        return self

    @by_rows
    def transform(self, X: RowsLike) -> np.ndarray:
        """Coordinates of the rows in the subspace, expected ones where values are missing.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            NaN marks missing values.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
        """
        return self._placed(self._read(X))[0]

    @by_rows
    def posterior(self, X: RowsLike) -> LatentPosterior:
        """Mean and covariance of the coordinates of every row, given what it observes.

        The coordinates of a complete row are known, and their covariance is zero. Those of a
        row with gaps lie where the mixture and the values observed say; the probabilities of
        the classes, by the same mixture, are those of `predict_proba`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            NaN marks missing values.

        Returns
        -------
        posterior : LatentPosterior
            Named tuple (mean, covariance) with arrays of shape (n_samples, n_components) and
            (n_samples, n_components, n_components). The mean is what `transform` gives.
        """
        Z, covariance, _ = self._placed(self._read(X))
        return LatentPosterior(np.asarray(Z, dtype=float), covariance)

    @by_rows
    def predict_proba(self, X: RowsLike) -> np.ndarray:
        """Probabilities of the classes given the coordinates of each row.

        Unless ``objective="paper"``, they are the mean of those of the mixtures and of a
        logistic regression on the coordinates, which with few labels is far less sure.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_classes)
            In the order of `classes_`.
        """
        Z, _, joint = self._placed(self._read(X))
        L, _ = by_class(joint, self.gaussian_classes_)
        # Model files of early versions have no sharpness and no shares of their own.
        shares = getattr(self, "class_shares_", self.class_weights_)
        factor, doubt = getattr(self, "class_sharpness_", 1.0), getattr(self, "class_doubt_", 0.0)
        telling = Telling(getattr(self, "class_head_", None), factor, shares, doubt)
        return told(telling, L.T, Z)

    @by_rows
    def predict_log_proba(self, X: RowsLike) -> np.ndarray:
        """Logarithms of the probabilities of the classes.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        log_probabilities : ndarray of shape (n_samples, n_classes)
        """
        return np.log(self.predict_proba(X))

    @by_rows
    def responsibilities(self, X: RowsLike) -> np.ndarray:
        """Probabilities of the Gaussians given the coordinates of each row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        probabilities : ndarray of shape (n_samples, n_gaussians_total)
            In the order of `gaussian_classes_`.
        """
        L, shares = by_class(self._placed(self._read(X))[2], self.gaussian_classes_)
        return (np.exp(L - log_sum(L))[self.gaussian_classes_] * shares).T

    @by_rows
    def density_quantile(self, X: RowsLike) -> np.ndarray:
        """Share of training rows that lie where the mixture is thinner than at each row.

        A row of a class that was never labelled tends to fit none of the known ones: a value
        near 0 says that it lies where hardly any training row does.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        quantiles : ndarray of shape (n_samples,)
            Between 0 and 1.
        """
        Z = np.asarray(self.transform(X), dtype=float)
        L = log_joint(whiten(self._mixture()), Z)
        steps = np.linspace(0, 1, len(self.density_quantiles_))
        return np.interp(log_sum(L), self.density_quantiles_, steps)

    @property
    def metric_(self) -> np.ndarray:
        """Mahalanobis matrix (n_features, n_features) of distances between transformed rows."""
        check_is_fitted(self)
        return self.components_.T @ self.components_

    @property
    def _n_features_out(self):
        return self.components_.shape[0]

    def _settings(self):
        """Checked parameters, as the model takes them."""
        check_option("objective", self.objective, ("invariant", "paper"))
        check_option("covariance", self.covariance, ("class", "gaussian"))
        if hasattr(self.callback, "resume"):
            # A file holds one run; with several it would be taken for that of another start.
            high_is = ", since callback is a checkpoint"
            check_integer("n_init", self.n_init, low=1, high=1, high_is=high_is)
        model = dcagm.Model(
            n_components=check_integer("n_components", self.n_components, low=1),
            chunk_weight=_check_weight("chunk_weight", self.chunk_weight),
            unlabelled_weight=_check_weight("unlabelled_weight", self.unlabelled_weight),
            em_weight=self._em_weight(),
            ridge=check_real("ridge", self.ridge, low=0),
            per_gaussian=self.covariance == "gaussian",
            as_printed=self.objective == "paper",
        )
        size = self.batch_size
        return dcagm.Settings(
            model,
            choose=tuple(name for name in DEFAULTS if isinstance(getattr(self, name), str)),
            standardize=check_option("standardize", self.standardize, ("auto", True, False)),
            metric=self._metric(),
            batch_size=None if size is None else check_integer("batch_size", size, low=1),
            n_init=check_integer("n_init", self.n_init, low=1),
            max_iter=check_integer("max_iter", self.max_iter, low=1),
            tol=check_real("tol", self.tol, low=0),
            rng=generator(self.random_state),
        )

    def _em_weight(self):
        """As given, or the default of the objective."""
        if self.em_weight is None:
            return 1.0 if self.objective == "paper" else EM_WEIGHT
        return check_real("em_weight", self.em_weight, low=0)

    def _metric(self):
        """As given, or the one of the objective."""
        metric = check_option("metric", self.metric, ("auto", "within", "raw"))
        return METRICS[self.objective] if metric == "auto" else metric

    def _share_labels(self, X, classes, chunks, weights):
        """Labels passed on to the members of a chunk; those that x speaks against leave it."""
        # A row of weight zero has no say.
        own = np.where(weights > 0, classes.labels, UNLABELLED)
        labels = share_labels(own, chunks, classes.names)
        labels = np.where(weights > 0, labels, classes.labels)
        passed_on = (labels >= 0) & (classes.labels < 0) & (weights > 0)
        if self.objective == "invariant" and passed_on.any():
            counted = (labels >= 0) & (weights > 0)
            rows = standardize(as_data(X), weights, by_column=self.standardize).data
            names = np.unique(labels[counted], return_inverse=True)[1]
            wrong = np.zeros(len(labels), dtype=bool)
            wrong[counted] = doubtful_labels(rows.rows(counted), names, weights[counted])
            wrong &= passed_on
            warn_of_wrong_members(wrong)
            labels, chunks = np.where(wrong, -1, labels), np.where(wrong, NO_CHUNK, chunks)
        return classes._replace(labels=labels), chunks

    def _problem(self, X, classes, chunks, weights, apart):
        """Names of the classes, and what the model is fitted to."""
        # A row of weight zero is no row: neither its features nor its class may count.
        present = weights > 0
        X = as_data(X if present.all() else take_rows(X, present))
        seen = keep_rows(classes, present)
        require_classes(seen, "DCAGM")
        check_size(self.n_components, X.shape)
        numbers = read_numbers("n_gaussians", self.n_gaussians, seen.names)
        known = seen.labels, chunks[present], weights[present], numbers
        apart = None if apart is None else apart[present][:, present]
        return seen.names, dcagm.Problem(X, *known, apart)

    def _keep(self, fitted, dtype):
        """Keep a fit as attributes."""
        mixture = fitted.mixture
        self.mean_ = fitted.mean.astype(dtype)
        self.components_ = np.ascontiguousarray(fitted.components, dtype)
        self.n_components_ = len(self.components_)
        self.class_weights_, self.weights_ = mixture.alpha, mixture.beta
        self.gaussian_classes_, self.means_ = mixture.class_of, mixture.means
        self.covariances_ = mixture.covariances[mixture.covariance_of]
        self.density_quantiles_ = fitted.density_quantiles
        self.unlabelled_weight_ = fitted.model.unlabelled_weight
        self.chunk_weight_ = fitted.model.chunk_weight
        self.weight_scores_ = fitted.weight_scores

    def _on_axes(self, X):
        return np.asarray(as_data(X).less_mean(self.mean_.astype(X.dtype)) @ self.components_.T)

    def _keep_head(self, problem, held_out):
        """The head of the map, but for the paper's objective."""
        X, labels, weights = problem.X, problem.labels, problem.weights
        self.class_head_, self.class_sharpness_ = None, 1.0
        self.__dict__.pop("class_doubt_", None)
        if self.objective != "invariant" or len(self.classes_) < 2:
            return
        rows = taught_rows(labels)
        evidence = held_out, says_something(X, labels, weights, self.standardize)
        found = learn_telling(self._on_axes(X.rows(rows)), rows, labels, weights, evidence)
        self.class_head_, self.class_sharpness_, self.class_shares_, self.class_doubt_ = found

    def _placed(self, X):
        """Coordinates of rows, their covariances, and log p(z, g), Gaussians by rows."""
        Z, mixture = self._on_axes(self._filled(X)), self._mixture()
        covariance = np.zeros((*Z.shape, Z.shape[1]))
        joint = log_joint(whiten(mixture), np.asarray(Z, dtype=float))
        if has_gaps(X):
            rows = np.isnan(X).any(axis=1)
            axes = self.components_.astype(float), self.mean_.astype(float)
            seen = gaps.measure(self._filling(), X[rows], *axes, Z[rows])
            Z[rows], covariance[rows], joint[:, rows] = gaps.locate(mixture, seen)
        return Z, covariance, joint

    def _mixture(self):
        each = np.arange(len(self.means_))
        weights = self.class_weights_, self.weights_
        return Mixture(self.gaussian_classes_, each, *weights, self.means_, self.covariances_)


def _together(chunks, labels):
    """Chunks with one for every labelled row that is in none, whose copies stay together."""
    alone = (labels >= 0) & (chunks < 0)
    return np.where(alone, chunks.max() + 1 + np.arange(len(chunks)), chunks)


def _whole_graph(cannot_link, sample_index, X):
    """Pairs that survive folds, and the node of every row; nothing where there are none."""
    if cannot_link is None:
        return {}
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if sample_index is None:
        cannot_link, sample_index = read_links(cannot_link, n), np.arange(n)
    return {"cannot_link": cannot_link, "sample_index": sample_index}


def _read_apart(cannot_link, sample_index, classes, chunks):
    """Pairs of rows of different classes (n, n), refused where labels or chunks say otherwise."""
    if cannot_link is None:
        return None
    apart = read_links(cannot_link, len(chunks), sample_index).adjacency
    i, j = apart.nonzero()
    labels = classes.labels
    together = {"label": (labels[i] >= 0) & (labels[i] == labels[j])}
    together["chunk"] = (chunks[i] >= 0) & (chunks[i] == chunks[j])
    for what, same in together.items():
        if same.any():
            first = np.argmax(same)
            raise ValueError(
                f"cannot_link joins rows {i[first]} and {j[first]}, which have one {what}; "
                "accepted are pairs of rows of different classes"
            )
    return apart


def _check_weight(name, value):
    """A weight as a number; the one that "auto" starts from."""
    if isinstance(value, str):
        check_option(name, value, ("auto",))
        return DEFAULTS[name]
    return check_real(name, value, low=0)
