"""Fits and scores that look at labelled rows only.

The last step of a pipeline would take -1 for a class to learn and to be scored on.
"""

from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, MetaEstimatorMixin, clone
from sklearn.metrics import check_scoring
from sklearn.utils import get_tags
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from gnomon.estimators._door import n_rows
from gnomon.estimators._predict import labelled_part, labelled_weights
from gnomon.estimators._targets import labelled_rows
from gnomon.typing import OutputsLike, RowsLike


def _passed_on(name, what):
    """A method of the fitted estimator, where it has it."""

    def method(self, X: RowsLike) -> Any:
        check_is_fitted(self)
        return getattr(self.estimator_, name)(X)

    method.__name__, method.__qualname__ = name, f"LabelledOnly.{name}"
    method.__doc__ = f"""{what} of the fitted estimator.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.

        Returns
        -------
        values : array of n_samples rows
            As the estimator gives them.
        """
    return available_if(lambda self: hasattr(self.estimator, name))(method)


class LabelledOnly(MetaEstimatorMixin, BaseEstimator):
    """Fits an estimator on the labelled rows only.

    A classifier at the end of a pipeline would take -1 for a class; this leaves such rows out
    of its fit.

    Parameters
    ----------
    estimator : estimator
        A classifier, regressor or supervised transformer.

    Attributes
    ----------
    estimator_ : estimator
        The fitted copy.
    classes_ : array of shape (n_classes,)
        The classes, for classifiers.

    See Also
    --------
    SemiSupervisedSplit : Splits that hold out labelled rows only.

    Examples
    --------
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from gnomon import LabelledOnly
    >>> X, y = [[0.0], [1.0], [2.0], [3.0]], [0, -1, -1, 1]
    >>> LabelledOnly(KNeighborsClassifier(1)).fit(X, y).predict(X).tolist()
    [0, 0, 1, 1]
    """

    def __init__(self, estimator: Any) -> None:
        self.estimator = estimator

    def fit(self, X: RowsLike, y: OutputsLike, **fit_params: Any) -> Self:
        """Fit on the rows that have a label.

        Parameters
        ----------
        X : array-like or sparse array of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            -1, None or NaN mark unlabelled rows.
        **fit_params : dict
            Passed on to the estimator's fit; of ``sample_weight`` the part of the labelled
            rows, of others all.

        Returns
        -------
        self : LabelledOnly
            Fitted.
        """
        estimator = clone(self.estimator)
        keep = None if y is None else labelled_rows(y)
        if keep is None or keep.all() or len(keep) != n_rows(X):
            estimator.fit(X, y, **fit_params)
        elif not keep.any():
            raise ValueError("y has no labelled row; LabelledOnly needs at least one")
        else:
            estimator.fit(*labelled_part(X, y, keep), **labelled_weights(fit_params, keep))
        self.estimator_ = estimator
        return self

    @property
    def classes_(self) -> Any:
        """The classes of the fitted estimator."""
        return self.estimator_.classes_

    @property
    def n_features_in_(self) -> Any:
        """Number of features seen in fit."""
        return self.estimator_.n_features_in_

    predict = _passed_on("predict", "Predictions")
    predict_proba = _passed_on("predict_proba", "Class probabilities, in the order of `classes_`,")
    decision_function = _passed_on("decision_function", "Decision values")
    transform = _passed_on("transform", "Coordinates")

    def score(self, X: RowsLike, y: OutputsLike) -> float:
        """Score of the fitted estimator on the rows that have a label.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Inputs.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            -1, None or NaN mark unlabelled rows.

        Returns
        -------
        score : float
            As the estimator gives it.
        """
        check_is_fitted(self)
        return labelled_scorer()(self.estimator_, X, y)

    def __sklearn_is_fitted__(self):
        return hasattr(self, "estimator_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        inner = get_tags(self.estimator)
        tags.estimator_type = inner.estimator_type
        for kind in ("classifier", "regressor", "transformer", "target", "input"):
            setattr(tags, f"{kind}_tags", getattr(inner, f"{kind}_tags"))
        return tags


class _LabelledScorer:
    """A scorer over the labelled rows; a class, so that it can be pickled."""

    def __init__(self, scoring):
        self.scoring = scoring

    def __call__(self, estimator, X, y, **params):
        keep = labelled_rows(y, classes=getattr(estimator, "classes_", ()))
        if not keep.any():
            return np.nan
        scorer = check_scoring(estimator, scoring=self.scoring)
        return scorer(estimator, *labelled_part(X, y, keep), **labelled_weights(params, keep))

    def __repr__(self):
        return f"labelled_scorer({self.scoring!r})"


def labelled_scorer(scoring: Any = None) -> Any:
    """A scorer that looks at the labelled rows only.

    Parameters
    ----------
    scoring : str, callable or None, default=None
        As in scikit-learn: a name, a scorer, or None for the estimator's own ``score``, which
        is accuracy or the coefficient of determination wherever it predicts.

    Returns
    -------
    scorer : callable
        ``scorer(estimator, X, y)``; NaN where y has no labelled row.

    See Also
    --------
    SemiSupervisedSplit : Splits that hold out labelled rows only.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.model_selection import cross_val_score
    >>> from sklearn.neighbors import KNeighborsClassifier
    >>> from gnomon import LabelledOnly, SemiSupervisedSplit, labelled_scorer
    >>> X, y = load_iris(return_X_y=True)
    >>> y[np.arange(150) % 5 > 0] = -1
    >>> model = LabelledOnly(KNeighborsClassifier(1))
    >>> scores = cross_val_score(
    ...     model, X, y, cv=SemiSupervisedSplit(5), scoring=labelled_scorer("accuracy")
    ... )
    >>> round(float(scores.mean()), 2)
    1.0
    """
    return _LabelledScorer(scoring)
