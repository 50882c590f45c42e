"""Scores where y may have gaps: over the labelled rows, since the others cannot be scored."""

import numpy as np
from sklearn.base import is_regressor
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators._door import take_rows
from gnomon.estimators._targets import as_array, labelled_rows, plain_labels


class LabelledScore:
    """``score`` over the rows that have a label, or numbers for all outputs."""

    def score(self, X, y, sample_weight=None):
        """Accuracy, or coefficient of determination of numbers, on the rows with known outputs.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            Outputs as in `fit`; rows without a class, or with NaN, do not count.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        kind, classes = ("numeric", ()) if is_regressor(self) else ("auto", self.classes_)
        keep = labelled_rows(y, kind, classes)
        if not keep.any():
            raise ValueError("y has no labelled row; at least one is needed for a score")
        weights = labelled_weights({"sample_weight": sample_weight}, keep)
        return super().score(*labelled_part(X, y, keep), **weights)


class PredictsLabels(LabelledScore):
    """``predict`` of a classifier that has probabilities, and ``score``."""

    def predict(self, X):
        """Most probable class of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)

        Returns
        -------
        y : ndarray of shape (n_samples,)
        """
        best = np.argmax(self.predict_proba(X), axis=1)
        return self.classes_[best]


class ScoresOutputs:
    """``score`` of a model whose outputs may be classes, numbers or indicators."""

    def score(self, X, y=None, sample_weight=None):
        """Accuracy, or coefficient of determination of numbers, on the rows with known outputs.

        The log density of rows has a name of its own, `score_samples`.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
            Outputs as in `fit`; rows without a class, or with NaN, do not count. A row of
            indicators counts as right where all of them are. Without y, and of a model that
            was fitted without it, the score is the average log density of the rows.
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        score : float
        """
        check_is_fitted(self)
        kind = self.target_coding_.kind
        if y is None or kind == "none":
            return float(np.average(self._log_densities(X), weights=sample_weight))
        keep = labelled_rows(y, kind, getattr(self, "classes_", ()))
        if not keep.any():
            raise ValueError("y has no labelled row; at least one is needed for a score")
        weights = labelled_weights({"sample_weight": sample_weight}, keep)
        rows, truth = labelled_part(X, y, keep)
        measure = r2_score if kind == "numeric" else accuracy_score
        return float(measure(truth, self.predict(rows), **weights))

    def _log_densities(self, X):
        raise ValueError(f"y is None; the score of {type(self).__name__} needs outputs")


def labelled_part(X, y, keep):
    """X and y of the labelled rows; y in a dtype by which scikit-learn knows what it holds."""
    return X if keep.all() else take_rows(X, keep), plain_labels(as_array(y)[keep])


def labelled_weights(params, keep) -> dict:
    """Parameters of a fit or of a score, with the weights of the labelled rows alone."""
    weights = params.get("sample_weight")
    if weights is None or np.shape(weights) != keep.shape:
        return params
    return params | {"sample_weight": np.asarray(weights)[keep]}
