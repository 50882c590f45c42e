"""What estimators say of y, and how well: predictions, probabilities, scores over labelled rows."""

import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import is_regressor
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import accuracy_score, r2_score
from sklearn.utils import ClassifierTags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators._door import by_rows, divisible, in_reach, read_weights, take_rows
from gnomon.estimators._heads import (
    NOTHING_FOUND,
    class_shares,
    doubted,
    fit_linked_head,
    fit_map_head,
    less_sure,
    taught_rows,
    with_head,
)
from gnomon.estimators._targets import (
    as_array,
    contrasts,
    decode_predictions,
    labelled_rows,
    plain_labels,
    read_like,
    read_targets,
)
from gnomon.estimators.chunks import share_targets
from gnomon.linalg.solve import one_thread
from gnomon.models.sppca.fit import Problem
from gnomon.models.sppca.predict import bayes_odds, class_log_odds, widening
from gnomon.typing import GraphLike, OutputsLike, RowsLike

# Labelled rows that show how wide predictions are: so many know a variance to some percent.
MOST_SHOWING = 10_000


class LabelledScore:
    """``score`` over the rows that have a label, or numbers for all outputs."""

    classes_: Any

    def score(self, X: RowsLike, y: OutputsLike, sample_weight: ArrayLike | None = None) -> float:
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
        return super().score(*labelled_part(divisible(X), y, keep), **weights)  # type: ignore[misc]


class PredictsLabels(LabelledScore):
    """``predict`` of a classifier that has probabilities, and ``score``."""

    predict_proba: Any

    @by_rows
    def predict(self, X: RowsLike) -> Any:
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

    # Of the estimator: its parameters, what its fit keeps, its rows and densities.
    n_components: Any
    target: Any
    classes_: Any
    linked_rows_: Any
    supervision_: Any
    target_coding_: Any
    target_mean_: Any
    target_covariance_: Any
    _log_densities: Any
    _placed: Any
    _read: Any

    @by_rows
    def predict(
        self,
        X: RowsLike,
        return_std: bool = False,
        *,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
    ) -> Any:
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
        if coding.kind == "multilabel":
            return decode_predictions(self._output_means(X), coding)
        given = self._outputs_given(X)
        values = decode_predictions(given.mean, coding)
        return (values, self._deviations(given)) if return_std else values

    @available_if(_predicts_classes)
    @by_rows
    def predict_proba(
        self, X: RowsLike, *, links: GraphLike = None, sample_index: ArrayLike | None = None
    ) -> np.ndarray:
        """Probabilities of the classes, by the Gaussian prediction of their codes and by the map.

        They are the mean of what the two say, and for a share of `class_doubt_` those of the
        classes among the labelled rows: nearly all where the map says nothing of the classes.

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

    def score(
        self,
        X: RowsLike,
        y: OutputsLike = None,
        sample_weight: Any = None,
        *,
        links: GraphLike = None,
        sample_index: ArrayLike | None = None,
    ) -> float:
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
        predicted = in_reach(self.predict(X, links=links, sample_index=sample_index))[keep]
        measure = r2_score if kind == "numeric" else accuracy_score
        return float(measure(plain_labels(as_array(y)[keep]), predicted, **weights))

    def __sklearn_tags__(self):
        """Outputs may be several; whoever has `predict_proba` must say what classes it takes."""
        tags = super().__sklearn_tags__()  # type: ignore[misc]
        tags.target_tags.multi_output = True
        tags.classifier_tags = ClassifierTags()
        return tags

    def _read_problem(self, X, y, sample_weight, chunks, settings):
        """Rows of positive weight with their outputs as columns, and how y became these."""
        weights = read_weights(sample_weight, X.shape[0])
        if weights is not None and not weights.all():
            counts = weights > 0
            X, weights = take_rows(X, counts), weights[counts]
            y, chunks = (None if v is None else take_rows(as_array(v), counts) for v in (y, chunks))
        targets = read_targets(y, X.shape[0], self.target, weights)
        if chunks is not None:
            targets, chunks = share_targets(targets, chunks, X, weights, settings)
        Y, observed, coding, labels = targets
        return Problem(X, Y, observed, labels, weights, chunks), coding

    def _read_outputs(self, y, n_samples):
        if y is not None:
            return read_like(y, n_samples, self.target_coding_)
        nothing = np.zeros((n_samples, len(self.target_mean_)))
        return nothing, nothing.astype(bool)

    def _warn_at_floor(self, inputs, outputs):
        if inputs or outputs:
            which = " and ".join(name for name, low in (("x", inputs), ("y", outputs)) if low)
            warnings.warn(
                f"n_components == {self.n_components} explains all variance of {which}: that noise "
                "is held at its floor, and without it the likelihood has no maximum; use fewer "
                "components, more labelled rows, or fix the noise",
                ConvergenceWarning,
                stacklevel=3,
            )

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

    @one_thread
    def _teach_head(self, fitted, labels, coordinates, weights=None):
        """The head on the widest map, None where labels left out are not found at all.

        ``coordinates(rows, wide, outputs)`` places labelled rows on it and says what the model
        predicts of them; the head is one of X, or of F.
        Where links are used it sees all that is smoothed over them.
        """
        self.class_head_ = None
        if labels is None or len(self.classes_) < 2:
            return
        self.class_shares_, self.class_doubt_ = class_shares(labels, weights, len(self.classes_))
        if not fitted.outputs.finds_classes:
            self.class_doubt_ = NOTHING_FOUND
            return
        rows = taught_rows(labels)
        weights = None if weights is None else weights[rows]
        linked = getattr(self, "links_used_", False) and not self.linked_rows_.n_neighbours
        linked = linked and self.supervision_ != "likelihood"
        wide = fitted.projection if fitted.wide is None else fitted.wide
        wide, outputs = np.eye(len(wide)) if linked else wide, fitted.outputs
        Z, mean = coordinates(rows, wide, outputs.coef)
        head = (fit_linked_head if linked else fit_map_head)(Z, labels[rows], weights)
        if outputs.left_out_loss is not None and not linked:
            mean = mean + outputs.offset
            head, factor = less_sure(head, Z, mean, outputs, self.class_shares_, weights)
            # So the log odds of the model's own prediction, beyond the shares, have this factor.
            self.target_covariance_ = self.target_covariance_ / factor
        self.class_head_ = head._replace(coef=wide @ head.coef)

    def _probabilities(self, X):
        head = getattr(self, "class_head_", None)
        given, products = self._placed(X, None if head is None else head.coef)
        odds = class_log_odds(*given, contrasts(len(self.classes_)))  # type: ignore[call-arg]
        odds, shares = odds + odds_of_shares(self), getattr(self, "class_shares_", None)
        if head is None:
            proba = with_head(odds, None)
        else:
            proba = with_head(odds, products + head.intercept, head.say)
        return proba if shares is None else doubted(proba, shares, self.class_doubt_)

    def _outputs_given(self, X):
        return self._placed(X)[0]

    def _output_means(self, X):
        return self._outputs_given(X).mean


def odds_of_shares(model) -> Any:
    """What is added to the log densities of the codes of classes, as these have their shares."""
    shares = getattr(model, "class_shares_", None)
    if shares is None:
        return 0.0
    if model.supervision_ != "likelihood":
        # Codes of all classes count the same at a strength.
        return np.log(shares)
    W_y, sigma2_y = model.target_components_.T, model.target_noise_variance_
    return bayes_odds(shares, model.target_mean_, W_y, sigma2_y, contrasts(len(shares)))


def labelled_part(X, y, keep):
    """X and y of the labelled rows; y in a dtype by which scikit-learn knows what it holds."""
    return X if keep.all() else take_rows(X, keep), plain_labels(as_array(y)[keep])


def labelled_weights(params, keep) -> dict:
    """Parameters of a fit or of a score, with the weights of the labelled rows alone."""
    weights = params.get("sample_weight")
    if weights is None or np.shape(weights) != keep.shape:
        return params
    return params | {"sample_weight": np.asarray(in_reach(weights))[keep]}
