"""Pictures of fitted estimators, in scikit-learn's Display form.

Every display keeps the numbers it draws, draws them with ``plot(ax=None)``, and then has
``ax_`` and ``figure_``. ``from_estimator`` computes the numbers and plots. Nothing is shown
unasked, colours are safe for colour-blind readers, and no window system is needed.
matplotlib is imported when something is drawn.
"""

from typing import TYPE_CHECKING

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

if TYPE_CHECKING:
    # Type checkers do not run what imports names when they are used.
    from gnomon.displays.convergence import ConvergenceDisplay as ConvergenceDisplay
    from gnomon.displays.curves import DimensionDisplay as DimensionDisplay
    from gnomon.displays.curves import SupervisionDisplay as SupervisionDisplay
    from gnomon.displays.embedding import EmbeddingDisplay as EmbeddingDisplay
    from gnomon.displays.loadings import LoadingsDisplay as LoadingsDisplay
    from gnomon.displays.overview import OverviewDisplay as OverviewDisplay
    from gnomon.displays.permutation import PermutationDisplay as PermutationDisplay
    from gnomon.displays.relevance import RelevanceDisplay as RelevanceDisplay
    from gnomon.displays.retrieval import RetrievalDisplay as RetrievalDisplay
