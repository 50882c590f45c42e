"""Supervised probabilistic PCA in the space of a kernel."""

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.metaestimators import available_if

from gnomon.estimators._base import LatentPosterior
from gnomon.estimators._door import (
    FillsGaps,
    by_rows,
    check_integer,
    check_noise,
    check_option,
    check_real,
    check_strength,
    in_memory_by_rows,
    read_data,
    repeatable,
)
from gnomon.estimators._fit import IterativeFit
from gnomon.estimators._heads import ClassHead
from gnomon.estimators._predict import PredictsOutputs
from gnomon.estimators._targets import KINDS
from gnomon.estimators.kernel_features import KernelFeatures, MeasuredByKernel
from gnomon.estimators.links import TakesLinks
from gnomon.estimators.selection import ChoosesSize
from gnomon.linalg.data import Matrix, as_data, center, has_gaps, weighted
from gnomon.linalg.solve import one_thread
from gnomon.models.gaussian import filling
from gnomon.models.kernel import MOST_EXACT, Mapped
from gnomon.models.sppca import fit as likelihood
from gnomon.models.sppca import predict
from gnomon.models.sppca.statistics import State
from gnomon.models.strength import fit as strength
from gnomon.models.strength import left_out, numbers
from gnomon.models.strength.closed_form import (
    PrincipalSpace,
    n_directions,
    principal_space,
)
from gnomon.models.strength.completion import Outputs
from gnomon.stats import gaussian
from gnomon.typing import CallbackLike, GraphLike, OutputsLike, RowsLike, SeedLike

OF_KERNEL = ("landmark_indices_", "landmarks_", "gamma_")
# Kernels that are linear in x, or know nothing of it: there is nothing to set beside them.
OF_ROWS_ALREADY = ("linear", "precomputed")
# Draws of what is missing: deviations known from so many err by a tenth.
N_DRAWS = 50


def _by_likelihood(model):
    return model.supervision == "likelihood"


class KernelSPPCA(
    ChoosesSize, TakesLinks, PredictsOutputs, IterativeFit, FillsGaps, MeasuredByKernel
):
    """Supervised probabilistic PCA in the space of a kernel, semi-supervised where y has gaps.

    The dual form of `SPPCA` [1]_: components are linear in the features of a kernel, those of
    `KernelFeatures`, and so nonlinear in x. Up to 2000 rows the whole kernel matrix is used;
    beyond, or where ``n_landmarks`` says so, a Nystrom approximation by randomly chosen rows.

    Parameters
    ----------
    n_components : int or "auto", default=2
        Number of components; "auto" chooses it as in `SPPCA`.
    kernel : str or callable, default="rbf"
    gamma : float, default=None
    degree : int, default=3
    coef0 : float, default=1.0
        The kernel and its parameters, as in `KernelFeatures`. With ``supervision="auto"`` and
        classes as y, a kernel "rbf" or "laplacian" without gamma is up to 30 times as wide where
        labelled rows that are left out are then found clearly better.
    supervision : "auto", "likelihood" or float in [0, 1], default="auto"
        How much the outputs turn the components, as in `SPPCA`. 0 is kernel PCA.
    target : {"auto", "classes", "numeric", "multilabel"}, default="auto"
        What y holds, as in `SPPCA`.
    n_landmarks : int, default=None
        Number of rows that the kernel is measured against, as in `KernelFeatures`.
    noise : {"learn", "per_output"}, float or pair of floats, default="learn"
        For "likelihood": what is learnt about noise, as in `SPPCA`. A pair fixes the noise of
        the features and that of the outputs; with all rows labelled the fit is then Theorem 3
        of [1]_.
    prior : float, default=0.0
        For "likelihood": precision of a Gaussian prior on the loadings, as in `SPPCA`.
    max_iter : int, default=500
        Most iterations of "likelihood".
    tol : float, default=1e-8
        "likelihood" ends when the log likelihood changes by less than this per entry of the
        features.
    callback : callable, default=None
        ``callback(n_iter, state, objective)`` is called after every iteration of "likelihood";
        it stops the fit by returning True.
    random_state : int, RandomState instance, Generator or None, default=None
        Draws of "auto" and of the landmarks. None stands for 0, so that two fits agree.

    Attributes
    ----------
    dual_components_ : ndarray of shape (n_landmarks, n_components)
        ``transform(X)`` is ``kernel(X, landmarks) @ dual_components_ - dual_offset_``.
    dual_offset_ : ndarray of shape (n_components,)
    dual_coef_ : ndarray of shape (n_landmarks, n_outputs)
        Expected coded outputs are ``kernel(X, landmarks) @ dual_coef_ + target_mean_``, and
        for numbers those of ``number_head_`` beside them.
    latent_scale_ : ndarray of shape (n_components,)
        Coordinates times this are the latent variables z.
    latent_covariance_ : ndarray of shape (n_components, n_components)
        Posterior covariance of z given complete x.
    noise_variance_ : float
        Noise of the features; `components_` of theirs are ``kernel_components_``.
    kernel_basis_, kernel_components_ : ndarray
        For "likelihood": ``kernel(X, landmarks) @ kernel_basis_[1:] - kernel_basis_[0]`` are the
        features of rows, and these their loadings W', of shape (n_components, rank).
    target_components_ : ndarray of shape (n_components, n_outputs)
        Loadings of the coded outputs, of the completed ones unless "likelihood".
    target_noise_variance_ : ndarray of shape (n_outputs,)
    target_mean_ : ndarray of shape (n_outputs,)
    target_covariance_ : ndarray of shape (n_outputs, n_outputs)
        Covariance of the coded outputs given x, of classes as in `SPPCA`.
    log_likelihood_ : float
        For "likelihood": log likelihood of the features and outputs (less that of the prior).
    filling_ : Filling or None
        PPCA of rows with gaps in standard units, by which they are filled. None where the fit
        met no gaps; those of new rows are filled by PPCA of the landmarks.
    target_widening_ : ndarray of shape (n_outputs,)
        For "likelihood" and numbers: how much larger the variances are, as in `SPPCA`.
    target_coding_ : Coding
        How y became columns.
    class_head_ : ClassHead or None
        Logistic regression with half a say in the probabilities of classes, as in `SPPCA`.
    number_head_ : NumberHead or None
        For numbers: what is linear in x, ``(X - mean) @ coef + offset``, with a share ``say`` of
        each expected output, by which rows left out are found best. None for "likelihood" and
        where the kernel itself is linear or precomputed.
    class_shares_ : ndarray of shape (n_classes,)
    class_doubt_ : float
        Shares of the classes among the labelled rows, and how much of the probabilities is
        these, as in `SPPCA`.
    links_used_ : bool
        Where the fit had links: whether they serve the outputs, as in `SPPCA`.
    classes_ : ndarray of shape (n_classes,)
        Only where y holds classes.
    landmark_indices_, landmarks_, gamma_
        As in `KernelFeatures`.
    supervision_ : float or "likelihood"
        The strength used.
    supervision_curve_ : dict of str to ndarray
        For "auto", where there was something to try: strengths, their losses, the criterion.
    n_components_ : int
    size_scores_, size_reason_ : dict of int to float, str
        For "auto", as in `SPPCA`.
    input_share_, target_share_ : ndarray of shape (n_components,)
        Share of the energy of the features, and of the outputs, that each component explains.
    objective_ : list of float
        Log likelihood at every iteration; in closed form the energy of the components.
    n_iter_, n_features_in_, converged_ : int, int, bool

    See Also
    --------
    SPPCA : With linear components; it also draws samples and has an inverse.
    KernelFeatures : The features of the kernel, for any other linear model.

    References
    ----------
    .. [1] S. Yu, K. Yu, V. Tresp, H.-P. Kriegel and M. Wu, "Supervised probabilistic principal
       component analysis", KDD 2006, 464-473.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import make_circles
    >>> from gnomon import KernelSPPCA
    >>> X, y = make_circles(200, factor=0.4, noise=0.05, random_state=0)
    >>> few = np.where(np.arange(200) < 20, y, -1)
    >>> model = KernelSPPCA(n_components=2).fit(X, few)
    >>> float(np.mean(model.predict(X) == y))
    1.0
    """

    def __init__(
        self,
        n_components: int | str = 2,
        *,
        kernel: str | Callable[..., Any] = "rbf",
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        supervision: float | str = "auto",
        target: str = "auto",
        n_landmarks: int | None = None,
        noise: str | float | tuple[float, float] = "learn",
        prior: str | float = 0.0,
        max_iter: int = 500,
        tol: float = 1e-8,
        callback: CallbackLike = None,
        random_state: SeedLike = None,
    ) -> None:
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.supervision = supervision
        self.target = target
        self.n_landmarks = n_landmarks
        self.noise = noise
        self.prior = prior
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.random_state = random_state

    def fit(
        self,
        X: RowsLike,
        y: OutputsLike = None,
        sample_weight: ArrayLike | None = None,
        *,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
        chunks: ArrayLike | None = None,
    ) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows, or their kernel (n_samples, n_samples) where it is precomputed. NaN
            marks missing values in a dense X, not in a kernel.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Outputs. -1 or None marks rows without class, NaN missing numbers or indicators; -1
            and 1 alone are two classes.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows; a weight of two is a row that occurs twice. A precomputed
            kernel takes positive ones.
        links : Links, array-like or sparse matrix, or "neighbours", default=None
            Links among the rows, which are used where they serve the outputs, as in `SPPCA`.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row, where links has other nodes besides.
        chunks : array-like of int of shape (n_samples,), default=None
            Groups of rows that share a class, -1 for rows in none, as in `SPPCA`.

        Returns
        -------
        self : KernelSPPCA
        """
        if self.n_components == "auto":
            known = {"links": links, "sample_index": sample_index, "chunks": chunks}
            return self._fit_chosen(X, y, sample_weight=sample_weight, **known)
        features = self._checked_features()
        X = read_data(self, X, fitting=True, allow_nan=self._takes_gaps, min_samples=2)
        n = X.shape[0]
        q = check_integer("n_components", self.n_components, low=1, high=n, high_is=", the rows")
        rng = repeatable(self.random_state)
        settings = strength.Settings(q, self.supervision, False, self.max_iter, self.tol, rng)
        problem, coding = self._read_problem(X, y, sample_weight, chunks, settings)
        self._check_precomputed(problem, n, links)
        holed = has_gaps(problem.X)
        self.filling_ = filling.learn(problem.X, problem.weights) if holed else None
        if links is not None:
            problem, _ = self._joined(problem, n, links, sample_index, settings)
        problem = problem._replace(X=self._filled(problem.X))
        most = None if self.supervision == "likelihood" else n_directions(q)
        widen = _widening(problem) if self._chooses_width(problem) else None
        fit = self._fit_strength if most else self._fit_likelihood
        # Hundreds of products of this size: waking other threads takes longer than most of them.
        with one_thread if n <= MOST_EXACT else nullcontext():
            learnt = features._learn(problem.X, rng, most, problem.weights, widen)
            fit(features, learnt, problem, settings, coding)
        return self

    def fit_transform(
        self,
        X: RowsLike,
        y: OutputsLike = None,
        *,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
        **fit_params: Any,
    ) -> np.ndarray:
        """Fit the model and project its rows, with their links.

        Parameters
        ----------
        X, y, links, sample_index
            As in `fit`.
        **fit_params : dict
            ``sample_weight`` and ``chunks``.

        Returns
        -------
        T : ndarray of shape (n_samples, n_components)
        """
        graph = {"links": links, "sample_index": sample_index}
        return self.fit(X, y, **graph, **fit_params).transform(X, **graph)

    @by_rows
    def transform(
        self, X: RowsLike, *, links: GraphLike = None, sample_index: ArrayLike | None = None
    ) -> np.ndarray:
        """Coordinates of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, NaN for missing values, or their kernel with the rows of the fit where it is
            precomputed.
        links : Links, array-like or sparse matrix, default=None
            Links of the rows, as in `PRPCA.transform`: among themselves, among the rows of
            the fit and then these, or with ``sample_index`` among all nodes.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row.

        Returns
        -------
        T : ndarray of shape (n_samples, n_components)
        """
        X = self._read(X, links, sample_index)
        return self._coordinates(X).astype(X.dtype, copy=False)

    @by_rows
    def posterior(
        self,
        X: RowsLike,
        y: OutputsLike = None,
        *,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
    ) -> LatentPosterior:
        """Posterior of the coordinates of every row, given x or given x and y.

        Its mean given x is what `transform` gives. Gaps widen it: by how much the coordinates
        vary over draws of what is missing, given the rest of the row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, NaN for missing values, or their kernel with the rows of the fit where it is
            precomputed.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Outputs of the rows where they are known, coded as in `fit`.
        links : Links, array-like or sparse matrix, default=None
            Links of the rows, as in `PRPCA.transform`: among themselves, among the rows of
            the fit and then these, or with ``sample_index`` among all nodes.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row.

        Returns
        -------
        posterior : LatentPosterior
            Named tuple (mean, covariance) with arrays of shape (n_samples, n_components) and
            (n_samples, n_components, n_components).
        """
        X = self._read(X, links, sample_index)
        Y, observed = self._read_outputs(y, X.shape[0])
        model, coordinates = self._fitted(), self._coordinates
        mean = np.asarray(coordinates(X), dtype=float)
        more = self._gap_moments(X, mean.shape[1], coordinates)
        covariance = predict.coordinate_covariance(model) + more
        if not observed.any():
            return LatentPosterior(mean, covariance)
        if self.supervision_ == "likelihood":
            # Coordinates of the likelihood are the latent variables themselves.
            return LatentPosterior(
                *predict.with_outputs(model.state, mean, covariance, Y, observed)
            )
        given = self._outputs_given(X)
        return LatentPosterior(
            mean + predict.turned_by_outputs(model, given, Y, observed), covariance
        )

    @available_if(_by_likelihood)
    @by_rows
    def score_samples(self, X: RowsLike) -> np.ndarray:
        """Log density of the features of every row, as many as the kernel has rank.

        Only for "likelihood"; a strength keeps the leading features alone.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, NaN for missing values, which are filled, or their kernel.

        Returns
        -------
        log_density : ndarray of shape (n_samples,)
        """
        X = self._read(X)
        self._refuse_linked("score_samples")
        F = self._kernel_product(X, self.kernel_basis_[1:]) - self.kernel_basis_[0]
        return gaussian.log_density(as_data(F), self.kernel_components_.T, self.noise_variance_)

    @in_memory_by_rows
    def inverse_transform(self, Z: RowsLike) -> np.ndarray:
        """Refused: a point of a kernel's space has in general no row that maps to it.

        Parameters
        ----------
        Z : array-like of shape (n_samples, n_components)

        Raises
        ------
        NotImplementedError
            Always; `SPPCA` has an inverse.
        """
        raise NotImplementedError(
            "KernelSPPCA finds no pre-images: coordinates in a kernel's space have in general "
            "no row that maps to them; use SPPCA, which has an inverse_transform"
        )

    @property
    def _n_features_out(self):
        return self.dual_components_.shape[1]

    def _checked_features(self):
        """The features of the kernel, not yet fitted, once all parameters are checked."""
        check_strength(self.supervision)
        check_option("target", self.target, ("auto", *KINDS))
        check_noise(self.noise)
        check_real("prior", self.prior, low=0)
        check_integer("max_iter", self.max_iter, low=1)
        check_real("tol", self.tol, low=0)
        names = ("kernel", "gamma", "degree", "coef0", "n_landmarks")
        features = KernelFeatures(**{name: getattr(self, name) for name in names})
        features._check_parameters()
        return features

    def _chooses_width(self, problem):
        """Whether labels say how wide the kernel is."""
        free = self.kernel in left_out.OF_KERNELS and self.gamma is None
        return free and self.supervision == "auto" and problem.labels is not None

    def _check_precomputed(self, problem, n_rows, links):
        if self.kernel != "precomputed":
            return
        if links is not None:
            raise ValueError("links smooth the content of rows; a precomputed kernel has none")
        if problem.X.shape[0] < n_rows:
            raise ValueError(
                "sample_weight has zeros, and X is a precomputed kernel; leave those rows and "
                "their columns out of it"
            )

    def _fit_likelihood(self, features, learnt, problem, settings, coding):
        """SPPCA of the features: the dual form of [1]_."""
        q = settings.n_components
        rules = {"noise": check_noise(self.noise), "prior": float(self.prior)}
        limits = {"max_iter": self.max_iter, "tol": self.tol}
        of_features = problem._replace(X=learnt.F)
        settings = likelihood.Settings(q, "moments", **rules, **limits)  # type: ignore[arg-type]
        found = likelihood.fit(of_features, settings, self._loop(of_features))
        self._keep(features, found, "likelihood", coding, problem.X.dtype)
        self.number_head_ = None
        self.kernel_basis_ = np.vstack([features.offset_, features.basis_])
        self.kernel_components_ = found.state.W.T
        self.log_likelihood_ = found.log_likelihood
        self._keep_widening(*problem[:3], problem.weights, q)  # type: ignore[call-arg]
        self._keep_head(features, found, learnt.F, problem)
        self._warn_at_floor(*found.at_floor)
        self._keep_run(found.run, max_iter=self.max_iter)  # type: ignore[arg-type]

    def _fit_strength(self, features, learnt, problem, settings, coding):
        """SPPCA at a strength on the leading features."""
        space = _space(learnt, settings.n_components, settings.rng, problem.weights)
        outputs = Outputs(problem.Y, problem.observed, problem.labels, problem.chunks)
        found = strength.fit_in(space, outputs, settings)
        self._keep(features, found.fitted, found.strength, coding, problem.X.dtype)
        self._keep_head(features, found.fitted, learnt.F, problem)
        self._keep_number_head(features, space, outputs, problem, settings)
        if found.curve is not None:
            self.supervision_curve_ = found.curve._asdict()
        self._keep_run(found.run, max_iter=self.max_iter)

    def _keep(self, features, fitted, strength, coding, dtype):
        """The fit in terms of the kernel with the landmarks."""
        basis, offset = features.basis_, features.offset_
        self.n_components_ = fitted.projection.shape[1]
        self.dual_components_ = (basis @ fitted.projection).astype(dtype)
        self.dual_offset_ = (offset @ fitted.projection).astype(dtype)
        self._keep_outputs(features, fitted.outputs)
        self.latent_scale_ = fitted.latent_scale
        self.latent_covariance_ = fitted.latent_covariance
        self.noise_variance_ = float(fitted.state.sigma2)
        self.target_components_ = fitted.state.W_y.T
        self.target_noise_variance_ = fitted.state.sigma2_y
        self._output_mean, self._whitener = fitted.state.mean_y, fitted.whitener
        self.target_coding_ = coding
        self.input_share_ = fitted.input_share
        self.target_share_ = fitted.target_share
        self.supervision_ = strength
        for name in OF_KERNEL:
            if hasattr(features, name):
                setattr(self, name, getattr(features, name))
        if coding.kind == "classes":
            self.classes_ = coding.classes

    def _keep_outputs(self, features, outputs):
        """Expected outputs in terms of the kernel with the landmarks, and their covariance."""
        self.dual_coef_ = features.basis_ @ outputs.coef
        self.target_mean_ = outputs.offset - features.offset_ @ outputs.coef
        self.target_covariance_ = outputs.covariance

    def _keep_head(self, features, fitted, F, problem):
        """The head in terms of the kernel with the landmarks."""

        def coordinates(rows, wide, outputs):
            own = F.rows(rows)
            return own @ wide, own @ outputs

        self._teach_head(fitted, problem.labels, coordinates, problem.weights)
        if self.class_head_ is not None:
            coef, intercept, say = self.class_head_
            in_kernel = features.basis_ @ coef, intercept - features.offset_ @ coef
            self.class_head_ = ClassHead(*in_kernel, say)

    def _keep_number_head(self, features, of_kernel, outputs, problem, settings):
        """What is linear in x, beside what the kernel says; the covariance of both together."""
        self.number_head_ = None
        if self.target_coding_.kind == "numeric" and self.kernel not in OF_ROWS_ALREADY:
            size, rng = n_directions(settings.n_components), settings.rng
            mean, rows = center(weighted(as_data(problem.X), problem.weights))
            of_rows = principal_space(mean, rows, size, rng, leading=settings.n_components)
            self.number_head_, of_features = numbers.learn(of_kernel, of_rows, outputs)
            self._keep_outputs(features, of_features)

    def _fitted(self):
        """What predictions need of the result that the fitted attributes were kept from."""
        W_y, levels = self.target_components_.T, self.target_noise_variance_
        state = State(None, self.noise_variance_, W_y, levels, self._output_mean)  # type: ignore[arg-type]
        latent = self.latent_scale_, self.latent_covariance_
        outputs = likelihood.Prediction(self.dual_coef_, self.target_mean_, self.target_covariance_)
        shares = self.input_share_, self.target_share_
        parts = None, state, self.dual_components_, *latent, outputs, self._whitener, *shares
        return likelihood.SppcaFit(*parts)  # type: ignore[arg-type]

    def _kernel_with_landmarks(self, X):
        return super()._kernel_with_landmarks(self._filled(X))

    def _filling(self):
        if getattr(self, "filling_", None) is None and self._has_rows():
            return filling.learn(self.landmarks_)
        return super()._filling()

    def _can_fill(self):
        return super()._can_fill() or self._has_rows()

    def _has_rows(self):
        return isinstance(getattr(self, "landmarks_", None), np.ndarray)

    @property
    def _takes_gaps(self):  # type: ignore[override]
        return self.kernel != "precomputed"

    def _log_densities(self, X):
        if self.supervision_ != "likelihood":
            raise ValueError(
                "y is None, and the score is then a log density, which KernelSPPCA has for "
                f"supervision='likelihood' alone; supervision == {self.supervision!r}"
            )
        return self.score_samples(X)

    def _placed(self, X, coef=None):
        rows, c = self._filled(X), self.dual_coef_.shape[1]
        both = self.dual_coef_ if coef is None else np.hstack([self.dual_coef_, coef])
        found, covariances = self._kernel_product(rows, both), self.target_covariance_[None]
        mean, pattern = self._expected(rows, found[:, :c]), np.zeros(len(found), dtype=int)
        if has_gaps(X):
            more = self._gap_moments(X, c, self._expected)
            covariances, pattern = covariances + more, np.arange(len(found))
        return predict.Given(mean, covariances, pattern), None if coef is None else found[:, c:]

    def _coordinates(self, X):
        return self._kernel_product(X, self.dual_components_) - self.dual_offset_

    def _expected(self, X, by_kernel=None):
        """Expected coded outputs of rows without gaps, given what the kernel says of them."""
        by_kernel = self._kernel_product(X, self.dual_coef_) if by_kernel is None else by_kernel
        by_kernel = by_kernel + self.target_mean_
        # Model files of early versions have none.
        head = getattr(self, "number_head_", None)
        return by_kernel if head is None else numbers.expected(head, X, by_kernel)

    def _gap_moments(self, X, k, values_of):
        """Second moments (n, k, k) of values of rows over what they may miss, about the filled."""
        total = np.zeros((X.shape[0], k, k))
        if has_gaps(X):
            rows = np.flatnonzero(np.isnan(X).any(axis=1))
            drawn = filling.draws(self._filling(), X[rows], N_DRAWS, np.random.default_rng(0))
            center = values_of(self._filled(X[rows]))
            total[rows] = filling.second_moments(map(values_of, drawn), center)
        return total


class Widening(NamedTuple):
    """Numbers of labelled rows that judge a width, and the factor on it that they ask for."""

    rows: np.ndarray
    factor: Callable[..., float]


def _widening(problem):
    """What judges the width of the kernel of a problem; None where there are too few labels."""
    rows = left_out.judging_rows(problem.labels)
    return Widening(rows, partial(_best_power, problem, rows)) if len(rows) else None


def _best_power(problem, rows, kernel, judging):
    """By which factor the width of the kernel is multiplied, for labelled rows of a problem."""
    some = as_data(judging)
    X = some.X if isinstance(some, Matrix) else some.as_array()
    weights = np.ones(len(rows)) if problem.weights is None else problem.weights[rows]
    known = Outputs(problem.Y, problem.observed, problem.labels).rows(rows)
    return left_out.best_power(kernel.with_landmarks(X, None, X), known, weights)


def _space(learnt, q, rng, weights):
    """The leading features as a principal space; exact ones are principal already."""
    data, mean = learnt.F, np.zeros(learnt.F.n_features)
    if isinstance(data, Mapped):
        space = principal_space(mean, data, n_directions(q), rng, way="moments")
        return space._replace(weights=weights)
    if learnt.energies is None:
        return principal_space(*center(weighted(data, weights)), n_directions(q), rng, leading=q)
    n, rank = learnt.F.shape
    n = n if weights is None else weights.sum()
    axes, variances = np.eye(rank, min(rank, n_directions(q))), learnt.energies / n
    variances = variances[: axes.shape[1]]
    return PrincipalSpace(mean, data, axes, variances, learnt.total / n, weights)
