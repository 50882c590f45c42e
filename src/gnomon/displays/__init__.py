"""Pictures of fitted estimators, in scikit-learn's Display form.

Every display keeps the numbers it draws, draws them with ``plot(ax=None)``, and then has
``ax_`` and ``figure_``. ``from_estimator`` computes the numbers and plots. Nothing is shown
unasked, colours are safe for colour-blind readers, and no window system is needed.
matplotlib is imported when something is drawn.
"""

from gnomon._lazy import lazy_names

_HOMES: dict[str, str] = {
    "ConvergenceDisplay": "gnomon.displays.convergence",
    "DimensionDisplay": "gnomon.displays.curves",
    "EmbeddingDisplay": "gnomon.displays.embedding",
    "LoadingsDisplay": "gnomon.displays.loadings",
    "OverviewDisplay": "gnomon.displays.overview",
    "PermutationDisplay": "gnomon.displays.permutation",
    "RelevanceDisplay": "gnomon.displays.relevance",
    "RetrievalDisplay": "gnomon.displays.retrieval",
    "SupervisionDisplay": "gnomon.displays.curves",
}

__all__ = sorted(_HOMES)
__getattr__, __dir__ = lazy_names(__name__, _HOMES)
