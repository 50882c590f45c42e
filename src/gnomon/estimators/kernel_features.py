"""Features of a kernel, after which any linear model is one in the space of the kernel."""

from collections.abc import Callable
from typing import Any, NamedTuple, Self

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.metrics.pairwise import pairwise_kernels

from gnomon.estimators._door import (
    TakesRows,
    by_rows,
    check_integer,
    check_option,
    check_real,
    read_data,
    repeatable,
    take_rows,
)
from gnomon.exceptions import NumericalError
from gnomon.linalg.data import Data, as_data, row_slices, weighted
from gnomon.linalg.foreign import in_form_of
from gnomon.models import kernel as kernels
from gnomon.typing import OutputsLike, RowsLike, SeedLike

KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed")
# Those that have no negative energy, whatever the rows and the parameters.
DEFINITE = ("linear", "rbf", "cosine", "laplacian")
# Those whose centred values stay the same where all rows are moved.
SHIFT_FREE = ("linear", "rbf")
WITH_GAMMA = ("rbf", "poly", "sigmoid", "laplacian")
# Of the largest entry of a kernel: more than rounding in single precision makes of symmetry.
ASYMMETRY = 1e-4


class Kernel(NamedTuple):
    """A kernel and its parameters; its values are scikit-learn's, or those of a function."""

    kernel: str | Callable
    gamma: float | None
    degree: int
    coef0: float

    def with_landmarks(self, X: RowsLike, index: Any, landmarks: Any) -> np.ndarray:
        """Kernel (n, m) of rows with landmarks; of a precomputed one the columns of ``index``."""
        if self.kernel == "precomputed":
            return _dense(X[:, index])
        blocks, B = X.dense_blocks() if isinstance(X, Data) else [X], _rows(landmarks)
        mean = kernels.far_mean(as_data(B)) if self.kernel in SHIFT_FREE else None
        if mean is not None:
            B, blocks = _dense(B) - mean, (_dense(rows) - mean for rows in blocks)
        K = [self._values(_rows(rows), B) for rows in blocks]
        return K[0] if len(K) == 1 else np.concatenate(K)

    def _values(self, A, B):
        if callable(self.kernel):
            return np.asarray(self.kernel(A, B), dtype=float)
        parameters = {"gamma": self.gamma, "degree": self.degree, "coef0": self.coef0}
        return _dense(pairwise_kernels(A, B, metric=self.kernel, filter_params=True, **parameters))


class MeasuredByKernel(TakesRows, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Sees rows by their kernel with landmarks."""

    def __sklearn_tags__(self):
        """A precomputed kernel has a column for every row."""
        tags = super().__sklearn_tags__()
        tags.input_tags.pairwise = self.kernel == "precomputed"
        return tags

    def _kernel(self):
        return Kernel(self.kernel, getattr(self, "gamma_", None), self.degree, self.coef0)

    def _kernel_with_landmarks(self, X):
        kernel = self._kernel()
        landmarks = getattr(self, "landmarks_", None)
        return kernel.with_landmarks(X, self.landmark_indices_, landmarks)

    def _kernel_product(self, X, coef):
        """The kernel of rows with the landmarks times coef (m, k), some rows at a time."""
        if self.kernel == "precomputed" or (sparse.issparse(X) and not isinstance(X, Data)):
            return self._kernel_with_landmarks(X) @ coef
        none = kernels.FeatureMap(coef, np.zeros(coef.shape[1]))
        return kernels.Mapped(as_data(X), self._kernel_with_landmarks, none).as_array()


class KernelFeatures(MeasuredByKernel):
    """Features whose products are the values of a kernel, centred on the rows of the fit.

    A linear model of these features is that model in the space of the kernel, and not linear in
    x. Up to 2000 rows the features are exact, the principal components of that space; beyond,
    or where ``n_landmarks`` says so, they are a Nystrom approximation by randomly chosen rows.

    Parameters
    ----------
    kernel : str or callable, default="rbf"
        "linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed", or a function
        of two matrices of rows that returns the matrix of their kernel, such as the kernels of
        `sklearn.gaussian_process`. With "precomputed" X is the kernel of the rows with the
        rows of the fit.
    gamma : float, default=None
        Width of "rbf", "laplacian", "poly" and "sigmoid". None stands for one over the mean
        squared distance of two rows for "rbf", over their mean absolute distance for
        "laplacian", and over the mean squared length of a row for the others.
    degree : int, default=3
        Degree of "poly".
    coef0 : float, default=1.0
        Constant term of "poly" and "sigmoid".
    n_landmarks : int, default=None
        Number of rows that the kernel is measured against. None is all of them up to 2000
        rows, and 1000 beyond.
    random_state : int, RandomState instance, Generator or None, default=None
        Draws of the landmarks. None stands for 0, so that two fits agree.

    Attributes
    ----------
    basis_ : ndarray of shape (n_landmarks, n_features_out)
        ``transform(X)`` is ``kernel(X, landmarks) @ basis_ - offset_``. There are as many
        features as the rank of the kernel of the landmarks.
    offset_ : ndarray of shape (n_features_out,)
    energies_ : ndarray of shape (n_features_out,)
        Squared lengths of the features over the rows of the fit, descending; only where all
        rows are landmarks.
    landmark_indices_ : ndarray of shape (n_landmarks,)
        Rows of the fit that are landmarks.
    landmarks_ : {ndarray, sparse array} of shape (n_landmarks, n_features)
        These rows, unless the kernel is precomputed.
    gamma_ : float
        The width used, for the kernels that have one.
    n_features_in_ : int
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Only where X has column names.

    See Also
    --------
    KernelSPPCA : Supervised components of these features, with predictions.
    sklearn.kernel_approximation.Nystroem : Landmarks too; not centred, never exact.

    Notes
    -----
    The lengths of the features say how much each of them matters. A model that follows should
    not standardise its columns: those of little energy, which are many, would become as long as
    all others.

    Examples
    --------
    >>> from sklearn.datasets import make_circles
    >>> from sklearn.pipeline import make_pipeline
    >>> from gnomon import BSDR, KernelFeatures
    >>> X, y = make_circles(100, factor=0.4, noise=0.05, random_state=0)
    >>> linear = BSDR(prior="column", standardize=False, random_state=0)
    >>> model = make_pipeline(KernelFeatures(), linear).fit(X, y)
    >>> model.score(X, y)
    1.0
    """

    _kept_last = "basis_"

    def __init__(
        self,
        kernel: str | Callable[..., Any] = "rbf",
        *,
        gamma: float | None = None,
        degree: float = 3,
        coef0: float = 1.0,
        n_landmarks: int | None = None,
        random_state: SeedLike = None,
    ) -> None:
        self.kernel = kernel
        self.gamma = gamma
        self.degree = degree
        self.coef0 = coef0
        self.n_landmarks = n_landmarks
        self.random_state = random_state

    def fit(self, X: RowsLike, y: OutputsLike = None) -> Self:
        """Find the features of the rows.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Training rows, or their kernel (n_samples, n_samples) where it is precomputed.
        y : None
            Ignored.

        Returns
        -------
        self : KernelFeatures
        """
        self._fit(X)
        return self

    def _fit(self, X):
        self._check_parameters()
        X = read_data(self, X, fitting=True, allow_nan=False, min_samples=2)
        return self._learn(X, repeatable(self.random_state)).F, X.dtype

    def fit_transform(self, X: RowsLike, y: OutputsLike = None) -> np.ndarray:
        """Find the features of the rows, and return them.

        Parameters
        ----------
        X, y
            As in `fit`.

        Returns
        -------
        F : ndarray of shape (n_samples, n_features_out)
        """
        F, dtype = self._fit(X)
        if F.is_elsewhere:
            return self.transform(X)
        return in_form_of(X, F.as_array().astype(dtype, copy=False))

    @by_rows
    def transform(self, X: RowsLike) -> np.ndarray:
        """Features of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
            Rows, or their kernel with the rows of the fit where it is precomputed.

        Returns
        -------
        F : ndarray of shape (n_samples, n_features_out)
        """
        X = self._read(X)
        return (self._kernel_product(X, self.basis_) - self.offset_).astype(X.dtype, copy=False)

    @property
    def _n_features_out(self):
        return self.basis_.shape[1]

    def _check_parameters(self):
        if not callable(self.kernel):
            check_option("kernel", self.kernel, KERNELS)
        if self.gamma is not None:
            check_real("gamma", self.gamma, low=0, open_low=True)
        check_integer("degree", self.degree, low=1)
        check_real("coef0", self.coef0)
        if self.n_landmarks is not None:
            check_integer("n_landmarks", self.n_landmarks, low=1)

    def _learn(self, X, rng, most=None, weights=None, widen=None):
        """Features of the rows in float64; what `transform` needs is kept.

        The ``most`` leading ones are enough where they are given and the kernel is positive
        definite, so that its trace is the energy of all. ``widen`` judges a width that is not a
        parameter, once this is known.
        """
        self.landmark_indices_ = kernels.choose_landmarks(X.shape[0], self.n_landmarks, rng)
        if self.kernel == "precomputed":
            _check_square(X)
        try:
            # Numbers out of range are found by what they lead to, and named.
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                judging = self._find_width(X, weights, None if widen is None else widen.rows)
                if widen is not None:
                    self.gamma_ *= widen.factor(self._kernel(), judging)
                found = self._find(X, most if self.kernel in DEFINITE else None, weights)
        except NumericalError as error:
            raise ValueError(f"X cannot be used with kernel == {self.kernel!r}: {error}") from error
        self.basis_, self.offset_ = found.map
        if found.energies is not None:
            self.energies_ = found.energies
        return found

    def _find_width(self, X, weights, beside=None):
        """The landmarks and the width of the kernel; returns the rows beside, read with them."""
        index = self.landmark_indices_
        elsewhere = isinstance(X, Data) and X.is_elsewhere
        if isinstance(X, Data) and not elsewhere and self.kernel == "rbf" and self.gamma is None:
            every = index if beside is None else np.union1d(index, beside)
            rows, self.gamma_ = kernels.landmarks_and_gamma(X, every, weights)
            self.landmarks_ = rows[np.searchsorted(every, index)]
            return None if beside is None else rows[np.searchsorted(every, beside)]
        if self.kernel != "precomputed":
            self.landmarks_ = take_rows(X, index)
        if self.kernel in WITH_GAMMA:
            counted = weighted(X, weights)
            self.gamma_ = float(self.gamma or kernels.default_gamma(self.kernel, counted))
        return None if beside is None else take_rows(X, beside)

    def _find(self, X, most, weights):
        """The features by the kernel at its width."""
        index, elsewhere = self.landmark_indices_, isinstance(X, Data) and X.is_elsewhere
        if len(index) == X.shape[0] or self.kernel == "precomputed":
            return kernels.fit_features(self._kernel_with_landmarks(X), index, most, weights)
        return self._by_landmarks(X, elsewhere, weights)

    def _by_landmarks(self, X, elsewhere, weights):
        """Features where the rows are, anew whenever they are asked for, or kept where few."""
        values, index = self._kernel_with_landmarks, self.landmark_indices_
        if elsewhere:
            K = X.mapped(values, len(index))
            return kernels.distant_features(K, values(self.landmarks_), weights)
        if len(index) * X.shape[0] > kernels.KEPT_ENTRIES:
            return kernels.map_features(as_data(X), values, values(self.landmarks_), weights)
        return kernels.fit_features(values(X), index, None, weights)


def _check_square(X):
    """Raise where X cannot be the kernel of its rows with each other."""
    if isinstance(X, Data):
        raise ValueError("X is in blocks; kernel == 'precomputed' accepts a matrix in memory")
    if X.shape[0] != X.shape[1]:
        raise ValueError(
            f"X has shape {X.shape}; kernel == 'precomputed' accepts a square matrix in fit"
        )
    by_rows = [abs(X[rows] - X[:, rows].T).max() for rows in row_slices(X.shape)]
    if max(by_rows) > ASYMMETRY * abs(X).max():
        raise ValueError(
            f"X differs from its transpose by up to {max(by_rows):.3g}; kernel == 'precomputed' "
            "accepts a symmetric matrix in fit, the kernel of all rows with each other"
        )


def _rows(X):
    """Rows in double precision, so that rounding adds no features; repeated entries are summed."""
    data: Any = as_data(X)
    rows, is_thin = data.X.astype(float, copy=False), sparse.issparse(data.X)
    if not is_thin or rows.indices.dtype == np.int32 or rows.nnz > np.iinfo(np.int32).max:
        return rows
    # scikit-learn's distances of sparse rows take short indices only.
    index = rows.indices.astype(np.int32), rows.indptr.astype(np.int32)
    return type(rows)((rows.data, *index), shape=rows.shape)


def _dense(K):
    return np.asarray(K.toarray() if hasattr(K, "toarray") else K, dtype=float)
