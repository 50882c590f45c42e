import numpy as np
import pytest
from scipy import sparse

from gnomon.linalg.data import Matrix, center
from gnomon.models.relational import model

n, d, q, r = 14, 5, 2, 1


@pytest.fixture
def A(rng):
    upper = np.triu(rng.random((n, n)) < 0.2, 1).astype(float)
    upper[0, :] = 0  # an isolated node
    return sparse.csr_array(upper + upper.T)


@pytest.fixture
def data(A, rng):
    """Rows with as many Lanczos steps as nodes, so that all is exact."""
    _, X = center(Matrix(rng.standard_normal((n, d)) @ rng.standard_normal((d, d))))
    return model.link(X, A, rng, steps=n)


@pytest.fixture
def X(data):
    """The centred rows as an array."""
    return np.concatenate(list(data.X.dense_blocks()))


@pytest.fixture
def state(rng):
    U = np.linalg.qr(rng.standard_normal((d, q + r)))[0]
    return model.State(
        U, np.array([2.0, 0.7]), np.array([0.4, 0.1, 0.9]), np.array([3.0, 0.5]), 0.3
    )


def covariances(state, S):
    """Covariances (n d, n d) of the shared part, the own part and the noise, rows first."""
    L = np.eye(len(S)) - S
    shared = np.zeros((len(S) * d, len(S) * d))
    own = np.zeros_like(shared)
    for k in range(q + r):
        u = np.outer(state.U[:, k], state.U[:, k])
        if k < q:
            inner = np.linalg.inv(np.eye(len(S)) + state.beta[k] * L)
            shared += np.kron(state.a[k] * inner @ inner, u)
        own += np.kron(state.c[k] * np.eye(len(S)), u)
    return shared, own, state.sigma2 * np.eye(len(S) * d)


@pytest.fixture
def parts(state, data):
    """The three covariances of all entries, rows first."""
    return covariances(state, data.S.toarray())


@pytest.fixture
def covariance_of(data):
    """The covariance of all entries for a state."""
    return lambda state: sum(covariances(state, data.S.toarray()))


@pytest.fixture
def linked(rng):
    """Rows on groups: a smooth part on two axes, own parts on two, and noise; and their links."""
    side = np.repeat(np.arange(6), 20)
    together = np.equal.outer(side, side)
    upper = np.triu(rng.random(together.shape) < np.where(together, 0.25, 0.004), 1)
    axes = np.linalg.qr(rng.standard_normal((8, 4)))[0]
    angle = np.arange(6) * np.pi / 3  # groups as far apart on either axis, whatever is drawn
    centres = 3 * np.column_stack([np.cos(angle), np.sin(angle)])
    shared = centres[side] + rng.standard_normal((len(side), 2))
    Z = np.hstack([shared, 3 * rng.standard_normal((len(side), 2))])
    X = Z @ axes.T + 0.5 * rng.standard_normal((len(side), 8)) + 5
    return X, sparse.csr_array((upper + upper.T).astype(float))
