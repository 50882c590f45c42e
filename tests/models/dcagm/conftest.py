import numpy as np
import pytest

from gnomon.linalg.data import Matrix
from gnomon.models.dcagm.mixture import Mixture
from gnomon.models.dcagm.rows import Sample


@pytest.fixture
def sample(rng):
    """Rows of three classes with unequal weights: 20 labelled, 16 in chunks, 24 alone."""
    n, d = 60, 5
    classes = rng.integers(3, size=n)
    X = rng.standard_normal((n, d)) + 1.5 * rng.standard_normal((3, d))[classes]
    X -= X.mean(axis=0)
    labels = np.where(np.arange(n) < 20, classes, -1)
    labels[:3] = [0, 1, 2]
    chunks = np.full(n, -1)
    chunks[24:40] = np.sort(np.r_[np.arange(5), np.arange(5), np.arange(5), 0])
    weights = rng.uniform(0.5, 2, size=n)
    return Sample(Matrix(X), labels, chunks, weights, np.repeat(np.arange(3), 2), float(d))


@pytest.fixture
def make_mixture(rng):
    """A random mixture in two dimensions; covariances per class or per Gaussian."""

    def make(per_gaussian=False, sizes=(2, 1, 3), q=2):
        class_of = np.repeat(np.arange(len(sizes)), sizes)
        covariance_of = np.arange(len(class_of)) if per_gaussian else class_of
        m, roots = len(class_of), rng.standard_normal((covariance_of.max() + 1, q, q))
        beta = rng.uniform(0.2, 1, m)
        return Mixture(
            class_of,
            covariance_of,
            rng.dirichlet(np.ones(len(sizes))),
            beta / np.bincount(class_of, beta)[class_of],
            rng.standard_normal((m, q)),
            roots @ roots.swapaxes(1, 2) + 0.5 * np.eye(q),
        )

    return make
