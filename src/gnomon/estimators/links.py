"""Links among rows: a graph that survives cross-validation."""

import warnings
from collections.abc import Sequence
from numbers import Integral
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import sparse

from gnomon.estimators._door import check_option, count, in_reach
from gnomon.linalg import graph
from gnomon.linalg.data import has_gaps
from gnomon.models.strength import links as linked
from gnomon.models.strength.completion import Outputs

# Pairs of nodes that a third one joins: with so many a graph takes a gigabyte, and says little.
MOST_PAIRS = 30_000_000
# What asks for the graph of nearest rows in the place of links.
NEIGHBOURS = "neighbours"


class Links:
    """Undirected, weighted links among the nodes 0, 1, ..., n_nodes - 1.

    Cross-validation cuts everything that looks like an array to the rows of a fold. A square
    adjacency loses its rows but not its columns, and a list of pairs loses pairs. `Links` does
    not look like an array: it is handed on whole, and ``sample_index``, an ordinary array with
    the node of each row, is cut in its place.

    Parameters
    ----------
    adjacency : array-like or sparse array of shape (n_nodes, n_nodes)
        Entry (i, j) is the weight of the link between i and j, 0 for none. Weights are finite
        and not negative; booleans and integers of any width are read as numbers. Directed links
        become undirected by the larger of the two weights, so an adjacency and its transpose
        make the same graph. Links of a node with itself are dropped with a warning.

    Attributes
    ----------
    adjacency : csr_array of shape (n_nodes, n_nodes)
        Symmetric, float64, zero diagonal.
    n_nodes, n_links : int
        Numbers of nodes and of links, each link counted once.
    degrees : ndarray of shape (n_nodes,)
        Sum of the weights at each node.

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon import Links
    >>> links = Links([[0, 1, 0], [1, 0, 0], [0, 1, 0]])
    >>> links
    Links(n_nodes=3, n_links=2)
    >>> links.adjacency.toarray()
    array([[0., 1., 0.],
           [1., 0., 1.],
           [0., 1., 0.]])
    """

    def __init__(self, adjacency: Any) -> None:
        self.adjacency = _drop_self_links(graph.undirected(_square(adjacency, "adjacency")))

    @classmethod
    def from_edges(
        cls,
        pairs: Any,
        *,
        n_nodes: int | None = None,
        weights: ArrayLike | None = None,
        nodes: Sequence | None = None,
    ) -> Self:
        """Links from pairs of nodes.

        Parameters
        ----------
        pairs : array-like or data frame of shape (n_pairs, 2)
            A link per row. A pair that is given more than once, in either direction, is one
            link with the largest of its weights.
        n_nodes : int, optional
            Number of nodes; by default one more than the largest number in ``pairs``.
        weights : array-like of shape (n_pairs,), optional
            A weight per pair; 1 by default.
        nodes : sequence, optional
            Names of the nodes in the order of the rows. ``pairs`` then holds names.

        Returns
        -------
        Links

        Examples
        --------
        >>> from gnomon import Links
        >>> Links.from_edges([(0, 1), (1, 2)], n_nodes=4)
        Links(n_nodes=4, n_links=2)
        >>> Links.from_edges([("a", "c")], nodes=["a", "b", "c"])
        Links(n_nodes=3, n_links=1)
        """
        pairs = pairs.to_numpy() if hasattr(pairs, "to_numpy") else pairs
        if nodes is not None:
            pairs, n_nodes = _numbered(pairs, nodes), len(nodes)
        pairs = _read_pairs(pairs)
        n_nodes = _count_nodes(pairs, n_nodes)
        return cls(graph.from_pairs(pairs, _read_weights(weights, len(pairs)), n_nodes))

    @classmethod
    def from_edge_index(
        cls, edge_index: Any, *, n_nodes: int | None = None, edge_weight: Any = None
    ) -> Self:
        """Links from an edge index of shape (2, n_edges), an array or a torch tensor.

        Parameters
        ----------
        edge_index : array-like or tensor of shape (2, n_edges)
            Sources in the first row, targets in the second.
        n_nodes : int, optional
            Number of nodes; by default one more than the largest number in ``edge_index``.
        edge_weight : array-like or tensor of shape (n_edges,), optional
            A weight per edge; 1 by default.

        Returns
        -------
        Links

        Examples
        --------
        >>> from gnomon import Links
        >>> Links.from_edge_index([[0, 1, 1], [1, 0, 2]])
        Links(n_nodes=3, n_links=2)
        """
        edge_index = np.asarray(in_reach(edge_index))
        if edge_index.ndim != 2 or edge_index.shape[0] != 2:
            raise ValueError(f"edge_index has shape {edge_index.shape}; accepted is (2, n_edges)")
        weights = None if edge_weight is None else in_reach(edge_weight)
        return cls.from_edges(edge_index.T, n_nodes=n_nodes, weights=weights)

    @classmethod
    def from_networkx(
        cls, graph: Any, *, nodes: Sequence | None = None, weight: str | None = "weight"
    ) -> Self:
        """Links from a networkx graph, directed or not.

        Parameters
        ----------
        graph : networkx.Graph
            Any graph of networkx.
        nodes : sequence, optional
            The nodes in the order of the rows; by default the order of the graph.
        weight : str, optional
            The edge attribute that holds the weight; 1 where an edge has none.

        Returns
        -------
        Links

        Examples
        --------
        >>> import networkx as nx
        >>> from gnomon import Links
        >>> Links.from_networkx(nx.path_graph(4))
        Links(n_nodes=4, n_links=3)
        """
        nodes = list(graph.nodes) if nodes is None else list(nodes)
        edges = list(graph.edges(data=weight, default=1))
        pairs = [edge[:2] for edge in edges]
        return cls.from_edges(pairs, weights=[edge[-1] for edge in edges], nodes=nodes)

    @classmethod
    def colinks(cls, directed: Any) -> Self:
        """Links between nodes that a third one joins, the way of [LYZ09] for web pages.

        Two nodes are linked if another node links to both, or if both link to another. The
        directed links themselves are left out. Hubs make such a graph dense: a page with k
        links joins k (k - 1) / 2 pairs. More than 30 million pairs are refused.

        Parameters
        ----------
        directed : array-like or sparse array of shape (n_nodes, n_nodes)
            Entry (i, j) is not 0 if i links to j.

        Returns
        -------
        Links

        Examples
        --------
        >>> from gnomon import Links
        >>> Links.colinks([[0, 1, 1], [0, 0, 0], [0, 0, 0]]).adjacency.toarray()
        array([[0., 0., 0.],
               [0., 0., 1.],
               [0., 1., 0.]])
        """
        directed = _square(directed, "directed")
        _check_hubs(directed)
        return cls(graph.colinks(directed))

    @property
    def n_nodes(self) -> int:
        """Number of nodes."""
        return self.adjacency.shape[0]

    @property
    def n_links(self) -> int:
        """Number of links, each counted once."""
        return self.adjacency.nnz // 2

    @property
    def degrees(self) -> np.ndarray:
        """Sum of the weights at each node."""
        return self.adjacency.sum(axis=1)

    def subset(self, sample_index: ArrayLike | None) -> "Links":
        """The links among some nodes, in the order given.

        Parameters
        ----------
        sample_index : array-like of int of shape (n_samples,)
            Nodes, none of them twice.

        Returns
        -------
        Links

        Examples
        --------
        >>> from gnomon import Links
        >>> Links.from_edges([(0, 1), (1, 2), (2, 3)]).subset([3, 2, 0])
        Links(n_nodes=3, n_links=1)
        """
        index = check_sample_index(sample_index, n_nodes=self.n_nodes)
        part = object.__new__(Links)
        part.adjacency = self.adjacency[index][:, index]
        return part

    def __repr__(self):
        return f"Links(n_nodes={self.n_nodes}, n_links={self.n_links})"


class TakesLinks:
    """Rows that are read together with their links, where the links serve the outputs."""

    def _read(self, X, links=None, sample_index=None):
        """Rows for a fitted model: features, or blocks of content and what links add to it."""
        X = super()._read(X)  # type: ignore[misc]
        if links is not None and not hasattr(self, "links_used_"):
            raise ValueError("links is given, but the model was fitted without links")
        if not getattr(self, "links_used_", False):
            return X
        return linked.expand(self.linked_rows_, X, self._place(X, links, sample_index))

    def _place(self, X, links, sample_index):
        """The graph in which rows X stand, and which rows of the fit are there too."""
        n, by_rows = X.shape[0], bool(self.linked_rows_.n_neighbours)
        if isinstance(links, str) != by_rows and links is not None:
            asked = "the graph of nearest rows" if by_rows else "links that were given"
            raise ValueError(f"links is not what the model was fitted with: {asked}")
        if by_rows or links is None:
            nobody = np.arange(0)
            return linked.Place(sparse.csr_array((n, n)), nobody)
        A, kept = place_rows(links, sample_index, n, self.sample_index_)
        own = None
        if sample_index is not None:
            own = _positions(np.asarray(sample_index), self.sample_index_)
        return linked.Place(A, kept, own)

    def _refuse_linked(self, what):
        """Rows that share content over links have none of this on their own."""
        if getattr(self, "links_used_", False):
            raise ValueError(
                f"{what} is not defined where content is smoothed over links; "
                'PRPCA(relation="learnt") is a model of linked rows that has it'
            )

    def _joined(self, problem, n_rows, links, sample_index, settings, with_head=False):
        """The problem of that many rows, with the blocks of links where these serve the outputs.

        With columns for a head at the end if asked for. Also the principal space of the rows
        where they stay as they are, without gaps.
        """
        if problem.X.shape[0] < n_rows:
            raise ValueError("sample_weight has zeros; with links leave those rows out of all")
        if not problem.observed.any():
            raise ValueError("links are judged by outputs that differ, and y has none; use PRPCA")
        A = _adjacency(links, n_rows, sample_index)
        content = linked.content_of(problem.X, problem.weights, settings)
        known = Outputs(problem.Y, problem.observed, problem.labels), problem.weights
        if A is None:
            found = linked.learn_neighbours(content, *known, settings.rng)
        else:
            found = linked.learn(content, A, *known, settings.n_components if with_head else 0)
        self.links_used_ = found is not None
        if found is None:
            return problem, None if has_gaps(problem.X) else content.space
        index = np.arange(n_rows) if sample_index is None else sample_index
        self.sample_index_ = check_sample_index(index, n_rows=n_rows)
        self.linked_rows_, X = found
        return problem._replace(X=X), None


def _adjacency(links, n_rows, sample_index):
    """The graph of the rows, None where they make their own."""
    if isinstance(links, str):
        check_option("links", links, (NEIGHBOURS,))
        return None
    return read_links(links, n_rows, sample_index).adjacency


def _positions(nodes, fitted):
    """Place of each node among those of the fit, -1 for the others."""
    order = np.argsort(fitted)
    place = order[np.minimum(np.searchsorted(fitted, nodes, sorter=order), len(order) - 1)]
    return np.where(fitted[place] == nodes, place, -1)


def check_sample_index(sample_index, *, n_nodes=None, n_rows=None) -> np.ndarray:
    """``sample_index`` as distinct nodes, one for each row where their numbers are known."""
    index = np.asarray(in_reach(sample_index))
    if index.ndim != 1 or (index.dtype.kind not in "iu" and index.size):
        raise ValueError(
            f"sample_index has shape {index.shape} and dtype {index.dtype}; accepted is a list of "
            "node numbers, one per row of X"
        )
    if n_rows is not None and len(index) != n_rows:
        entries, rows = count(len(index), "entry", "entries"), count(n_rows, "row")
        raise ValueError(f"sample_index has {entries}, X has {rows}")
    index = index.astype(np.intp)
    last = np.inf if n_nodes is None else n_nodes - 1
    if index.size and (index.min() < 0 or index.max() > last):
        raise ValueError(
            f"sample_index runs from {index.min()} to {index.max()}; the nodes are 0 to {last}"
        )
    if len(np.unique(index)) < len(index):
        raise ValueError("sample_index names a node twice; each row of X must be a node of its own")
    return index


def read_links(links, n_rows, sample_index=None) -> Links:
    """The links among the rows of X, from `Links` or a bare adjacency."""
    if not isinstance(links, Links):
        links = _from_bare(links, n_rows if sample_index is None else None)
    if sample_index is not None:
        return links.subset(check_sample_index(sample_index, n_rows=n_rows))
    if links.n_nodes != n_rows:
        raise ValueError(
            f"links has {count(links.n_nodes, 'node')}, X has {count(n_rows, 'row')}; pass "
            "sample_index, the node of each row, where X holds some of the nodes only"
        )
    return links


def place_rows(links, sample_index, n_new: int, fitted_index):
    """Links among some rows of the fit and then new rows, and which rows of the fit these are.

    With ``sample_index`` links is the whole graph, and new rows are joined to the rows of the
    fit. Without it, links has the new rows alone, or the rows of the fit and then the new ones.
    """
    links = links if isinstance(links, Links) else Links(links)
    if sample_index is None:
        return links.adjacency, _kept_by_size(links.n_nodes, n_new, len(fitted_index))
    index = check_sample_index(sample_index, n_nodes=links.n_nodes, n_rows=n_new)
    kept = np.flatnonzero(~np.isin(fitted_index, index))
    chosen = np.concatenate([fitted_index[kept], index])
    if chosen.max() >= links.n_nodes:
        raise ValueError(
            f"links has {count(links.n_nodes, 'node')}, the rows of the fit go up to "
            f"{chosen.max()}; pass links that hold the rows of the fit too"
        )
    return links.subset(chosen).adjacency, kept


def _kept_by_size(n_nodes, n_new, n_fitted):
    if n_nodes == n_new:
        return np.arange(0)
    if n_nodes == n_fitted + n_new:
        return np.arange(n_fitted)
    raise ValueError(
        f"links has {count(n_nodes, 'node')}, X has {count(n_new, 'row')} and the fit had "
        f"{n_fitted}; accepted are links among the rows of X ({n_new}), links among the rows of "
        f"the fit and then those of X ({n_fitted + n_new}), or links with sample_index"
    )


def _from_bare(links, n_rows) -> Links:
    if hasattr(links, "edges") and hasattr(links, "nodes"):
        raise TypeError("links is a graph object; pass Links.from_networkx(graph)")
    shape = links.shape if hasattr(links, "shape") else np.shape(links)
    if len(shape) == 2 and shape[1] == 2 and n_rows not in (None, 2):
        raise ValueError(
            f"links has shape {tuple(shape)}, a list of pairs; pass Links.from_edges(pairs, "
            "n_nodes=n_rows)"
        )
    if n_rows is not None and tuple(shape) != (n_rows, n_rows):
        raise ValueError(
            f"links has shape {tuple(shape)}, X has {count(n_rows, 'row')}; a bare adjacency must "
            "be square. Cross-validation cuts its rows and not its columns: pass Links(adjacency) "
            "and sample_index=np.arange(n_rows) instead"
        )
    return Links(links)


def _square(adjacency, name):
    """A square matrix of finite numbers >= 0, as float64, so that no product overflows."""
    A: Any = adjacency if sparse.issparse(adjacency) else np.asarray(adjacency)
    if A.ndim != 2 or A.shape[0] != A.shape[1] or A.shape[0] == 0:
        raise ValueError(f"{name} has shape {A.shape}; accepted is a square, (n_nodes, n_nodes)")
    if A.dtype.kind == "O":
        A = A.astype(float)
    if A.dtype.kind not in "biuf":
        raise TypeError(f"{name} has dtype {A.dtype}; accepted are real numbers or booleans")
    A = sparse.csr_array(A.astype(float))
    A.sum_duplicates()
    if not np.all(np.isfinite(A.data)):
        raise ValueError(f"{name} has NaN or infinite weights; accepted are finite numbers >= 0")
    if A.nnz and A.data.min() < 0:
        raise ValueError(
            f"{name} has negative weights, the least is {A.data.min()}; accepted are numbers >= 0"
        )
    return A


def _check_hubs(directed):
    """Refuse nodes that join more pairs than memory holds, before they are joined."""
    largest, pairs = graph.joined_pairs(directed)
    if pairs > MOST_PAIRS:
        raise ValueError(
            f"directed has a node with {count(largest, 'link')}; links of one kind join up to "
            f"{pairs:,} pairs, accepted are {MOST_PAIRS:,}; leave the largest nodes out"
        )


def _drop_self_links(A) -> sparse.csr_array:
    n_self = np.count_nonzero(A.diagonal())
    if not n_self:
        return A
    warnings.warn(
        f"{count(n_self, 'node is linked with itself', 'nodes are linked with themselves')}; "
        "such links are left out",
        stacklevel=3,
    )
    return graph.without_loops(A)


def _numbered(pairs, nodes):
    number = {node: i for i, node in enumerate(nodes)}
    if len(number) < len(nodes):
        raise ValueError("nodes holds a name twice")
    try:
        return np.array([(number[a], number[b]) for a, b in pairs]).reshape(-1, 2)
    except KeyError as error:
        raise ValueError(f"pairs has the node {error.args[0]!r}, which nodes lacks") from error


def _read_pairs(pairs) -> np.ndarray:
    pairs = np.asarray(pairs)
    if pairs.size == 0:
        return np.empty((0, 2), dtype=np.int64)
    if pairs.ndim != 2 or pairs.shape[1] != 2:
        raise ValueError(f"pairs has shape {pairs.shape}; accepted is (n_pairs, 2)")
    if pairs.dtype.kind not in "iu":
        raise TypeError(f"pairs has dtype {pairs.dtype}; accepted are whole numbers, or pass nodes")
    if pairs.min() < 0:
        raise ValueError(f"pairs has the node {pairs.min()}; accepted are numbers from 0")
    return pairs.astype(np.int64)


def _read_weights(weights, n_pairs) -> np.ndarray:
    weights = np.ones(n_pairs) if weights is None else np.asarray(weights, dtype=float)
    if weights.shape != (n_pairs,):
        raise ValueError(f"weights has shape {weights.shape}; accepted is ({n_pairs},)")
    if not np.all(weights >= 0) or np.isinf(weights).any():
        raise ValueError("weights has NaN, infinite or negative entries; accepted are numbers >= 0")
    return weights


def _count_nodes(pairs, n_nodes) -> int:
    least = int(pairs.max(initial=-1)) + 1
    if n_nodes is None:
        n_nodes = least
    if isinstance(n_nodes, bool) or not isinstance(n_nodes, Integral) or n_nodes < max(least, 1):
        raise ValueError(
            f"n_nodes == {n_nodes!r}; accepted are integers from {max(least, 1)}, one more than "
            "the largest number in pairs"
        )
    return int(n_nodes)
