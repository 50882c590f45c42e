"""What models say of y, and how well: predictions, probabilities, scores over labelled rows.

Probabilities of classes are the mean of two: those of the model itself, and those of a logistic
regression on a map, the head. Each is too sure where the other is not: with few labels the mean
has the lower log loss (`benchmarks/calibration.py`).
"""

from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.base import is_regressor
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators._door import take_rows
from gnomon.estimators._targets import (
    as_array,
    contrasts,
    decode_predictions,
    labelled_rows,
    plain_labels,
)
from gnomon.linalg.solve import one_thread
from gnomon.models.sppca.predict import class_log_odds, widening

# Labelled rows that show how wide predictions are: so many know a variance to some percent.
MOST_SHOWING = 10_000
# Labelled rows that a head learns from: some hundred coefficients are certain long before.
MOST_TAUGHT = 5000
# Inverse penalty of a head, on coordinates whose mean squared length is one: it has the least log
# loss on rows not seen, .596 where 10 has .623 and 1000 .614 (benchmarks/calibration.py --heads).
HEAD_C = 100.0


class ClassHead(NamedTuple):
    """Logistic regression of classes: log odds X @ coef + intercept, of rows or of a kernel."""

    coef: np.ndarray
    intercept: np.ndarray


@one_thread
def fit_head(Z, labels, weights=None) -> ClassHead:
    """The head of a map, from the coordinates (n, q) of labelled rows and their class numbers."""
    Z = np.asarray(Z, dtype=float)
    center = np.average(Z, axis=0, weights=weights)
    squares = np.sum((Z - center) ** 2, axis=1)
    length = np.sqrt(np.average(squares, weights=weights)) or 1.0
    model = LogisticRegression(C=HEAD_C, max_iter=1000)
    model.fit((Z - center) / length, labels, sample_weight=weights)
    coef, intercept = model.coef_.T / length, model.intercept_
    if coef.shape[1] == 1:
        coef, intercept = coef * [0.0, 1.0], intercept * [0.0, 1.0]
    return ClassHead(coef, intercept - center @ coef)


def with_head(odds, head_odds) -> np.ndarray:
    """The mean of a model's own probabilities and those of its head, None for none."""
    proba = softmax(odds, axis=1)
    return proba if head_odds is None else (proba + softmax(head_odds, axis=1)) / 2


def taught_rows(labels) -> np.ndarray:
    """Labelled rows for a head, evenly taken where there are many."""
    rows = np.flatnonzero(labels >= 0)
    return rows[:: 1 + len(rows) // MOST_TAUGHT]


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
        check_is_fitted(self)
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


def _predicts_classes(model):
    coding = getattr(model, "target_coding_", None)
    return coding is None or coding.kind == "classes"


class PredictsOutputs:
    """Predictions from ``_placed(X, coef)``: Gaussians of the coded outputs, and X @ coef."""

    def predict(self, X, return_std=False, *, links=None, sample_index=None):
        """Most probable class, or expected values of the outputs, of every row.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        return_std : bool, default=False
            Whether to return standard deviations of numbers too: those of a new value about
            its mean, wider where few rows are labelled. A value lies within 1.96 of them in
            95 % of the cases.
        links : Links, array-like or sparse matrix, default=None
            Links of the rows, as in `PRPCA.transform`: among themselves, among the rows of
            the fit and then these, or with ``sample_index`` among all nodes.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row.

        Returns
        -------
        y : ndarray of shape (n_samples,) or (n_samples, n_outputs)
            Classes, numbers, or 0/1 indicators, as in `fit`.
        std : ndarray of the same shape
            In the units of y. Only if ``return_std``.
        """
        X, coding = self._read(X, links, sample_index), self.target_coding_
        if coding.kind == "none":
            raise ValueError("the model was fitted without outputs; fit with y to predict")
        if return_std and coding.kind != "numeric":
            raise ValueError(
                f"return_std=True needs numbers as y, and this model was fitted to {coding.kind}; "
                "see predict_proba for classes"
            )
        if coding.kind == "classes":
            return coding.classes[np.argmax(self._probabilities(X), axis=1)]
        given = self._outputs_given(X)
        values = decode_predictions(given.mean, coding)
        return (values, self._deviations(given)) if return_std else values

    @available_if(_predicts_classes)
    def predict_proba(self, X, *, links=None, sample_index=None):
        """Probabilities of the classes, by the Gaussian prediction of their codes and by the map.

        They are the mean of what the two say, unless `class_head_` is None: then labels that
        were left out could not be found, and the probabilities are nearly even.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        links : Links, array-like or sparse matrix, default=None
            Links of the rows, as in `PRPCA.transform`: among themselves, among the rows of
            the fit and then these, or with ``sample_index`` among all nodes.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row.

        Returns
        -------
        P : ndarray of shape (n_samples, n_classes)
            Columns in the order of `classes_`.
        """
        return self._probabilities(self._read(X, links, sample_index))

    def score(self, X, y=None, sample_weight=None, *, links=None, sample_index=None):
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
        links : Links, array-like or sparse matrix, default=None
            Links of the rows, as in `PRPCA.transform`: among themselves, among the rows of
            the fit and then these, or with ``sample_index`` among all nodes.
        sample_index : array-like of int of shape (n_samples,), default=None
            The node of each row.

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
        predicted = self.predict(X, links=links, sample_index=sample_index)[keep]
        measure = r2_score if kind == "numeric" else accuracy_score
        return float(measure(plain_labels(as_array(y)[keep]), predicted, **weights))

    def __sklearn_tags__(self):
        """Outputs may be several; whoever has `predict_proba` must say what classes it takes."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        tags.classifier_tags = ClassifierTags()
        return tags

    def _deviations(self, given):
        """Standard deviations of the outputs in their units, in the shape of y."""
        variances = np.diagonal(given.covariances, axis1=1, axis2=2)
        variances = variances * getattr(self, "target_widening_", 1.0)
        std = (self.target_coding_.scale * np.sqrt(variances))[given.pattern]
        return std[:, 0] if self.target_coding_.one_column else std

    def _keep_widening(self, X, Y, observed, weights, n_components):
        """How much wider than the likelihood says the predictions of labelled rows are."""
        if self.target_coding_.kind != "numeric":
            return
        rows = np.flatnonzero(observed.any(axis=1))
        rows = rows[:: 1 + len(rows) // MOST_SHOWING]
        given = self._outputs_given(take_rows(X, rows))
        weights = np.ones(len(rows)) if weights is None else weights[rows]
        self.target_widening_ = widening(given, Y[rows], observed[rows], weights, n_components)

    def _teach_head(self, fitted, labels, coordinates, weights=None):
        """The head on the widest map, None where labels left out are not found at all.

        ``coordinates(rows, wide)`` places labelled rows on it; the head is one of X, or of F.
        """
        self.class_head_ = None
        if labels is None or not fitted.outputs.finds_classes or len(self.classes_) < 2:
            return
        rows = taught_rows(labels)
        wide = fitted.projection if fitted.wide is None else fitted.wide
        weights = None if weights is None else weights[rows]
        head = fit_head(coordinates(rows, wide), labels[rows], weights)
        self.class_head_ = head._replace(coef=wide @ head.coef)

    def _probabilities(self, X):
        head = getattr(self, "class_head_", None)
        given, products = self._placed(X, None if head is None else head.coef)
        odds = class_log_odds(*given, contrasts(len(self.classes_)))
        return with_head(odds, None if head is None else products + head.intercept)

    def _outputs_given(self, X):
        return self._placed(X)[0]

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
