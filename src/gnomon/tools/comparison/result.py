"""What a comparison found: a table, its tests, a recommendation, pictures and code."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from sklearn.pipeline import Pipeline

from gnomon.tools.comparison.trials import Outcome


class Row(NamedTuple):
    """A model with a number of components, and how it did.

    ``score`` and ``sd`` are over splits; ``difference`` and ``p_value`` are against the leader,
    the latter corrected for the number of models; ``apparent`` is the score on the rows the map
    was learnt from; ``control`` and ``control_apparent`` are the two scores where labels were
    shuffled. ``mark`` is "best", "tied" with the leader, or empty; ``chosen`` rows stand for
    their model.
    """

    model: str
    n_components: int
    score: float
    sd: float
    n_splits: int
    chosen: bool
    mark: str
    difference: float
    p_value: float
    apparent: float
    control: float
    control_apparent: float
    seconds: float
    memory_mb: float


class CurvePoint(NamedTuple):
    """Score of a model that was shown so many labels per class."""

    model: str
    labels: int
    score: float
    sd: float


@dataclass(frozen=True)
class Comparison:
    """The result of `gnomon.compare`.

    Attributes
    ----------
    rows : list of Row
        One for each model and number of components, the leader first.
    measure, evaluator : str
        What was measured, and the predictor on top of the embeddings.
    structure : bool
        Whether any candidate predicts y better than chance allows.
    structure_p : float
        The p value behind it, for the best of all candidates at once.
    leader : Row or None
        The row with the best chosen score; None if nothing could be scored.
    recommendation : str
        One sentence, with its reason.
    skipped, failed : dict
        Why candidates were left out, or what went wrong with them.
    warnings : dict
        The first warning that each model gave.
    stopped : str
        Why not all trials were run; empty if they were.
    learning_curve : list of CurvePoint
        Scores against the number of labels, where asked for.
    outcomes : list of Outcome
        All single results.
    pipeline : Pipeline or None
        The leader with its preparation, not fitted.
    """

    rows: Sequence[Row]
    measure: str
    evaluator: str
    structure: bool
    structure_p: float
    leader: Row | None
    recommendation: str
    skipped: dict[str, str]
    failed: dict[str, str]
    warnings: dict[str, str]
    stopped: str
    learning_curve: Sequence[CurvePoint] = ()
    outcomes: Sequence[Outcome] = ()
    pipeline: Pipeline | None = None
    code: str = ""

    def to_frame(self):
        """The table as a pandas data frame, one row for each model and number of components.

        Returns
        -------
        frame : pandas.DataFrame
            The columns are the fields of `Row`.
        """
        import pandas

        return pandas.DataFrame(list(self.rows), columns=list(Row._fields))

    def snippet(self) -> str:
        """Code that fits the recommended model to the X and y of the comparison.

        Returns
        -------
        code : str
            Python code; empty if nothing is recommended.
        """
        return self.code

    def plot(self, kind="scores", *, ax=None):
        """Draw the comparison.

        Parameters
        ----------
        kind : {"scores", "dimension", "control", "labels"}, default="scores"
            "scores" has a line for each model, with its standard deviation and what shuffled
            labels give; "dimension" the score against the number of components; "control" the
            score on seen and unseen rows with real and with shuffled labels; "labels" the
            learning curve.
        ax : matplotlib axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        ax : matplotlib axes
            With the drawing.
        """
        from gnomon.tools.comparison.figures import draw

        return draw(self, kind, ax)

    def __repr__(self):
        from gnomon.tools.comparison.text import render

        return render(self)

    def _repr_html_(self):
        from gnomon.tools.comparison.text import render_html

        return render_html(self)
