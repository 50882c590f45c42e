"""Cross-validation where some rows have no label, and the number of components it prefers.

scikit-learn's splitters hold unlabelled rows out and score -1 as a class. Here they stay in
every training fold, and only labelled rows are held out.
"""

import warnings
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.linear_model import RidgeCV
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import BaseCrossValidator
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon.estimators._door import check_integer, divisible, forget_fit, generator, take_rows
from gnomon.estimators._targets import (
    as_array,
    as_floats,
    kind_of,
    labelled_rows,
    plain_labels,
    read_classes,
    require_targets,
)
from gnomon.estimators.links import Links, read_links
from gnomon.linalg.data import as_data, center
from gnomon.typing import OutputsLike, RowsLike, SeedLike

# Numbers of components that are tried; a picture has two at least.
SIZES = (2, 3, 5, 8, 13)
# Entries of X; to fit more of them in every fold takes minutes. So many components are then taken.
LARGE, SIZE_OF_LARGE = 5e6, 10
# Scores that differ by less are as good as each other: folds drawn anew move a score by as much.
MARGIN = 0.02
# A share of the best score that is rounding.
ROUNDING = 1e-12


class SizeChoice(NamedTuple):
    """A number of components, the scores of those tried, and why it was taken."""

    size: int
    scores: dict[int, float]
    reason: str


class SemiSupervisedSplit(BaseCrossValidator):
    """Splits that hold out labelled rows only and train on all unlabelled ones.

    Parameters
    ----------
    cv : int, cross-validator or iterable, default=5
        An int is a number of folds: the labelled rows of each class go to different folds,
        and a class with a single labelled row stays in training, since it cannot be scored.
        A cross-validator splits the labelled rows. An iterable of (train, test) pairs refers
        to all rows: unlabelled rows are moved from test to training.
    shuffle : bool, default=True
        Whether to shuffle the rows before they go to folds; for an int ``cv`` only.
    random_state : int, RandomState instance, Generator or None, default=0
        Makes the shuffle; the default gives the same folds at every call.

    See Also
    --------
    labelled_scorer : A score over labelled rows only.
    LabelledOnly : Fits an estimator on labelled rows only.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import SemiSupervisedSplit
    >>> y = np.array([0, 0, 1, 1, -1, -1])
    >>> for train, test in SemiSupervisedSplit(2, shuffle=False).split(np.zeros((6, 1)), y):
    ...     print(train, test)
    [1 3 4 5] [0 2]
    [0 2 4 5] [1 3]
    """

    def __init__(self, cv: Any = 5, *, shuffle: bool = True, random_state: SeedLike = 0) -> None:
        self.cv = cv
        self.shuffle = shuffle
        self.random_state = random_state

    def split(self, X: RowsLike, y: OutputsLike, groups: Any = None) -> Any:
        """Yield pairs of training and test indices; test rows are labelled.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Only its number of rows matters.
        y : array-like of shape (n_samples,) or (n_samples, n_outputs)
            -1, None or NaN mark unlabelled rows.
        groups : array-like of shape (n_samples,), default=None
            Passed on to a cross-validator.

        Yields
        ------
        train, test : arrays of int
            Sorted indices of rows.
        """
        labelled = labelled_rows(y)
        n = len(labelled)
        if not labelled.any():
            raise ValueError("y has no labelled row; at least two are needed to split them")
        for test in self._tests(np.flatnonzero(labelled), y, groups):
            test = np.intersect1d(test, np.flatnonzero(labelled))
            if len(test):
                yield np.setdiff1d(np.arange(n), test), test

    def get_n_splits(self, X: RowsLike = None, y: OutputsLike = None, groups: Any = None) -> int:
        """Number of splits.

        Parameters
        ----------
        X, y, groups : array-like
            As for `split`; y is needed where ``cv`` is not a number of folds.

        Returns
        -------
        n_splits : int
            How many pairs `split` yields.
        """
        if y is None:
            whole = isinstance(self.cv, int | np.integer)
            return int(self.cv) if whole else self.cv.get_n_splits(X, y, groups)
        return sum(1 for _ in self.split(X, y, groups))

    def _tests(self, rows, y, groups):
        if isinstance(self.cv, int | np.integer):
            n_folds = check_integer("cv", self.cv, low=2)
            yield from self._folds(rows, as_array(y)[rows], n_folds)
        elif hasattr(self.cv, "split"):
            part = None if groups is None else np.asarray(groups)[rows]
            for _, test in self.cv.split(rows[:, None], plain_labels(as_array(y)[rows]), part):
                yield rows[test]
        else:
            for _, test in self.cv:
                yield np.asarray(test)

    def _folds(self, rows, y, n_folds):
        rng = generator(self.random_state)
        order = rng.permutation(len(rows)) if self.shuffle else np.arange(len(rows))
        if kind_of(y) == "classes":
            tests = stratified_folds(read_classes(y, len(y)).labels[order], n_folds)
        elif len(rows) < 2:
            raise ValueError("y has 1 labelled row; at least two are needed to split them")
        else:
            tests = np.array_split(np.arange(len(rows)), min(n_folds, len(rows)))
        yield from (rows[order[test]] for test in tests)


def stratified_folds(labels, n_folds, ranks=None):
    """Indices of the rows of each fold, from class numbers.

    Rows of a class go to different folds in the order of their ranks, which rows that are equal
    share, and the class whose first row comes next goes on with the next fold. A class with a
    single rank is in no fold, and folds without rows are left out.
    """
    ranks = np.arange(len(labels)) if ranks is None else ranks
    own = {label: ranks[labels == label] for label in np.unique(labels)}
    several = [label for label in own if np.ptp(own[label]) > 0]
    if not several:
        raise ValueError("y has one labelled row in every class; at least one class needs two")
    position, fold = 0, np.full(len(labels), -1)
    for label in sorted(several, key=lambda label: own[label].min()):
        distinct, place = np.unique(own[label], return_inverse=True)
        fold[labels == label] = (position + place) % n_folds
        position += len(distinct)
    tests = (np.flatnonzero(fold == index) for index in range(n_folds))
    return [test for test in tests if len(test)]


def smallest_good(sizes, scores, margin=MARGIN) -> int:
    """Smallest size whose score is as good as that of the best size."""
    least = max(scores) - margin - ROUNDING
    return min(size for size, score in zip(sizes, scores, strict=True) if score >= least)


def why_size(scores, size) -> str:
    """A sentence on why this number of components was taken, from the score of each."""
    best = max(scores, key=lambda q: (scores[q], -q))
    tried = ", ".join(map(str, sorted(scores)))
    if len(scores) == 1:
        return f"{size} alone was tried."
    if size == best:
        return f"{size} scores best of {tried}."
    gain = f"{best}: {scores[best] - scores[size]:+.3f}"
    return f"{size} is the smallest of {tried} that scores within {MARGIN} of the best ({gain})."


class ChoosesSize:
    """``n_components="auto"``: the number of components that held-out labelled rows prefer."""

    get_params: Any

    def _fit_chosen(self, X, y, **params):
        """Fit with each size on some of the rows, then with the chosen one on all."""
        require_targets(y, f"{type(self).__name__}(n_components='auto')")
        X = X if hasattr(X, "shape") else np.asarray(X)
        params = {name: value for name, value in params.items() if value is not None}
        if "links" in params:
            params |= _all_nodes(X.shape[0], **params)
        choice = choose_size(self, divisible(X), y, params)
        fitted = clone(self).set_params(n_components=choice.size).fit(X, y, **params)
        own = self.get_params(deep=False)
        forget_fit(self)
        vars(self).update({k: v for k, v in vars(fitted).items() if k not in own})
        self.size_scores_, self.size_reason_ = choice.scores, choice.reason
        return self


def choose_size(model, X, y, params) -> SizeChoice:
    """The size of a model with ``target``, "classes" without, by folds of labelled rows."""
    n, d = X.shape
    if n * d > LARGE:
        size = max(1, min(SIZE_OF_LARGE, n - 1, d - 1))
        return SizeChoice(size, {}, f"{size} taken, since X has more than {LARGE:,.0f} entries.")
    X, y, params = _rows_that_count(X, y, params)
    sizes = [size for size in SIZES if size < min(X.shape[0] // 2, d)] or [1]
    kind = getattr(model, "target", "classes")
    kind = kind_of(y) if kind == "auto" else kind
    try:
        splits = list(_splits(X, y))
    except ValueError as error:
        warnings.warn(f"{sizes[0]} components were taken, not chosen: {error}", stacklevel=4)
        return SizeChoice(sizes[0], {}, f"{sizes[0]} taken, since rows could not be held out.")
    scores = _scores(model, X, y, kind, params, sizes, splits)
    size = smallest_good(scores, list(scores.values()))
    return SizeChoice(size, scores, why_size(scores, size))


def _rows_that_count(X, y, params):
    """Rows of positive weight, and what belongs to them."""
    counts = np.asarray(params.get("sample_weight", True)) > 0
    if counts.all() or counts.shape != X.shape[:1]:
        return X, y, params
    cut = {name: _cut(value, np.flatnonzero(counts)) for name, value in params.items()}
    return take_rows(X, counts), take_rows(as_array(y), counts), cut


def _splits(X, y):
    """Training and test rows, whatever the order of rows; those that are equal share a fold."""
    rows = _finite(X)
    # An unlabelled copy of a labelled row may stay when that is held out.
    marks = np.column_stack([_mark(rows), labelled_rows(y)])
    _, first, group = np.unique(marks, axis=0, return_index=True, return_inverse=True)
    _, apart = center(as_data(rows[first]))
    order = np.argsort(apart.row_squared_norms(), kind="stable")
    names = take_rows(as_array(y), first[order])
    for _, test in SemiSupervisedSplit(5).split(order[:, None], names):
        held_out = np.flatnonzero(np.isin(group.ravel(), order[test]))
        yield np.setdiff1d(np.arange(len(marks)), held_out), held_out


def _mark(rows):
    """A number for every row, the same for equal ones and for no others: a product by chance."""
    chance = np.random.default_rng(0).standard_normal((rows.shape[1], 1))
    marks = (as_data(rows) @ chance).ravel()
    return np.round(marks / (np.abs(marks).max(initial=0.0) or 1.0), 12)


def _finite(X):
    """Rows as an array, with zeros for what is missing; sparse ones stay sparse."""
    given: Any = take_rows(X, np.arange(X.shape[0]))
    if sparse.issparse(given):
        return given.tocsr().astype(float)  # type: ignore[attr-defined]
    rows = np.asarray(given, dtype=float)
    return np.where(np.isfinite(rows), rows, 0.0)


def _scores(model, X, y, kind, params, sizes, splits) -> dict[int, float]:
    """Score of held-out rows by each number of components, all folds together."""
    known = labelled_rows(y, kind)
    Y = as_floats(y) if kind != "classes" else read_classes(y, X.shape[0]).labels
    predicted: dict[int, list] = {size: [] for size in sizes}
    for train, test in splits:
        labelled = train[known[train]]
        for size, T, T_test in _maps(model, X, y, params, sizes, (train, labelled, test)):
            predicted[size].append(_predictor(kind).fit(T, Y[labelled]).predict(T_test))
    tests = np.concatenate([test for _, test in splits])
    weights = np.asarray(params.get("sample_weight", np.ones(X.shape[0])))[tests]
    measure = r2_score if kind == "numeric" else accuracy_score
    return {
        size: float(measure(Y[tests], np.concatenate(predicted[size]), sample_weight=weights))
        for size in sizes
    }


def _maps(model, X, y, params, sizes, rows):
    """Labelled and held-out rows in maps of all sizes."""
    train, labelled, test = rows
    cut = {name: _cut(value, train) for name, value in params.items()}
    for size in sizes:
        part = clone(model).set_params(n_components=size)
        part.fit(take_rows(X, train), take_rows(as_array(y), train), **cut)
        T, T_test = (
            part.transform(take_rows(X, index), **_graph(params, index))
            for index in (labelled, test)
        )
        yield size, T, T_test


def _cut(value, rows):
    """What belongs to rows for some of them; links go whole."""
    whole = isinstance(value, str) or not hasattr(value, "__len__")
    return value if whole else take_rows(np.asarray(value), rows)


def _all_nodes(n, links, sample_index=None, **_):
    """Links that survive folds, and the node of every row."""
    index = np.arange(n) if sample_index is None else np.asarray(sample_index)
    links = links if isinstance(links, Links | str) else read_links(links, n)
    return {"links": links, "sample_index": index}


def _graph(params, rows):
    """The links and nodes of some rows."""
    if "links" not in params:
        return {}
    return {"links": params["links"], "sample_index": params["sample_index"][rows]}


def _predictor(kind):
    """What says how good a map is: its nearest labelled row, or a regression of numbers."""
    if kind == "numeric":
        return make_pipeline(StandardScaler(), RidgeCV(np.logspace(-3, 3, 13)))
    return KNeighborsClassifier(1)
