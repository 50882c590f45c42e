"""A criterion against a setting: the dimension, or the strength of supervision."""

from typing import Any, Self

import numpy as np

from gnomon.displays.style import GREY, axes_or_new, colour, last_step, tidy


class _CurveDisplay:
    """Means with error bars against a setting, one line per model; the choice is marked."""

    _xlabel = ""
    _param = ""
    _whole = False
    _kept = ""
    _how = ""
    # Means, deviations and choice from what a fit has kept.
    _read: Any

    def __init__(
        self,
        values: Any,
        means: Any,
        *,
        sds: Any = None,
        chosen: Any = None,
        criterion: str = "score",
    ) -> None:
        self.values = values
        self.means = means
        self.sds = sds
        self.chosen = chosen
        self.criterion = criterion

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **plot: Any) -> Self:
        """Draw the curve that an estimator with "auto" for the setting has kept.

        Parameters
        ----------
        estimator : fitted estimator or Pipeline
            Its last step has the attribute that the class names.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **plot
            Passed to ``plot``.

        Returns
        -------
        Display
        """
        model, _ = last_step(estimator)
        curve = getattr(model, cls._kept, None)
        if curve is None:
            raise ValueError(f"{type(model).__name__} has no {cls._kept}; fit it with {cls._how}")
        return cls(**cls._read(curve, model)).plot(ax, **plot)

    @classmethod
    def from_search(
        cls, search: Any, *, param: str | None = None, ax: Any = None, **plot: Any
    ) -> Self:
        """Draw a fitted ``GridSearchCV``: mean test score with its standard error over splits.

        Parameters
        ----------
        search : fitted GridSearchCV or RandomizedSearchCV
            Of one setting; where others were searched too, the best over them is drawn.
        param : str, default=None
            Name of the setting among the search's parameters; found by its ending if None.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **plot
            Passed to ``plot``.

        Returns
        -------
        Display
        """
        results = search.cv_results_
        param = param or _find_param(results, cls._param)
        settings = np.asarray(results[f"param_{param}"], dtype=float)
        means = np.asarray(results["mean_test_score"])
        errors = np.asarray(results["std_test_score"]) / np.sqrt(search.n_splits_)
        best = [_best_at(settings, means, value) for value in np.unique(settings)]
        display = cls(
            settings[best],
            means[best],
            sds=errors[best],
            chosen=search.best_params_[param],
            criterion="mean test score",
        )
        return display.plot(ax, **plot)

    def plot(self, ax: Any = None, *, ylabel: str | None = None, legend: bool = True) -> Self:
        """Draw the curves.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        ylabel : str, default=None
            Name of the criterion, in place of the display's own.
        legend : bool, default=True
            Whether to name the models, where there are several.

        Returns
        -------
        Display
        """
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        self.lines_: dict = {}
        means, sds, chosen = (_by_name(part) for part in (self.means, self.sds, self.chosen))
        for i, name in enumerate(means):
            self._draw_curve(i, name, means[name], sds.get(name), chosen.get(name))
        self.ax_.set_xlabel(self._xlabel)
        self.ax_.set_ylabel(ylabel or self.criterion)
        self.ax_.xaxis.get_major_locator().set_params(integer=self._whole)
        tidy(self.ax_)
        if legend and len(means) > 1:
            self.ax_.legend(frameon=False)
        return self

    def _draw_curve(self, i, name, means, sds, chosen):
        values = np.asarray(self.values, dtype=float)
        means = np.asarray(means, dtype=float)
        line = self.ax_.errorbar(
            values, means, yerr=sds, color=colour(i), marker="o", ms=4, capsize=2, lw=1.5
        )
        line.set_label(str(name))
        self.lines_[name] = line
        if chosen is not None:
            self.ax_.axvline(chosen, color=GREY, ls=":", lw=1, zorder=0)
            at = np.interp(chosen, values, means)
            self.ax_.plot(chosen, at, "o", ms=11, mfc="none", mec=colour(i), mew=1.6)


class DimensionDisplay(_CurveDisplay):
    """A criterion against the number of components, with error bars.

    An estimator with ``n_components="auto"`` keeps its own as ``criterion_``, with means and
    standard deviations over folds; :meth:`from_estimator` draws it.

    Parameters
    ----------
    values : array-like of shape (m,)
        Numbers of components.
    means : array-like of shape (m,), or dict of name to array-like
        The criterion, of one model or of several.
    sds : like means, default=None
        Lengths of the error bars.
    chosen : int, or dict of name to int, default=None
        The number chosen, which is ringed.
    criterion : str, default="score"
        Name of the criterion.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : dict of ErrorbarContainer
        By the name of the model.

    Examples
    --------
    >>> from gnomon.displays import DimensionDisplay
    >>> display = DimensionDisplay([1, 2, 3], [0.5, 0.8, 0.7], sds=[0.1] * 3, chosen=2).plot()
    >>> display.ax_.get_xlabel()
    'number of components'
    """

    _xlabel = "number of components"
    _param = "n_components"
    _whole = True
    _kept = "criterion_"
    _how = "n_components='auto'"

    @staticmethod
    def _read(curve, model):
        values = {"values": curve["n_components"], "means": curve["mean"], "sds": curve["std"]}
        criterion = "held-out log likelihood per row"
        return values | {"chosen": model.n_components_, "criterion": criterion}


class SupervisionDisplay(_CurveDisplay):
    """A criterion against the strength of supervision, with error bars.

    An estimator with ``supervision="auto"`` keeps what it has tried as ``supervision_curve_``:
    labels are held back and predicted in the map. :meth:`from_estimator` draws the loss
    relative to that without supervision, so below zero is a gain, with its standard error.
    There is a line for each number of principal directions that were searched.

    Parameters
    ----------
    values : array-like of shape (m,)
        Strengths, from 0 (labels ignored) to 1 (labels alone).
    chosen : float, or dict of name to float, default=None
        The strength chosen, which is ringed.
    means, sds, criterion
        As in `DimensionDisplay`.

    Attributes
    ----------
    ax_, figure_, lines_
        As in `DimensionDisplay`.

    Examples
    --------
    >>> from gnomon.displays import SupervisionDisplay
    >>> display = SupervisionDisplay([0, 0.5, 1], [0.5, 0.8, 0.7], chosen=0.5).plot()
    >>> display.ax_.get_xlabel()
    'strength of supervision'
    """

    _xlabel = "strength of supervision"
    _param = "supervision"
    _kept = "supervision_curve_"
    _how = "supervision='auto' and two or more labels in each of two classes"

    @staticmethod
    def _read(curve, model):
        """Strengths, losses, errors and choice; no supervision is the first candidate of all."""
        numbers, chosen = np.unique(curve["pool"][1:]), model.supervision_
        rows = {m: np.flatnonzero((curve["pool"] == m) & (curve["s"] > 0)) for m in numbers}
        tried = {f"{m} directions": np.concatenate([[0], index]) for m, index in rows.items()}
        best = min(tried, key=lambda name: _criterion_at(curve, tried[name], chosen))
        strengths = curve["s"][tried[best]]
        losses = {name: curve["loss"][index] for name, index in tried.items()}
        errors = {name: curve["error"][index] for name, index in tried.items()}
        values = {"values": strengths, "means": losses, "sds": errors}
        return values | {"chosen": {best: chosen}, "criterion": "change of held-out loss"}


def _criterion_at(curve, index, chosen):
    return curve["criterion"][index][np.argmin(np.abs(curve["s"][index] - chosen))]


def _by_name(part):
    if isinstance(part, dict):
        return part
    return {} if part is None else {"": part}


def _find_param(results, ending):
    names = [key[6:] for key in results if key.startswith("param_") and key.endswith(ending)]
    if len(names) != 1:
        raise ValueError(f"param: the search has {names} that end with {ending!r}; name one")
    return names[0]


def _best_at(settings, means, value):
    here = np.flatnonzero(settings == value)
    return here[np.argmax(means[here])]
