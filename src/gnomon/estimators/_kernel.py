"""The kernel of an estimator: its parameters, landmarks, and features of rows.

An estimator has the parameters ``kernel``, ``gamma``, ``degree``, ``coef0`` and ``n_landmarks``.
"""

from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.metrics.pairwise import pairwise_kernels

from gnomon.estimators._door import check_integer, check_option, check_real, take_rows
from gnomon.exceptions import NumericalError
from gnomon.linalg.data import Data, as_data
from gnomon.linalg.kernels import FeatureMap, default_gamma, exact_map, features, nystrom_map

KERNELS = ("linear", "rbf", "poly", "sigmoid", "cosine", "laplacian", "precomputed")
WITH_GAMMA = ("rbf", "poly", "sigmoid", "laplacian")
# Up to so many rows the whole kernel matrix is used; beyond, so many landmarks.
MOST_EXACT = 2000
LANDMARKS = 1000


class Features(NamedTuple):
    """The feature map, the features of the rows, and their energies where they are known."""

    map: FeatureMap
    F: np.ndarray
    energies: np.ndarray | None


class KernelRows:
    """Rows seen through their kernel with the landmarks."""

    def _check_kernel(self):
        if not callable(self.kernel):
            check_option("kernel", self.kernel, KERNELS)
        check_kernel_numbers(self)

    def _choose_gamma(self, X):
        if self.kernel not in WITH_GAMMA or self.gamma is not None:
            return self.gamma
        return default_gamma(self.kernel, as_data(X))

    def _choose_landmarks(self, X, rng):
        n = X.shape[0]
        if self.kernel == "precomputed" and isinstance(X, Data):
            raise ValueError("X is in blocks; kernel == 'precomputed' accepts a matrix in memory")
        if self.kernel == "precomputed" and X.shape[1] != n:
            raise ValueError(
                f"X has shape {X.shape}; kernel == 'precomputed' accepts a square matrix in fit"
            )
        size = n if n <= MOST_EXACT else LANDMARKS
        if self.n_landmarks is not None:
            size = check_integer("n_landmarks", self.n_landmarks, low=1)
        return np.arange(n) if size >= n else np.sort(rng.choice(n, size, replace=False))

    def _kernel(self, A, B, gamma):
        if isinstance(A, Data):
            return np.concatenate([self._kernel(rows, B, gamma) for rows in A.dense_blocks()])
        if callable(self.kernel):
            return np.asarray(self.kernel(A, B), dtype=float)
        parameters = {"gamma": gamma, "degree": self.degree, "coef0": self.coef0}
        K = pairwise_kernels(A, B, metric=self.kernel, filter_params=True, **parameters)
        return _dense(K)

    def _features(self, X, index, gamma):
        if self.kernel == "precomputed":
            K = _dense(X)[:, index]
        else:
            K = self._kernel(X, take_rows(X, index), gamma)
        try:
            if len(index) < X.shape[0]:
                found = nystrom_map(K[index], K)
                return Features(found, features(found, K), None)
            found, energies = exact_map(K)
        except NumericalError as error:
            raise ValueError(f"X cannot be used with kernel == {self.kernel!r}: {error}") from error
        return Features(found, found.basis * energies, energies)

    def _keep_kernel(self, X, index, gamma):
        for name in ("gamma_", "landmarks_"):
            vars(self).pop(name, None)
        self.landmark_indices_ = index
        if self.kernel != "precomputed":
            self.landmarks_ = take_rows(X, index)
        if self.kernel in WITH_GAMMA:
            self.gamma_ = float(gamma)

    def _kernel_with_landmarks(self, X):
        if self.kernel == "precomputed":
            return _dense(X[:, self.landmark_indices_])
        return self._kernel(X, self.landmarks_, getattr(self, "gamma_", None))


def check_kernel_numbers(model):
    """Raise where a parameter of the kernel is no number, or one out of range."""
    if model.gamma is not None:
        check_real("gamma", model.gamma, low=0, open_low=True)
    check_integer("degree", model.degree, low=1)
    check_real("coef0", model.coef0)


def _dense(K):
    return np.asarray(K.toarray() if sparse.issparse(K) else K, dtype=float)
