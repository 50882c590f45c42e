import pytest

n, d, c, q = 40, 6, 3, 2


@pytest.fixture
def sample(rng):
    """Centred rows and three outputs that share two latent variables."""
    Z = rng.normal(size=(n, q))
    X = Z @ rng.normal(size=(q, d)) + 0.5 * rng.normal(size=(n, d))
    Y = Z @ rng.normal(size=(q, c)) + 0.3 * rng.normal(size=(n, c)) + 0.4
    return X - X.mean(axis=0), Y


@pytest.fixture
def gappy(sample, rng):
    """Rows 0-14 have some of their outputs, the others none."""
    observed = rng.random((n, c)) < 0.6
    observed[15:] = False
    return *sample, observed
