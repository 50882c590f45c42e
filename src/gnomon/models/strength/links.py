"""Linked rows for a strength of supervision: content, content over the links, axes of the graph.

    F         coordinates of the rows on the principal directions of their content
    S         D^(-1/2) (A + I) D^(-1/2), the normalised adjacency; or, where the rows make their
              own graph, the mean of the k nearest rows of the fit
    U         A V |L|^(-1/2) with V and L the leading eigenvectors and eigenvalues of A
    blocks    S^t F for some steps t, and U, side by side, each of mean squared length one

Content alone (t = 0) is always a candidate. Smoothed content (t = 2, 4) suits graphs that join
rows of a kind, beside content where links are fewer; the axes tell rows by whom they link to,
also where linked rows are nothing like each other. The candidate is taken that finds the outputs
of labelled rows best where each is left out of stage 1, if it does so clearly better than content
alone: a graph without meaning, or with links that say nothing of y, changes nothing.
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy import sparse

from gnomon.linalg import graph
from gnomon.linalg.data import Data, as_data, has_gaps
from gnomon.linalg.solve import one_thread
from gnomon.models.gaussian.filling import Filling, fill
from gnomon.models.sppca.fit import SppcaFit
from gnomon.models.strength import gaps
from gnomon.models.strength.closed_form import PrincipalSpace, space_of
from gnomon.models.strength.completion import Outputs
from gnomon.models.strength.left_out import clearly_best, second_is_better
from gnomon.models.strength.rule import RULE, TINY

# Steps over the links whose smoothed content stands side by side, and whether the axes of the
# graph stand beside them; content alone first.
OF_LINKS = (((0,), False), ((2, 4), False), ((0, 2, 4), False), ((0,), True))
# The same for a graph of nearest rows: how many of them, and steps. Content stays beside what is
# smoothed, since few rows of a kind are blurred into others (`benchmarks/neighbours.py`).
OF_NEIGHBOURS = ((5, (0, 1)), (10, (0, 2)), (10, (0, 4)))
# Nearest rows are at most so large a share of all.
LARGEST_SHARE = 0.2
# Rows among which the nearest are sought; of more a sample stands for all.
MOST_ANCHORS = 5000
# Rows by which the graph is judged, those with a label among them: with half of them it is used
# less often where it helps, and the error of four maps in a plane is .017 higher.
MOST_TRIED = 2000
# Leading principal coordinates in which the nearest rows are sought: of twelve sets predictions
# by the graph are as good as with all of them (.766 right, and .762), in a third of the time.
SEARCHED = 50
# Directions of content that a head sees for each that the map sees. With as many its accuracy is
# .004 below that of a regression on all columns on two graphs with 20 labels a class, with twice as
# many as good; a map that sees them too is worse with 5 labels a class.
HEAD_SEES = 2
# Share of the loss of labelled rows that links must gain beyond two standard errors. With it none
# of 440 permuted graphs is used, without it one; of 110 real ones 105 are, and 109
# (`benchmarks/links.py --permuted`).
LEAST_GAIN = 0.05
# Leading axes of a graph: 50 tell web pages apart, and cost some products with A each.
N_AXES = 50


class LinkedRows(NamedTuple):
    """What makes blocks of rows: mean and axes (d, p) of content, steps, lengths of the blocks.

    ``coordinates`` (n, p) are those of the rows of the fit, whose links new rows may share, and
    ``graph_axes`` (n, r) is V |L|^(-1/2), None where axes of the graph are no block. A graph of
    ``n_neighbours`` nearest rows has ``smoothed``, for each step but 0 the rows a step before.
    Of the axes the map sees ``n_mapped``, None for all; what a head sees besides comes last.
    """

    mean: np.ndarray
    axes: np.ndarray
    steps: np.ndarray
    lengths: np.ndarray
    coordinates: np.ndarray
    graph_axes: np.ndarray | None = None
    n_neighbours: int = 0
    smoothed: np.ndarray | None = None
    filling: Filling | None = None
    n_mapped: int | None = None

    def n_map_columns(self, n_columns: int) -> int:
        """Columns of the blocks that the map sees, of so many."""
        if self.n_mapped is None:
            return n_columns
        return n_columns - len(self.steps) * (self.axes.shape[1] - self.n_mapped)


class Place(NamedTuple):
    """Where rows stand in a graph: A links rows ``kept`` of the fit, and then the rows.

    ``own`` says which row of the fit each of the rows is, -1 for a new one. None: they are the
    rows of the fit where as many of the same content, else new ones.
    """

    A: sparse.csr_array
    kept: np.ndarray
    own: np.ndarray | None = None


class Content(NamedTuple):
    """Rows, gaps filled, with their principal space, and what makes blocks of them, none as yet."""

    X: Data
    space: PrincipalSpace
    linked: LinkedRows

    def coordinates(self, rows=None) -> np.ndarray:
        """Coordinates (n, p) of all rows, or of those of an index."""
        return _on_axes(self.linked, self.X if rows is None else self.X.rows(rows))


def content_of(X, weights, settings) -> Content:
    """Principal directions of the rows, gaps filled."""
    filling, q = None, settings.n_components
    if has_gaps(X):
        filled = gaps.fill(X, weights, settings)
        mean, W, (noise,) = filled.ppca.mean, filled.ppca.W, filled.ppca.noise
        filling, X = Filling(mean, W, float(noise)), filled.X
    X = as_data(X)
    space = space_of(X, weights, q, settings.rng)
    filling, empty = filling or _filling_of(space, q), np.empty(0)
    mean = np.asarray(space.mean)
    return Content(X, space, LinkedRows(mean, space.axes, empty, empty, empty, filling=filling))


def learn(
    content: Content, A, outputs: Outputs, weights, for_head=0
) -> tuple[LinkedRows, np.ndarray] | None:
    """What serves the outputs best, and the blocks that it makes; None where content alone does.

    Directions for the head of a map of ``for_head`` components come last; 0 for no head.
    """
    F = content.coordinates()
    S, V = graph.normalized(A), graph.leading_axes(A, N_AXES)
    U = A @ V
    tried = []
    for steps, with_axes in OF_LINKS:
        tried.append(_measured([*_powers(F, S, steps), *([U] if with_axes else [])]))
    best = _best_of(tried, _judging(outputs, weights), LEAST_GAIN)
    if best == 0:
        return None
    (steps, with_axes), blocks = OF_LINKS[best], tried[best]
    linked = {"steps": np.array(steps), "lengths": blocks.lengths, "coordinates": F}
    linked["graph_axes"] = V if with_axes else None
    X = blocks.joined()
    if for_head:
        axes = _further_axes(content, weights, for_head)
        further = content.linked._replace(axes=axes)
        G = _on_axes(further, content.X)
        X = np.hstack([X, _joined(_powers(G, S, steps), blocks.lengths[: len(steps)])])
        linked["axes"] = np.hstack([content.linked.axes, axes])
        linked |= {"coordinates": np.hstack([F, G]), "n_mapped": F.shape[1]}
    return content.linked._replace(**linked), X.astype(content.X.dtype)


def _further_axes(content, weights, q):
    """Principal directions of content beyond those of the map, for a head."""
    n_mapped = content.linked.axes.shape[1]
    wide = space_of(content.X, weights, q, np.random.default_rng(0), HEAD_SEES)
    return wide.axes[:, n_mapped:]


def learn_neighbours(content: Content, outputs: Outputs, weights, rng):
    """The same where the graph is that of the nearest rows."""
    n = content.X.shape[0]
    tried = _sample(n, MOST_TRIED, rng, outputs.observed.any(axis=1))
    some = None if weights is None else weights[tried]
    best, found = _best_neighbours(content, tried, outputs.rows(tried), some)
    if best is None:
        return None
    if len(tried) < n:
        anchors = _sample(n, MOST_ANCHORS, rng)
        [found] = _neighbour_blocks(content, content.coordinates(), anchors, [best])
    linked, blocks = found
    return linked, blocks.joined().astype(content.X.dtype)


@one_thread
def _best_neighbours(content, tried, outputs, weights):
    """The candidate that serves some rows best, and what makes blocks of these with the blocks.

    None where content alone serves best. Candidates are tried only where one step serves better
    than none, which takes the nearest of the labelled rows alone: of 222 fits to 15 sets it ends 61
    so soon, and one of the 103 that use the graph.
    """
    possible = [c for c in OF_NEIGHBOURS if c[0] <= LARGEST_SHARE * len(tried)]
    judging = _judging(outputs, weights)
    views = _first_views(content, tried, judging[0], max((k for k, _ in possible), default=1))
    if not possible or not second_is_better(views, *judging[1:]):
        return None, None
    F, everyone = content.coordinates(tried), np.arange(len(tried))
    F = F if len(tried) == content.X.shape[0] else _short(F)
    found = _neighbour_blocks(content, F, everyone, possible)
    best = _best_of([_measured([F]), *(blocks for _, blocks in found)], judging)
    return (possible[best - 1], found[best - 1]) if best else (None, None)


def _first_views(content, tried, rows, k):
    """Content of the labelled rows alone, and beside the mean of the k nearest rows of each."""
    own = content.coordinates(tried[rows])
    yield own
    F = _short(content.coordinates(tried))
    near = graph.nearest(F[rows, :SEARCHED], F[:, :SEARCHED], k)
    yield _measured([_short(own), F[near].mean(axis=1)]).joined().astype(float)


def _short(F):
    """Rows in single precision, of entries about one: enough to judge a graph, in half the time."""
    return (F / max(np.sqrt(np.mean(F**2)), TINY)).astype(np.float32)


def _sample(n, most, rng, wanted=None):
    """Numbers of at most so many of n rows, drawn at random, those that are wanted first."""
    if n <= most:
        return np.arange(n)
    order = rng.permutation(n)
    if wanted is not None:
        order = order[np.argsort(~wanted[order], kind="stable")]
    return np.sort(order[:most])


def expand(linked: LinkedRows, X, place: Place) -> np.ndarray:
    """The blocks of rows X, in the dtype of X."""
    F = _coordinates(linked, X)
    if linked.n_neighbours:
        lead, anchors = F[:, :SEARCHED], linked.coordinates[:, :SEARCHED]
        near = graph.nearest(lead, anchors, linked.n_neighbours)
        S = graph.means_of(near, len(linked.coordinates))
        return _joined([F, *(S @ Z for Z in np.asarray(linked.smoothed))], linked.lengths).astype(
            X.dtype
        )
    together = np.vstack([linked.coordinates[place.kept], F])
    S, steps = graph.normalized(place.A), linked.steps.tolist()
    parts = [block[len(place.kept) :] for block in _powers(together, S, steps)]
    blocks = [part[:, : linked.n_mapped] for part in parts]
    if linked.graph_axes is not None:
        blocks.append(_on_graph_axes(linked, F, place))
    if linked.n_mapped is None:
        return _joined(blocks, linked.lengths).astype(X.dtype)
    further = _joined([part[:, linked.n_mapped :] for part in parts], linked.lengths[: len(parts)])
    return np.hstack([_joined(blocks, linked.lengths), further]).astype(X.dtype)


def with_unseen_columns(fitted: SppcaFit, n_columns: int) -> SppcaFit:
    """A fit to the first columns as one to so many, of which the others count nothing."""

    def grown(values):
        gap = (0, n_columns - len(values))
        return np.pad(values, [gap] + [(0, 0)] * (values.ndim - 1))

    return fitted._replace(
        mean=grown(fitted.mean),
        state=fitted.state._replace(W=grown(fitted.state.W)),
        projection=grown(fitted.projection),
        outputs=fitted.outputs._replace(coef=grown(fitted.outputs.coef)),
        wide=None,
    )


def _filling_of(space, q):
    """PPCA in closed form, from the principal space of complete rows."""
    d, lead = len(space.axes), space.variances[:q]
    noise = max(space.total - lead.sum(), 0.0) / max(d - len(lead), 1)
    noise = float(max(noise, RULE.rounding * space.total))
    W = space.axes[:, :q] * np.sqrt(np.maximum(lead - noise, 0.0))
    return Filling(np.asarray(space.mean, dtype=float), W, noise)


def _coordinates(linked, X):
    return _on_axes(linked, as_data(fill(linked.filling, X)))


def _on_axes(linked, rows):
    return np.asarray(rows.less_mean(linked.mean) @ linked.axes, dtype=float)


def _powers(F, S, steps):
    """S^t F for the steps t, ascending."""
    for t in range(max(steps) + 1):
        F = S @ F if t else F
        if t in steps:
            yield F


def _neighbour_blocks(content, F, anchors, candidates):
    """For each candidate content with the graph of nearest anchors, and the blocks of all rows."""
    plain = content.linked._replace(coordinates=F[anchors])
    lead = F[:, :SEARCHED]
    near = graph.nearest(lead, lead[anchors], max((k for k, _ in candidates), default=1))
    found = []
    for k in sorted({k for k, _ in candidates}):
        S, wanted = graph.means_of(near[:, :k], len(anchors)), [c for c in candidates if c[0] == k]
        most = max(t for _, steps in wanted for t in steps)
        powers = list(_powers(F[anchors], S[anchors], range(most)))
        for _, steps in wanted:
            smoothed = [powers[t - 1] for t in steps if t > 0]
            blocks = _measured([F, *(S @ Z for Z in smoothed)])
            linked = {"steps": np.array(steps), "lengths": blocks.lengths, "n_neighbours": k}
            found.append((plain._replace(**linked, smoothed=np.array(smoothed)), blocks))
    return found


def _on_graph_axes(linked, F, place):
    """Rows by whom they link to among the rows of the fit."""
    own = place.own
    if own is None:
        shape = linked.coordinates.shape
        same = F.shape == shape and np.allclose(F, linked.coordinates, atol=np.abs(F).max() * 1e-5)
        own = np.arange(len(F)) if same else np.full(len(F), -1)
    nodes = np.concatenate([place.kept, own])
    known = nodes >= 0
    _warn_of_rows_apart(place, known)
    return place.A[len(place.kept) :][:, known] @ linked.graph_axes[nodes[known]]


def _warn_of_rows_apart(place, known):
    """Warn where axes of the graph are used and no row has a link to a row of the fit."""
    if not place.A[len(place.kept) :][:, known].nnz:
        warnings.warn(
            "the model uses axes of the graph, and no row has a link to a row of the fit: nothing "
            "is known of where they lie on these; pass links among the rows of the fit and these, "
            "or sample_index where rows are those of the fit",
            stacklevel=2,
        )


class Blocks(NamedTuple):
    """Blocks (n, p) that stand side by side, each of mean squared length one, and their lengths."""

    parts: list[np.ndarray]
    lengths: np.ndarray

    def joined(self, rows=slice(None)) -> np.ndarray:
        """The blocks of some rows side by side."""
        return _joined([part[rows] for part in self.parts], self.lengths)


def _measured(parts):
    means = [max(float(np.vdot(part, part)) / len(part), TINY) for part in parts]
    return Blocks(parts, np.sqrt(means))


def _joined(blocks, lengths):
    return np.hstack([block / length for block, length in zip(blocks, lengths, strict=True)])


def _judging(outputs, weights):
    """Numbers of the labelled rows, their outputs, and their weights."""
    rows = np.flatnonzero(outputs.observed.any(axis=1))
    return rows, outputs.rows(rows), np.ones(len(rows)) if weights is None else weights[rows]


def _best_of(tried, judging, least_gain=0.0):
    """Number of the blocks that serve the labelled rows best, 0 unless clearly so."""
    rows, known, weights = judging
    views = [blocks.joined(rows).astype(float) for blocks in tried]
    return clearly_best(views, known, weights, least_gain)
