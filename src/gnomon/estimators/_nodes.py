"""Rows to transform among the nodes of a graph, beside the rows of the fit."""

from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.estimators.links import Links, check_sample_index


class Nodes(NamedTuple):
    """Links among some rows of the fit, in the order ``kept``, and the new rows after them.

    ``fitted`` are the places of all rows of the fit among the nodes, None if they have none.
    """

    adjacency: sparse.csr_array
    kept: np.ndarray
    fitted: np.ndarray | None

    def stack(self, known, new) -> np.ndarray:
        """A row per node: those of the fit that are kept, then the new ones."""
        return np.concatenate([known[self.kept], new])

    def links_to_fitted(self, n_new) -> sparse.csr_array:
        """Links from the new rows to those of the fit (n_new, n_fitted)."""
        if self.fitted is None:
            raise ValueError(
                "links has the rows of X alone; link_components needs their links to the rows of "
                "the fit: pass links with sample_index"
            )
        return self.adjacency[-n_new:][:, self.fitted]


def place(links, sample_index, n_new: int, fitted_index) -> Nodes:
    """The graph that new rows are in.

    With ``sample_index`` links is the whole graph, and new rows are joined to the rows of the
    fit. Without it, links has the new rows alone, or the rows of the fit and then the new ones.
    """
    links = links if isinstance(links, Links) else Links(links)
    if sample_index is None:
        return _place_by_size(links, n_new, len(fitted_index))
    index = check_sample_index(sample_index, links.n_nodes)
    if len(index) != n_new:
        raise ValueError(f"sample_index has {len(index)} entries, X has {n_new} rows")
    kept = np.flatnonzero(~np.isin(fitted_index, index))
    chosen = np.concatenate([fitted_index[kept], index])
    if chosen.max() >= links.n_nodes:
        raise ValueError(
            f"links has {links.n_nodes} nodes, the rows of the fit go up to {chosen.max()}; pass "
            "links that hold the rows of the fit too"
        )
    fitted = np.empty(chosen.max() + 1, dtype=np.intp)
    fitted[chosen] = np.arange(len(chosen))
    return Nodes(links.subset(chosen).adjacency, kept, fitted[fitted_index])


def _place_by_size(links, n_new, n_fitted):
    if links.n_nodes == n_new:
        fitted = np.arange(n_fitted) if n_new == n_fitted else None
        return Nodes(links.adjacency, np.arange(0), fitted)
    if links.n_nodes == n_fitted + n_new:
        return Nodes(links.adjacency, np.arange(n_fitted), np.arange(n_fitted))
    raise ValueError(
        f"links has {links.n_nodes} nodes, X has {n_new} rows and the fit had {n_fitted}; accepted "
        f"are links among the rows of X ({n_new}), links among the rows of the fit and then "
        f"those of X ({n_fitted + n_new}), or links with sample_index"
    )
