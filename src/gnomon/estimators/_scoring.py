"""The score of models whose y may have gaps: rows without a label say nothing of them."""

from functools import partial

import numpy as np
from scipy import sparse

from gnomon.estimators._door import take_rows
from gnomon.estimators._targets import UNLABELLED, labelled_rows, plain_labels


class LabelledScore:
    """``score`` of a classifier over the rows that have a label."""

    def score(self, X, y, sample_weight=None):
        """Accuracy on the rows that have a label.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
            Classes as in `fit`; rows without one do not count.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        return _score_known(super().score, X, y, sample_weight, partial(scored_rows, self))


class KnownScore:
    """``score`` of a regressor over the rows whose outputs are all known."""

    def score(self, X, y, sample_weight=None):
        """Coefficient of determination on the rows without a gap in y.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Numbers; rows with NaN do not count.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        return _score_known(super().score, X, y, sample_weight, _complete_rows)


def scored_rows(model, y) -> np.ndarray:
    """Mask of the rows with a label; where -1 is a class of the fit, it is one here as well."""
    known = labelled_rows(y)
    is_class = UNLABELLED in np.asarray(getattr(model, "classes_", ())).tolist()
    return known | (np.asarray(y) == UNLABELLED) if is_class else known


def _complete_rows(y):
    return ~np.isnan(y.astype(float)).reshape(len(y), -1).any(axis=1)


def _score_known(score, X, y, sample_weight, known):
    if sparse.issparse(y):
        return score(X, y, sample_weight)
    y = y.to_numpy() if hasattr(y, "to_numpy") else np.asarray(y)
    keep = known(y)
    if keep.all():
        return score(X, y, sample_weight)
    if not keep.any():
        raise ValueError("y has no labelled row; at least one is needed for a score")
    weights = None if sample_weight is None else np.asarray(sample_weight)[keep]
    return score(take_rows(X, keep), plain_labels(y[keep]), weights)
