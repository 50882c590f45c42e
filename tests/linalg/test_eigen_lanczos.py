import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.sparse.linalg import ArpackNoConvergence

from gnomon.linalg import eigen
from gnomon.linalg.data import Matrix
from gnomon.linalg.stacked import center


@pytest.fixture
def X(rng):
    X = sparse.random_array((200, 60), density=0.1, rng=rng)
    return center(Matrix(sparse.csr_array(X @ sparse.diags_array(np.linspace(3, 1, 60)))))[1]


def test_pairs_are_those_of_the_moments(X, rng):
    values, vectors = eigen.from_lanczos(X, 4, rng)
    expected = eigen.from_moments(X, 4)
    assert_allclose(values, expected.values, rtol=1e-8)
    gap = vectors @ vectors.T - expected.vectors @ expected.vectors.T
    assert np.abs(gap).max() < 1e-5


def test_what_does_not_converge_is_found_in_blocks(X, rng, monkeypatch):
    def gives_up(*arguments, **options):
        raise ArpackNoConvergence("too slow", np.empty(0), np.empty((60, 0)))

    monkeypatch.setattr(eigen, "eigsh", gives_up)
    values, _ = eigen.from_lanczos(X, 4, rng)
    assert_allclose(values, eigen.from_moments(X, 4).values, rtol=1e-6)
