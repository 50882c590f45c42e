"""Supervised probabilistic PCA in the space of a kernel."""

import numpy as np

from gnomon.estimators._door import (
    check_integer,
    check_option,
    check_real,
    check_strength,
    read_data,
    repeatable,
)
from gnomon.estimators._fit import IterativeFit
from gnomon.estimators._predict import ClassHead, PredictsOutputs
from gnomon.estimators._targets import KINDS, read_targets
from gnomon.estimators.chunks import share_targets
from gnomon.estimators.kernel_features import KernelFeatures, MeasuredByKernel
from gnomon.estimators.links import TakesLinks
from gnomon.estimators.selection import ChoosesSize
from gnomon.linalg.data import Matrix, center
from gnomon.models.sppca import fit as likelihood
from gnomon.models.sppca.predict import Given
from gnomon.models.strength import fit as strength
from gnomon.models.strength.closed_form import PrincipalSpace, n_directions, principal_space
from gnomon.models.strength.completion import Outputs

OF_KERNEL = ("landmark_indices_", "landmarks_", "gamma_")


class KernelSPPCA(ChoosesSize, TakesLinks, PredictsOutputs, IterativeFit, MeasuredByKernel):
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
        The kernel and its parameters, as in `KernelFeatures`.
    supervision : "auto", "likelihood" or float in [0, 1], default="auto"
        How much the outputs turn the components, as in `SPPCA`. 0 is kernel PCA.
    target : {"auto", "classes", "numeric", "multilabel"}, default="auto"
        What y holds, as in `SPPCA`.
    n_landmarks : int, default=None
        Number of rows that the kernel is measured against, as in `KernelFeatures`.
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
        Expected coded outputs are ``kernel(X, landmarks) @ dual_coef_ + target_mean_``.
    target_mean_ : ndarray of shape (n_outputs,)
    target_covariance_ : ndarray of shape (n_outputs, n_outputs)
        Covariance of the coded outputs given x.
    target_widening_ : ndarray of shape (n_outputs,)
        For "likelihood" and numbers: how much larger the variances are, as in `SPPCA`.
    target_coding_ : Coding
        How y became columns.
    class_head_ : ClassHead or None
        Logistic regression with half a say in the probabilities of classes, as in `SPPCA`.
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
    SPPCA : With linear components; it also has densities, samples and fills gaps.
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
        n_components=2,
        *,
        kernel="rbf",
        gamma=None,
        degree=3,
        coef0=1.0,
        supervision="auto",
        target="auto",
        n_landmarks=None,
        max_iter=500,
        tol=1e-8,
        callback=None,
        random_state=None,
    ):
        self.n_components = n_components
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.supervision = supervision
        self.target = target
        self.n_landmarks = n_landmarks
        self.max_iter = max_iter
        self.tol = tol
        self.callback = callback
        self.random_state = random_state

    def fit(self, X, y=None, *, links=None, sample_index=None, chunks=None):
        """Fit the model.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows, or their kernel (n_samples, n_samples) where it is precomputed.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Outputs. -1 or None marks rows without class, NaN missing numbers or indicators.
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
            return self._fit_chosen(X, y, **known)
        features = self._checked_features()
        X = read_data(self, X, fitting=True, allow_nan=False, min_samples=2)
        n = X.shape[0]
        q = check_integer("n_components", self.n_components, low=1, high=n, high_is=", the rows")
        rng = repeatable(self.random_state)
        settings = strength.Settings(q, self.supervision, False, self.max_iter, self.tol, rng)
        targets, chunks = share_targets(read_targets(y, n, self.target), chunks, X, None, settings)
        if links is not None:
            if self.kernel == "precomputed":
                raise ValueError("links smooth the content of rows; a precomputed kernel has none")
            X = self._join(X, targets, None, links, sample_index, settings)
        all_count = self.supervision == "likelihood"
        learnt = features._learn(X, rng, None if all_count else n_directions(q))
        F = learnt.F
        if all_count:
            found = self._fit_likelihood(F, targets, q)
            self._keep(features, found, "likelihood", targets.coding, X.dtype)
            self._keep_widening(X, *targets[:2], None, q)
            self._keep_head(features, found, F, targets.labels)
        else:
            space = _space(learnt, q, rng)
            outputs = Outputs(targets.Y, targets.observed, targets.labels, chunks)
            found = strength.fit_in(space, outputs, settings)
            self._keep(features, found.fitted, found.strength, targets.coding, X.dtype)
            self._keep_head(features, found.fitted, F, targets.labels)
            if found.curve is not None:
                self.supervision_curve_ = found.curve._asdict()
        self._keep_run(found.run, max_iter=self.max_iter)
        return self

    def fit_transform(self, X, y=None, *, links=None, sample_index=None, chunks=None):
        """Fit the model and project its rows, with their links.

        Parameters
        ----------
        X, y, links, sample_index, chunks
            As in `fit`.

        Returns
        -------
        T : ndarray of shape (n_samples, n_components)
        """
        graph = {"links": links, "sample_index": sample_index}
        return self.fit(X, y, chunks=chunks, **graph).transform(X, **graph)

    def transform(self, X, *, links=None, sample_index=None):
        """Coordinates of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, or their kernel with the rows of the fit where it is precomputed.
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
        K, dtype = self._kernel_with_landmarks(X), X.dtype
        return (K @ self.dual_components_ - self.dual_offset_).astype(dtype, copy=False)

    def inverse_transform(self, Z):
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
        check_integer("max_iter", self.max_iter, low=1)
        check_real("tol", self.tol, low=0)
        names = ("kernel", "gamma", "degree", "coef0", "n_landmarks")
        features = KernelFeatures(**{name: getattr(self, name) for name in names})
        features._check_parameters()
        return features

    def _fit_likelihood(self, F, targets, q):
        """SPPCA of the features: the dual form of [1]_."""
        Y, observed, _, labels = targets
        settings = likelihood.Settings(q, "moments", max_iter=self.max_iter, tol=self.tol)
        problem = likelihood.Problem(F, Y, observed, labels)
        return likelihood.fit(problem, settings, self._loop(problem))

    def _keep(self, features, fitted, strength, coding, dtype):
        """The fit in terms of the kernel with the landmarks."""
        basis, offset = features.basis_, features.offset_
        self.n_components_ = fitted.projection.shape[1]
        coef, target_mean, covariance, _ = fitted.outputs
        self.dual_components_ = (basis @ fitted.projection).astype(dtype)
        self.dual_offset_ = (offset @ fitted.projection).astype(dtype)
        self.dual_coef_ = basis @ coef
        self.target_mean_ = target_mean - offset @ coef
        self.target_covariance_ = covariance
        self.target_coding_ = coding
        self.input_share_ = fitted.input_share
        self.target_share_ = fitted.target_share
        self.supervision_ = strength
        for name in OF_KERNEL:
            if hasattr(features, name):
                setattr(self, name, getattr(features, name))
        if coding.kind == "classes":
            self.classes_ = coding.classes

    def _keep_head(self, features, fitted, F, labels):
        """The head in terms of the kernel with the landmarks."""
        self._teach_head(fitted, labels, lambda rows, wide: F[rows] @ wide)
        if self.class_head_ is not None:
            coef, intercept = self.class_head_
            in_kernel = features.basis_ @ coef, intercept - features.offset_ @ coef
            self.class_head_ = ClassHead(*in_kernel)

    def _placed(self, X, coef=None):
        K = self._kernel_with_landmarks(X)
        mean = K @ self.dual_coef_ + self.target_mean_
        given = Given(mean, self.target_covariance_[None], np.zeros(len(K), dtype=int))
        return given, None if coef is None else K @ coef


def _space(learnt, q, rng):
    """The leading features as a principal space; exact ones are principal already."""
    if learnt.energies is None:
        return principal_space(*center(Matrix(learnt.F)), n_directions(q), rng, leading=q)
    n, rank = learnt.F.shape
    axes, variances = np.eye(rank, min(rank, n_directions(q))), learnt.energies / n
    data, variances = Matrix(learnt.F), variances[: axes.shape[1]]
    return PrincipalSpace(np.zeros(rank), data, axes, variances, learnt.total / n)
