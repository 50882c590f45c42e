"""A peer of gnomon's models that scikit-learn has in another form; `gnomon.compare` takes it."""

from typing import Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.cross_decomposition import PLSRegression
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import check_is_fitted

from gnomon.typing import OutputsLike, RowsLike


class PLSDiscriminant(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Partial least squares on indicator columns of the classes, known as PLS-DA.

    Parameters
    ----------
    n_components : int, default=2
        Number of components.

    Attributes
    ----------
    pls_ : PLSRegression
        The fitted regression on the indicators.

    See Also
    --------
    gnomon.compare : Which projection suits this data.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gnomon.peers import PLSDiscriminant
    >>> X, y = load_iris(return_X_y=True)
    >>> PLSDiscriminant().fit(X, y).transform(X).shape
    (150, 2)
    """

    def __init__(self, n_components: int | str = 2) -> None:
        self.n_components = n_components

    def fit(self, X: RowsLike, y: OutputsLike) -> Self:
        """Regress the indicators of the classes on X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs without gaps.
        y : array-like of shape (n_samples,)
            Classes; wrap it in `gnomon.LabelledOnly` where some rows have none.

        Returns
        -------
        self : PLSDiscriminant
            Fitted.
        """
        indicators = LabelBinarizer().fit_transform(y).astype(float)
        self.pls_ = PLSRegression(self.n_components, scale=False).fit(X, indicators)
        self._n_features_out = self.n_components
        return self

    def transform(self, X: RowsLike) -> np.ndarray:
        """Coordinates of the rows of X.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs without gaps.

        Returns
        -------
        Z : ndarray of shape (n_samples, n_components)
            Coordinates.
        """
        check_is_fitted(self)
        return np.asarray(self.pls_.transform(X))
