"""A model that takes tables: the one of a file that ``gnomon fit`` wrote, in Python.

Data frames become the same Arrow columns that files become, and go the same way from there.
"""

import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if

from gnomon.exceptions import TableError


def _model_has(name):
    return available_if(lambda self: hasattr(self.model, name))


class TableModel:
    r"""A fitted model with the rule for its tables, as ``gnomon fit`` keeps both in a file.

    It takes the table itself: a pandas or polars data frame, a pyarrow table, or the path of a
    file, which is read as the table of the fit was. Columns are found by their names, in any
    order; others are ignored. What it gives is what the command line gives. `load` makes it;
    `save` keeps it.

    Parameters
    ----------
    saved : named tuple
        Model, rule and question, as `load` reads them from a file.

    Attributes
    ----------
    model : estimator
        The model alone, which takes the matrix ``gnomon.read_table(path, model=file).X``.
    recipe : named tuple
        The rule: which columns, how they are scaled, what was left out and why.
    question : named tuple
        What was asked of the table: target, names of the rows, and so on.
    notes : dict
        All that the file holds beside the model.
    layout : NeighbourLayout or None
        Of a fit with ``--layout neighbours`` the picture: ``model.layout.transform`` places
        what ``model.transform`` gives.

    See Also
    --------
    load : Read it from a file.
    read_table : A table as a matrix, by the same rule.

    Examples
    --------
    >>> import tempfile, pandas, gnomon
    >>> from gnomon.tools.cli import app
    >>> frame = pandas.DataFrame({"width": [1, 2, 4, None, 3], "length": [2, 3, 7, 6, 5]})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     frame.to_csv(f"{folder}/flowers.csv", index=False)
    ...     words = ["fit", f"{folder}/flowers.csv", "-k", "1", "--out", folder, "--quiet"]
    ...     app(words, standalone_mode=False)
    ...     model = gnomon.load(f"{folder}/model.gnomon")
    >>> model
    TableModel(PPCA, of the columns 'width', 'length')
    >>> model.transform(frame).shape
    (5, 1)
    >>> model.impute(frame)["width"].tolist()
    [1.0, 2.0, 4.0, 4.0, 3.0]
    """

    def __init__(self, saved: Any) -> None:
        self._saved = saved

    @property
    def model(self) -> Any:
        """The estimator alone."""
        return self._saved.model

    @property
    def recipe(self) -> Any:
        """The rule for tables."""
        return self._saved.recipe

    @property
    def question(self) -> Any:
        """What was asked of the table."""
        return self._saved.asked

    @property
    def notes(self) -> dict:
        """All that the file holds beside the model."""
        return self._saved.notes

    @property
    def layout(self):
        """The layout of its rows by their neighbours, on which others are placed, or None."""
        return self._saved.layout

    @property
    def classes_(self) -> np.ndarray:
        """The classes, in the order of the columns of `predict_proba`."""
        return self.model.classes_

    def __repr__(self):
        names = [feature.column for feature in self.recipe.features] or self.recipe.matrix_names
        shown = ", ".join(map(repr, names[:6])) + (f" and {len(names) - 6} more" * (len(names) > 6))
        targets = self.question.targets
        what = " for " * bool(targets) + ", ".join(map(repr, targets))
        return f"TableModel({type(self.model).__name__}{what}, of the columns {shown})"

    @_model_has("transform")
    def transform(self, table: Any, **options: Any) -> np.ndarray:
        """Place the rows of a table in the picture.

        Parameters
        ----------
        table : data frame, pyarrow table or path
            The rows.
        **options
            For ``transform`` of the model.

        Returns
        -------
        numpy.ndarray of shape (n_rows, n_components)
            Coordinates.
        """
        return self.model.transform(self._rows(table), **options)

    @_model_has("predict")
    def predict(self, table: Any, **options: Any) -> Any:
        """Predict the target of the rows of a table.

        Parameters
        ----------
        table : data frame, pyarrow table or path
            The rows; a target in it is not used.
        **options
            For ``predict`` of the model.

        Returns
        -------
        numpy.ndarray of shape (n_rows,)
            Classes or numbers.
        """
        return self.model.predict(self._rows(table), **options)

    @_model_has("predict_proba")
    def predict_proba(self, table: Any) -> np.ndarray:
        """Predict the probabilities of the classes.

        Parameters
        ----------
        table : data frame, pyarrow table or path
            The rows.

        Returns
        -------
        numpy.ndarray of shape (n_rows, n_classes)
            In the order of ``classes_``.
        """
        return self.model.predict_proba(self._rows(table))

    @_model_has("posterior")
    def posterior(self, table: Any, **options: Any) -> Any:
        """Coordinates with their covariances.

        Parameters
        ----------
        table : data frame, pyarrow table or path
            The rows.
        **options
            For ``posterior`` of the model.

        Returns
        -------
        named tuple
            ``mean`` and ``covariance``, as the model gives them.
        """
        return self.model.posterior(self._rows(table), **options)

    @_model_has("score")
    def score(self, table: Any) -> float:
        """The model's score on the rows of a table, by the target in it if there was one.

        Parameters
        ----------
        table : data frame, pyarrow table or path
            The rows, with the target of the fit.

        Returns
        -------
        float
            What ``score`` of the model says of the labelled rows. Labels count by value, ``0.5`` as
            ``0.50``; where none is a class of the model, there is an error.
        """
        from gnomon.tools.prepare import fill_gaps, prepare_again, strange_labels

        notes: dict[str, None] = {}
        opened = self._opened(table, notes.setdefault)
        ready, _ = prepare_again(self._saved, opened, notes.setdefault)
        X = fill_gaps(self.model, ready.X, self.recipe, notes.setdefault)
        _warn(notes)
        if self.question.target is None:
            return self.model.score(X)
        if ready.y is None:
            names = ", ".join(map(repr, self.question.targets))
            raise TableError(f"{opened.path} has no target {names} to score by")
        if ready.kind == "classes" and (problem := strange_labels(self.model, ready.y)):
            raise TableError(f"the target {self.question.target!r} of {opened.path}: {problem}")
        return self.model.score(X, ready.y)

    @_model_has("impute")
    def impute(self, table: Any, *, return_std: bool = False, within_range: bool = True) -> Any:
        """Fill the gaps of a table in its own units.

        Columns keep their types: dates stay dates, true and false and categories stay what they
        are, numbers are whole where all were whole at the fit. What was there stays as it was.

        Parameters
        ----------
        table : data frame, pyarrow table or path
            The rows.
        return_std : bool, default=False
            Whether a column ``<name> (sd)`` with the standard deviations of the filled cells
            stands beside each column that had gaps; for a category it is ``<name> (share)``,
            the indicator of the level taken.
        within_range : bool, default=True
            Whether fillings stay within what the fit has seen of the column.

        Returns
        -------
        data frame
            The table in the kind that was given; of a path a pandas data frame.
        """
        from gnomon.tools import frames
        from gnomon.tools.fillings import fillings, imputed_columns

        opened, X = self._rows_of(table)
        if opened.streamed or not isinstance(X, np.ndarray):
            raise TableError(f"{opened.path} is sparse or too large to fill; a dense one is wanted")
        imputed = self.model.impute(X, return_std=True)
        filled = fillings(self.recipe, opened, *imputed, within_range=within_range)
        if frames.is_frame(table):
            return frames.filled_frame(table, filled, with_sureness=return_std)
        columns = imputed_columns(self.recipe, opened, filled, with_sureness=return_std)
        return frames.as_pandas(columns)

    def get_feature_names_out(self, input_features: Any = None) -> np.ndarray:
        """Names of the coordinates.

        Parameters
        ----------
        input_features : None
            For scikit-learn.

        Returns
        -------
        numpy.ndarray of str
            A name for each column of `transform`.
        """
        return self.model.get_feature_names_out()

    def _rows(self, table):
        return self._rows_of(table)[1]

    def _rows_of(self, table):
        """The table, opened, and its matrix as the model takes it."""
        from gnomon.tools.prepare import fill_gaps
        from gnomon.tools.recipe import apply

        notes: dict[str, None] = {}
        opened = self._opened(table, notes.setdefault)
        X = apply(self.recipe, opened, notes.setdefault)
        X = fill_gaps(self.model, X, self.recipe, notes.setdefault)
        _warn(notes)
        return opened, X

    def _opened(self, table, note):
        """The table of a file or of a data frame."""
        from gnomon.tools.frames import is_frame, table_of
        from gnomon.tools.prepare import open_for

        if isinstance(table, str | Path):
            return open_for(self._saved, table, note)
        if not is_frame(table):
            raise TableError(
                f"a table is wanted, not {_described(table)}: pass a pandas or polars data frame, "
                "a pyarrow table or the path of a file; for a matrix take .model, which takes "
                "gnomon.read_table(path, model=file).X"
            )
        return table_of(table, self._saved, note)


def _warn(notes):
    """Say each note as a warning, at the place that called this package."""
    level, frame = 1, sys._getframe()
    while frame.f_back is not None and frame.f_globals["__name__"].startswith("gnomon."):
        level, frame = level + 1, frame.f_back
    for note in notes:
        warnings.warn(note, stacklevel=level)


def _described(value):
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    return f"a {type(value).__module__}.{type(value).__qualname__}"
