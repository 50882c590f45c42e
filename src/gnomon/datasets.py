"""Small samples with known truth, and texts with links, for tests and examples."""

import re
from importlib import import_module
from inspect import getdoc
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse

from gnomon.typing import RowsLike, SeedLike

# The parts of SciPy whose functions `load_scipy_texts` reads: those with twenty or more.
SCIPY_PARTS = (
    "fft",
    "interpolate",
    "linalg",
    "ndimage",
    "optimize",
    "signal",
    "sparse",
    "special",
    "stats",
)
# Shorter texts only say that a name is an alias.
SHORTEST_TEXT = 300


class Subspace(NamedTuple):
    """Rows of a linear Gaussian model, and what they were made from.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    Z : ndarray of shape (n_samples, n_components)
        The latent variables.
    loadings : ndarray of shape (n_features, n_components)
    mean : ndarray of shape (n_features,)
    noise_variance : float
    """

    X: np.ndarray
    Z: np.ndarray
    loadings: np.ndarray
    mean: np.ndarray
    noise_variance: float


class ClassSample(NamedTuple):
    """Rows whose classes differ in a planted subspace.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Classes 0, 1, ...
    labels : ndarray of shape (n_samples,)
        The same with -1 where the label is hidden.
    directions : ndarray of shape (n_features, n_components)
        Orthonormal basis of the subspace in which the classes differ.
    """

    X: np.ndarray
    y: np.ndarray
    labels: np.ndarray
    directions: np.ndarray


class LinkedSample(NamedTuple):
    """Rows whose shared part is smooth over a graph.

    Attributes
    ----------
    X : ndarray of shape (n_samples, n_features)
    y : ndarray of shape (n_samples,)
        Community of each node.
    adjacency : sparse array of shape (n_samples, n_samples)
        Symmetric, with zero diagonal.
    """

    X: np.ndarray
    y: np.ndarray
    adjacency: sparse.csr_array


class LinkedTexts(NamedTuple):
    """Texts of named things, what each belongs to, and which of them name each other.

    Attributes
    ----------
    names : list of str
        Function of each row.
    texts : list of str
        What its documentation says, without references to others and without examples.
    y : ndarray of shape (n_samples,), of str
        The part of SciPy that it belongs to.
    adjacency : sparse array of shape (n_samples, n_samples)
        1 where the documentation of one function names the other under "See Also"; symmetric,
        with zero diagonal.
    """

    names: list[str]
    texts: list[str]
    y: np.ndarray
    adjacency: sparse.csr_array


def make_subspace(
    n_samples: int = 200,
    n_features: int = 10,
    n_components: int = 3,
    *,
    noise_variance: float = 0.5,
    random_state: SeedLike = 0,
) -> Subspace:
    """Rows x = mean + W z + noise with loadings of clearly different lengths.

    Parameters
    ----------
    n_samples, n_features, n_components : int
    noise_variance : float, default=0.5
    random_state : int or None, default=0

    Returns
    -------
    sample : Subspace

    Examples
    --------
    >>> from gnomon.datasets import make_subspace
    >>> make_subspace(50, 8, 2).X.shape
    (50, 8)
    """
    rng = np.random.default_rng(random_state)
    axes, _ = np.linalg.qr(rng.standard_normal((n_features, n_components)))
    loadings = axes * np.linspace(4, 2, n_components)
    mean = rng.normal(scale=3, size=n_features)
    Z = rng.standard_normal((n_samples, n_components))
    noise = np.sqrt(noise_variance) * rng.standard_normal((n_samples, n_features))
    return Subspace(mean + Z @ loadings.T + noise, Z, loadings, mean, noise_variance)


def make_classes(
    n_samples: int = 300,
    n_features: int = 20,
    n_classes: int = 3,
    *,
    n_components: int = 2,
    labelled_per_class: int | None = None,
    separation: float = 3.0,
    random_state: SeedLike = 0,
) -> ClassSample:
    """Gaussian classes that differ in a planted subspace and lie in strong common variation.

    The variation that all classes share is larger than the distance of the classes, so that
    the principal components miss what the labels know.

    Parameters
    ----------
    n_samples, n_features, n_classes, n_components : int
    labelled_per_class : int or None, default=None
        Labels kept in each class; None keeps all.
    separation : float, default=3.0
        Distance of the class means, in standard deviations within a class.
    random_state : int or None, default=0

    Returns
    -------
    sample : ClassSample

    Examples
    --------
    >>> from gnomon.datasets import make_classes
    >>> sample = make_classes(labelled_per_class=2)
    >>> int((sample.labels >= 0).sum())
    6
    """
    rng = np.random.default_rng(random_state)
    axes, _ = np.linalg.qr(rng.standard_normal((n_features, n_features)))
    directions, others = axes[:, :n_components], axes[:, n_components:]
    y = rng.permutation(np.arange(n_samples) % n_classes)
    centers = _random_centers(n_classes, n_components, rng) * separation
    scales = np.linspace(4, 0.5, n_features - n_components)
    X = (centers[y] + rng.standard_normal((n_samples, n_components))) @ directions.T
    X += (rng.standard_normal((n_samples, n_features - n_components)) * scales) @ others.T
    return ClassSample(X, y, _hide_labels(y, labelled_per_class, rng), directions)


def make_linked(
    n_samples: int = 200,
    n_features: int = 30,
    n_classes: int = 3,
    *,
    degree: float = 6.0,
    mixing: Any = 0.1,
    random_state: SeedLike = 0,
) -> LinkedSample:
    """Nodes of communities with noisy content; linked nodes mostly share their community.

    Parameters
    ----------
    n_samples, n_features, n_classes : int
    degree : float, default=6.0
        Mean number of links of a node.
    mixing : float, default=0.1
        Share of links between different communities.
    random_state : int or None, default=0

    Returns
    -------
    sample : LinkedSample

    Examples
    --------
    >>> from gnomon.datasets import make_linked
    >>> make_linked(60).adjacency.shape
    (60, 60)
    """
    rng = np.random.default_rng(random_state)
    y = rng.permutation(np.arange(n_samples) % n_classes)
    n_links = round(degree * n_samples / 2)
    first = rng.integers(n_samples, size=n_links)
    second = np.where(
        rng.random(n_links) < mixing,
        rng.integers(n_samples, size=n_links),
        _same_class(y, first, rng),
    )
    topics = rng.standard_normal((n_classes, n_features))
    X = 0.5 * topics[y] + rng.standard_normal((n_samples, n_features))
    return LinkedSample(X, y, _adjacency(first, second, n_samples))


def remove_entries(X: RowsLike, share: float = 0.2, *, random_state: SeedLike = 0) -> np.ndarray:
    """A copy of X with a share of its entries replaced by NaN, at random places.

    No row and no column is emptied.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
    share : float, default=0.2
    random_state : int or None, default=0

    Returns
    -------
    X : ndarray of shape (n_samples, n_features)

    Examples
    --------
    >>> import numpy as np
    >>> from gnomon.datasets import remove_entries
    >>> int(np.isnan(remove_entries(np.ones((100, 10)), 0.3)).sum()) > 200
    True
    """
    rng = np.random.default_rng(random_state)
    X = np.array(X, dtype=float)
    gaps = rng.random(X.shape) < share
    gaps[np.arange(len(X)), rng.integers(X.shape[1], size=len(X))] = False
    gaps[rng.integers(len(X), size=X.shape[1]), np.arange(X.shape[1])] = False
    X[gaps] = np.nan
    return X


def _random_centers(n, d, rng):
    """Points of unit mean distance from their mean."""
    points = rng.standard_normal((n, d))
    points -= points.mean(axis=0)
    return points / np.linalg.norm(points, axis=1).mean()


def _hide_labels(y, kept, rng):
    if kept is None:
        return y.copy()
    labels = np.full_like(y, -1)
    for c in np.unique(y):
        rows = rng.permutation(np.flatnonzero(y == c))[:kept]
        labels[rows] = c
    return labels


def _same_class(y, nodes, rng):
    """For each node a random one of its class."""
    order = np.argsort(y, kind="stable")
    counts = np.bincount(y)
    starts = np.cumsum(counts) - counts
    classes = y[nodes]
    return order[starts[classes] + rng.integers(2**31, size=len(nodes)) % counts[classes]]


def _adjacency(first, second, n):
    keep = first != second
    ones = np.ones(keep.sum())
    A = sparse.coo_array((ones, (first[keep], second[keep])), shape=(n, n)).tocsr()
    return sparse.csr_array(((A + A.T) > 0).astype(float))


def load_scipy_texts() -> LinkedTexts:
    """The documentation of SciPy's functions: real texts with classes and links.

    They are read from the SciPy that is installed, so that their number differs a little
    between its versions; nothing is downloaded. Classes are the parts of SciPy, links join
    functions of which one names the other under "See Also".

    Returns
    -------
    sample : LinkedTexts

    Examples
    --------
    >>> from gnomon.datasets import load_scipy_texts
    >>> sample = load_scipy_texts()
    >>> sample.y[sample.names.index("dct")]
    'fft'
    """
    rows = [row for part in SCIPY_PARTS for row in _functions(part)]
    parts, names, texts = map(list, zip(*rows, strict=True))
    pairs = np.array([(i, j) for i in range(len(rows)) for j in _mentioned(i, parts, names, texts)])
    links = sparse.coo_array((np.ones(len(pairs)), tuple(pairs.T)), shape=(len(rows),) * 2)
    adjacency = ((links + links.T) > 0).astype(float).tocsr()
    return LinkedTexts(names, [_prose(text) for text in texts], np.array(parts), adjacency)


def _functions(part):
    """Part, name and documentation of the functions of a part of SciPy."""
    module = import_module(f"scipy.{part}")
    found = {name: getattr(module, name) for name in sorted(module.__all__)}
    texts = {n: getdoc(v) or "" for n, v in found.items() if callable(v) and not _is_class(v)}
    return [(part, name, text) for name, text in texts.items() if len(text) >= SHORTEST_TEXT]


def _is_class(value):
    return isinstance(value, type)


def _mentioned(i, parts, names, texts):
    """Rows of the same part that the text of row i names under "See Also"."""
    section = re.search(r"\nSee Also\n-+\n(.*?)(?:\n[A-Z][\w ]*\n-+\n|\Z)", texts[i], re.S)
    heads = re.findall(r"^\S.*", section[1], re.M) if section else []
    # Either "name, name : what it does" or ":func:`name`", with what it does below.
    words = {word for head in heads for word in re.findall(r"\w+", head.partition(" : ")[0])}
    start, stop = parts.index(parts[i]), parts.index(parts[i]) + parts.count(parts[i])
    return [j for j in range(start, stop) if j != i and names[j] in words]


def _prose(text):
    """A text up to its references, notes on others, and examples."""
    return re.split(r"\n(?:See Also|References|Examples)\n-+\n", text)[0]
