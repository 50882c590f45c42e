"""Cross-validation where some rows have no label.

scikit-learn's splitters hold unlabelled rows out and score -1 as a class. Here they stay in
every training fold, and only labelled rows are held out.
"""

import numpy as np
from sklearn.model_selection import BaseCrossValidator

from gnomon.estimators._door import check_integer, generator
from gnomon.estimators._targets import as_array, kind_of, labelled_rows, plain_labels, read_classes


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

    def __init__(self, cv=5, *, shuffle=True, random_state=0):
        self.cv = cv
        self.shuffle = shuffle
        self.random_state = random_state

    def split(self, X, y, groups=None):
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

    def get_n_splits(self, X=None, y=None, groups=None):
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
            return self.cv if isinstance(self.cv, int) else self.cv.get_n_splits(X, y, groups)
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


def stratified_folds(labels, n_folds):
    """Indices of the rows of each fold, from class numbers.

    Rows of a class go to different folds, and the next class goes on with the next fold. A class
    with a single row is in no fold, and folds without rows are left out.
    """
    counts = np.bincount(labels)
    if not np.any(counts > 1):
        raise ValueError("y has one labelled row in every class; at least one class needs two")
    position, fold = 0, np.full(len(labels), -1)
    for label in np.flatnonzero(counts > 1):
        rows = np.flatnonzero(labels == label)
        fold[rows] = (position + np.arange(len(rows))) % n_folds
        position += len(rows)
    tests = (np.flatnonzero(fold == index) for index in range(n_folds))
    return [test for test in tests if len(test)]
