"""Real labels against permuted labels: structure found, or invented."""

from typing import Any, Self

import numpy as np
from sklearn.base import clone
from sklearn.model_selection import cross_val_score
from sklearn.neighbors import KNeighborsClassifier, KNeighborsRegressor
from sklearn.pipeline import make_pipeline

from gnomon.displays.embedding import EmbeddingDisplay
from gnomon.displays.style import FAINT, GREY, PALETTE, axes_or_new, embed, panels, tidy
from gnomon.estimators import check_option, kind_of, permuted_labels
from gnomon.estimators.labelled import LabelledOnly, labelled_scorer
from gnomon.estimators.selection import SemiSupervisedSplit
from gnomon.typing import OutputsLike, RowsLike, SeedLike

KINDS = ("scores", "embedding")


class PermutationDisplay:
    """Held-out score with the real labels against the scores with permuted ones.

    Supervised maps separate classes on the rows they were fitted on even when labels mean
    nothing. This display refits with permuted labels and shows what is left.

    Parameters
    ----------
    score : float
        Held-out score with the real labels.
    permuted_scores : array-like of shape (m,)
        Held-out scores with permuted labels.
    embeddings : tuple of two ndarrays of shape (n, q), default=None
        The map from real labels and one from permuted labels.
    labels : tuple of two arrays of shape (n,), default=None
        The real and the permuted labels.

    Attributes
    ----------
    p_value : float
        Share of scores, the real one included, that are at least the real one.
    ax_, figure_ : matplotlib Axes and Figure
        Where it was drawn.
    axes_ : ndarray of Axes
        All panels; two for ``kind="embedding"``.

    Examples
    --------
    >>> from gnomon.displays import PermutationDisplay
    >>> display = PermutationDisplay(0.9, [0.4, 0.5, 0.45]).plot()
    >>> display.p_value
    0.25
    """

    def __init__(
        self, score: Any, permuted_scores: Any, *, embeddings: Any = None, labels: Any = None
    ) -> None:
        self.score = score
        self.permuted_scores = permuted_scores
        self.embeddings = embeddings
        self.labels = labels

    @property
    def p_value(self) -> Any:
        """Share of scores, the real one included, that are at least the real one."""
        scores = np.asarray(self.permuted_scores)
        return float((1 + np.sum(scores >= self.score)) / (1 + len(scores)))

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: RowsLike,
        y: OutputsLike,
        *,
        n_permutations: int = 19,
        cv: Any = 5,
        scoring: Any = None,
        random_state: SeedLike = 0,
        n_jobs: int | None = None,
        ax: Any = None,
        **plot: Any,
    ) -> Self:
        """Refit an estimator with real and with permuted labels and draw both.

        The score is that of the nearest labelled neighbour in the embedding, on held-out
        labelled rows. Labels are permuted among labelled rows; unlabelled ones stay so.

        Parameters
        ----------
        estimator : estimator or Pipeline
            Anything with ``fit`` and ``transform``; it is cloned, fitted or not.
        X : array-like of shape (n, d)
            Data.
        y : array-like of shape (n,)
            Classes (-1 or None is unlabelled) or numbers (NaN is unlabelled).
        n_permutations : int, default=19
            How often to permute; 19 can show a p-value of 0.05.
        cv : int or cross-validator, default=5
            Folds among labelled rows.
        scoring : str or callable, default=None
            As in scikit-learn; accuracy for classes and R² for numbers if None.
        random_state : int, default=0
            Makes the permutations.
        n_jobs : int, default=None
            Folds fitted at the same time.
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        **plot
            Passed to :meth:`plot`.

        Returns
        -------
        PermutationDisplay
        """
        numeric = kind_of(y) == "numeric"
        judge = KNeighborsRegressor(1) if numeric else KNeighborsClassifier(1)
        model = make_pipeline(clone(estimator), LabelledOnly(judge))
        options = {"cv": SemiSupervisedSplit(cv), "scoring": labelled_scorer(scoring)}
        rng = np.random.default_rng(random_state)
        shuffled = [permuted_labels(y, rng) for _ in range(n_permutations)]
        scores = [
            float(np.mean(cross_val_score(model, X, labels, n_jobs=n_jobs, **options)))
            for labels in [y, *shuffled]
        ]
        maps = tuple(embed(clone(estimator).fit(X, labels), X) for labels in (y, shuffled[0]))
        display = cls(scores[0], scores[1:], embeddings=maps, labels=(y, shuffled[0]))
        return display.plot(ax, **plot)

    def plot(self, ax: Any = None, *, kind: str = "scores") -> Self:
        """Draw the scores, or the two maps.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Where to draw; a new figure if None.
        kind : {"scores", "embedding"}, default="scores"
            A histogram of scores with the real one marked, or both maps side by side.

        Returns
        -------
        PermutationDisplay
        """
        check_option("kind", kind, KINDS)
        if kind == "embedding":
            self._draw_maps(ax)
        else:
            self._draw_scores(ax)
        return self

    def _draw_scores(self, ax):
        self.ax_ = axes_or_new(ax)
        self.axes_, self.figure_ = np.array([self.ax_]), self.ax_.figure
        bins = np.histogram_bin_edges([*self.permuted_scores, self.score], bins=25)
        self.ax_.hist(
            self.permuted_scores, bins=bins, color=FAINT, edgecolor=GREY, label="permuted labels"
        )
        self.ax_.axvline(self.score, color=PALETTE[1], lw=2.5, label="real labels")
        self.ax_.set(xlabel="held-out score", ylabel="permutations")
        self.ax_.set_title(f"p = {self.p_value:.2g}", size="medium")
        self.ax_.yaxis.get_major_locator().set_params(integer=True)
        self.ax_.legend(frameon=False)
        tidy(self.ax_)

    def _draw_maps(self, ax):
        if self.embeddings is None:
            raise ValueError("kind='embedding' needs embeddings; use from_estimator")
        self.axes_ = panels(ax, 1, 2, figsize=(9.5, 4.2)).ravel()
        self.ax_ = self.axes_[0] if ax is None else ax
        self.figure_ = self.axes_[0].figure
        scores = (self.score, float(np.mean(self.permuted_scores)))
        for i, name in enumerate(("real labels", "permuted labels")):
            EmbeddingDisplay.from_data(
                self.embeddings[i], self.labels[i], ax=self.axes_[i], legend=i == 1
            )
            self.axes_[i].set_title(f"{name}: held-out score {scores[i]:.2f}", size="medium")
