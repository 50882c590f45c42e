"""The objective along the way, for one fit or several."""

from typing import Any, Self

import numpy as np

from gnomon.displays.style import axes_or_new, colour, last_step, tidy


class ConvergenceDisplay:
    """Objective against iteration, one line per fit; the end is filled where it converged.

    Parameters
    ----------
    objectives : dict of str to array-like
        The objective of each fit at every iteration.
    converged : dict of str to bool, default=None
        Whether each fit had converged when it stopped.

    Attributes
    ----------
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    lines_ : dict of Line2D
        By the name of the fit.

    Examples
    --------
    >>> from gnomon.displays import ConvergenceDisplay
    >>> display = ConvergenceDisplay({"a": [-3.0, -2.0, -1.9], "b": [-4.0, -1.8]}).plot()
    >>> sorted(display.lines_)
    ['a', 'b']
    """

    def __init__(self, objectives: Any, *, converged: Any = None) -> None:
        self.objectives = objectives
        self.converged = converged

    @classmethod
    def from_estimator(cls, estimator: Any, *, ax: Any = None, **plot: Any) -> Self:
        """Draw the objective of one fitted estimator, or of several.

        Parameters
        ----------
        estimator : fitted estimator or Pipeline, list, or dict of name to estimator
            Each has ``objective_`` after an iterative fit.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **plot
            Passed to :meth:`plot`.

        Returns
        -------
        ConvergenceDisplay
        """
        models = {name: last_step(model)[0] for name, model in _named(estimator).items()}
        for name, model in models.items():
            if not len(getattr(model, "objective_", ())):
                raise ValueError(f"{name} has no objective_: it was not fitted by iterations")
        display = cls(
            {name: model.objective_ for name, model in models.items()},
            converged={name: getattr(model, "converged_", True) for name, model in models.items()},
        )
        return display.plot(ax, **plot)

    def plot(
        self, ax: Any = None, *, gap: bool = False, ylabel: str | None = None, legend: bool = True
    ) -> Self:
        """Draw the lines.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        gap : bool, default=False
            Draw, on a logarithmic axis, how far each value lies below the best of all fits.
        ylabel : str, default=None
            Name of the objective.
        legend : bool, default=True
            Whether to name the fits, where there are several.

        Returns
        -------
        ConvergenceDisplay
        """
        self.ax_ = axes_or_new(ax)
        self.figure_ = self.ax_.figure
        best = max(np.max(values) for values in self.objectives.values())
        self.lines_ = {}
        for i, (name, values) in enumerate(self.objectives.items()):
            values = best - np.asarray(values) if gap else np.asarray(values)
            self.lines_[name] = self._draw_line(i, name, values)
        if gap:
            self.ax_.set_yscale("log", nonpositive="mask")
        self.ax_.set_xlabel("iteration")
        self.ax_.set_ylabel(ylabel or ("below the best objective" if gap else "objective"))
        self.ax_.xaxis.get_major_locator().set_params(integer=True)
        tidy(self.ax_)
        if legend and len(self.lines_) > 1:
            self.ax_.legend(frameon=False)
        return self

    def _draw_line(self, i, name, values):
        at = np.arange(1, len(values) + 1)
        (line,) = self.ax_.plot(at, values, color=colour(i), lw=1.6, label=str(name))
        converged = self.converged is None or self.converged.get(name, True)
        filled = colour(i) if converged else "white"
        self.ax_.plot(at[-1], values[-1], "o", color=colour(i), mfc=filled, ms=6)
        return line


def _named(estimator):
    if isinstance(estimator, dict):
        return estimator
    if isinstance(estimator, list | tuple):
        return {f"fit {i}": model for i, model in enumerate(estimator, start=1)}
    return {type(last_step(estimator)[0]).__name__: estimator}
