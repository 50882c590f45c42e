"""Scores where y may have gaps: over the labelled rows, since the others cannot be scored."""

import numpy as np

from gnomon.estimators._door import take_rows
from gnomon.estimators._targets import as_array, labelled_rows, plain_labels


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
        keep = labelled_rows(y, classes=self.classes_)
        return _score_labelled(super().score, X, y, sample_weight, keep)


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
        keep = labelled_rows(y, kind="numeric")
        return _score_labelled(super().score, X, y, sample_weight, keep)


def labelled_part(X, y, keep):
    """X and y of the labelled rows; y in a dtype by which scikit-learn knows what it holds."""
    return X if keep.all() else take_rows(X, keep), plain_labels(as_array(y)[keep])


def labelled_weights(params, keep) -> dict:
    """Parameters of a fit or of a score, with the weights of the labelled rows alone."""
    weights = params.get("sample_weight")
    if weights is None or np.shape(weights) != keep.shape:
        return params
    return params | {"sample_weight": np.asarray(weights)[keep]}


def _score_labelled(score, X, y, sample_weight, keep):
    if not keep.any():
        raise ValueError("y has no labelled row; at least one is needed for a score")
    weights = labelled_weights({"sample_weight": sample_weight}, keep)
    return score(*labelled_part(X, y, keep), **weights)
