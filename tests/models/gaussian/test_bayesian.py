import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.exceptions import NumericalError
from gnomon.inference.loop import iterate
from gnomon.linalg.eigen import Spectrum
from gnomon.models.gaussian import bayesian
from gnomon.models.relational import paper


def spectrum_of(X, k=None):
    values, vectors = np.linalg.eigh(X.T @ X)
    return Spectrum(np.maximum(values[::-1], 0)[:k], vectors[:, ::-1][:, :k], float(values.sum()))


def planted(n, d, q, seed, scale=1.5):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, q)) @ rng.normal(size=(q, d)) * scale + rng.normal(size=(n, d))
    return X - X.mean(axis=0)


class Factors:
    """q(W) q(Z) by the updates of [B99] on dense matrices, one covariance for all rows of each.

    X has n rows, or stands for as many that are mixed; ``extra`` is energy that no axis explains.
    """

    def __init__(self, X, W, S_w, Z, S_z, c, sigma2, n=None, extra=0.0):
        self.X, self.n, self.d, self.extra = X, n or len(X), X.shape[1], extra
        self.W, self.S_w, self.Z, self.S_z, self.c, self.sigma2 = W, S_w, Z, S_z, c, sigma2

    def moments(self):
        return self.Z.T @ self.Z + self.n * self.S_z, self.W.T @ self.W + self.d * self.S_w

    def error(self):
        ZZ, WW = self.moments()
        fitted = 2 * np.sum(self.W * (self.X.T @ self.Z)) - np.sum(ZZ * WW)
        return np.sum(self.X**2) + self.extra - fitted

    def sweep(self):
        _, WW = self.moments()
        self.S_z = np.linalg.inv(np.eye(len(WW)) + WW / self.sigma2)
        self.Z = self.X @ self.W @ self.S_z / self.sigma2
        ZZ, _ = self.moments()
        self.S_w = np.linalg.inv(np.diag(1 / self.c) + ZZ / self.sigma2)
        self.W = self.X.T @ self.Z @ self.S_w / self.sigma2
        _, WW = self.moments()
        self.c = np.diagonal(WW) / self.d
        self.sigma2 = self.error() / (self.n * self.d)

    def bound(self):
        """Expected log joint density and entropies, term by term."""
        (ZZ, WW), n, d, q = self.moments(), self.n, self.d, len(self.c)
        value = -0.5 * (n * d * np.log(2 * np.pi * self.sigma2) + self.error() / self.sigma2)
        value -= 0.5 * (n * q * np.log(2 * np.pi) + np.trace(ZZ))
        value -= 0.5 * (d * np.sum(np.log(2 * np.pi * self.c)) + np.sum(np.diagonal(WW) / self.c))
        value += 0.5 * n * np.linalg.slogdet(2 * np.pi * np.e * self.S_z)[1]
        return value + 0.5 * d * np.linalg.slogdet(2 * np.pi * np.e * self.S_w)[1]


def factors_at(found, X, n=None, extra=0.0):
    """The factors at the maximum that was found."""
    (W, sigma2), c, n = found.view, found.variances, n or len(X)
    lengths = np.linalg.norm(W, axis=0)
    S_w, S_z = sigma2 * c / (n * c + sigma2), sigma2 / (X.shape[1] * c + sigma2)
    Z = X @ (W / lengths) * (found.shrinkage / lengths)
    return Factors(X, W, np.diag(S_w), Z, np.diag(S_z), c, sigma2, n, extra)


@pytest.mark.parametrize("shape", [(60, 8), (9, 30)])
def test_the_bound_is_that_of_dense_factors_and_sweeps_do_not_raise_it(shape):
    X = planted(*shape, 2, 0)
    found = bayesian.maximise(spectrum_of(X), 5, len(X))
    factors = factors_at(found, X)
    assert_allclose(factors.bound(), found.bound, rtol=1e-10)
    for _ in range(20):
        factors.sweep()
    assert_allclose(factors.bound(), found.bound, rtol=1e-9)
    assert_allclose(factors.c, found.variances, rtol=1e-5)
    assert_allclose(factors.sigma2, found.view.sigma2, rtol=1e-5)


@pytest.mark.parametrize("seed", range(6))
def test_sweeps_from_any_start_end_at_or_below_the_maximum(seed):
    X, rng = planted(40, 6, 2, seed, scale=0.6), np.random.default_rng(seed)
    found = bayesian.maximise(spectrum_of(X), 3, len(X))
    W, Z, S = rng.normal(size=(6, 3)), rng.normal(size=(40, 3)), 0.1 * np.eye(3)
    factors, path = Factors(X, W, S, Z, S, np.ones(3), 1.0), []
    for _ in range(300):
        factors.sweep()
        path.append(factors.bound())
    assert np.diff(path).min() > -1e-8
    assert path[-1] <= found.bound + 1e-6


def test_the_bound_is_below_the_evidence_and_near_it():
    X = planted(40, 2, 1, 3, scale=4.0)
    found = bayesian.maximise(spectrum_of(X), 1, len(X))
    (c,), sigma2 = found.variances, found.view.sigma2
    reach = 6 * np.sqrt(c)
    ticks = np.linspace(-reach, reach, 400)
    W = np.stack(np.meshgrid(ticks, ticks), axis=-1).reshape(-1, 2)
    lengths = np.sum(W**2, axis=1)
    explained = np.sum((X @ W.T) ** 2, axis=0) / (lengths + sigma2)
    log_det = np.log(sigma2) + np.log(lengths + sigma2)
    values = -0.5 * (len(X) * (2 * np.log(2 * np.pi) + log_det))
    values -= 0.5 * (np.sum(X**2) - explained) / sigma2
    values -= 0.5 * (2 * np.log(2 * np.pi * c) + lengths / c)
    step = ticks[1] - ticks[0]
    evidence = values.max() + np.log(np.sum(np.exp(values - values.max())) * step**2)
    assert found.bound < evidence < found.bound + 3


def test_no_other_noise_variance_has_a_higher_bound():
    # The last two have a second maximum that a grid shows lower and that is higher.
    for seed in (*range(150), 408, 1395):
        X = planted(50, 10, 3, seed, scale=0.5)
        spectrum = spectrum_of(X)
        found = bayesian.maximise(spectrum, 9, len(X))
        others = bayesian._bound(
            np.geomspace(1e-3, 1e2, 500), spectrum.values[:8], spectrum.trace, *X.shape
        )
        assert found.bound - 1 < others.max() <= found.bound + 1e-9


def test_noise_alone_has_no_component():
    for seed in range(10):
        X = np.random.default_rng(seed).normal(size=(100, 12))
        found = bayesian.maximise(spectrum_of(X - X.mean(axis=0)), 10, 100)
        assert np.all(found.view.W == 0) and found.view.W.shape == (12, 1)
        assert np.all(found.variances == 0)


def relational_root(n, rng):
    A = np.triu(rng.random((n, n)) < 3 / n, 1).astype(float)
    return paper.mixing(sparse.csr_array(A + A.T), 1.0, 0.1)


def relational_rows(seed, n=80, d=12):
    """Draws of the model of the paper, its number of components, the root of its precision."""
    rng, q = np.random.default_rng(seed), 1 + seed % 5
    R = relational_root(n, rng)
    L = np.linalg.cholesky(np.linalg.inv((R.T @ R).toarray()))
    W = np.linalg.qr(rng.normal(size=(d, q)))[0] * np.linspace(3, 5, q)
    X = L @ (rng.normal(size=(n, q)) @ W.T + rng.normal(size=(n, d))) + rng.normal(size=d)
    return X, q, R, rng


def test_the_planted_number_is_found_in_nearly_all_relational_samples():
    """One more or less may happen by chance, in one sample of some hundred; two of 20 may not."""
    right = 0
    for seed in range(20):
        X, q, R, _ = relational_rows(seed)
        shares = (R.T @ R).sum(axis=1)
        found = bayesian.maximise(spectrum_of(R @ (X - shares @ X / shares.sum())), 11, len(X))
        right += np.sum(found.variances > 0) == q
        # 80 x 12 entries tell it to a twentieth; of 20 samples one may be four errors away.
        assert_allclose(found.view.sigma2, 1.0, atol=0.25)
    assert right >= 19


def test_with_gaps_the_planted_number_is_found_and_the_bound_never_falls():
    right = 0
    for seed in range(20):
        X, q, R, rng = relational_rows(seed)
        X[rng.random(X.shape) < 0.2] = np.nan
        rows = bayesian.linked_rows(X, R)
        run = bayesian.maximise_with_gaps(rows, 11, iterate, max_iter=200, tol=1e-8)
        assert run.converged and np.diff(run.objective).min() > -1e-8
        right += np.sum(run.state.evidence.variances > 0) == q
    assert right >= 18


def test_the_bound_with_gaps_is_the_expected_log_density_and_entropies():
    rng = np.random.default_rng(0)
    n, d = 30, 5
    R = relational_root(n, rng)
    X = planted(n, d, 1, 1, scale=4.0)
    X[rng.random(X.shape) < 0.2] = np.nan
    rows = bayesian.linked_rows(X, R)
    limits = {"max_iter": 300, "tol": 1e-13}
    state = bayesian.maximise_with_gaps(rows, 2, iterate, **limits).state
    after, bound = bayesian.step(state, rows, 2)
    extra, entropy, Delta = 0.0, 0.0, (R.T @ R).toarray()
    for j in range(d):
        gaps = np.flatnonzero(np.isnan(X[:, j]))
        own = Delta[np.ix_(gaps, gaps)]
        covariance = state.variance * np.linalg.inv(own)
        extra += np.sum(own * covariance)
        entropy += 0.5 * np.linalg.slogdet(2 * np.pi * np.e * covariance)[1]
    mixed = R @ (state.filled - after.mean)
    factors = factors_at(after.evidence, mixed, n, extra)
    assert_allclose(bound, factors.bound() + entropy, rtol=1e-9)


def test_without_gaps_the_route_of_gaps_is_the_closed_form():
    X = planted(50, 6, 2, 0)
    found = bayesian.maximise(spectrum_of(X), 4, 50)
    rows = bayesian.weighted_rows(X)
    run = bayesian.maximise_with_gaps(rows, 4, iterate, max_iter=50, tol=1e-12)
    assert_allclose(run.objective[-1], found.bound, rtol=1e-12)


def test_a_weight_of_two_is_a_row_twice_also_with_gaps():
    rng = np.random.default_rng(0)
    X, weights = planted(60, 6, 2, 0), rng.integers(0, 3, 60)
    X[rng.random(X.shape) < 0.2] = np.nan
    ends = [
        bayesian.maximise_with_gaps(rows, 4, iterate, max_iter=500, tol=1e-13).objective[-1]
        for rows in (
            bayesian.weighted_rows(X, weights.astype(float)),
            bayesian.weighted_rows(np.repeat(X, weights, axis=0)),
        )
    ]
    assert_allclose(*ends, rtol=1e-9)


def test_gaps_without_a_finite_variance_are_refused():
    R = paper.mixing(sparse.csr_array([[0.0, 1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]]), 1.0, 0)
    X = np.array([[np.nan, 1.0], [np.nan, 2.0], [1.0, 0.0]])
    with pytest.raises(NumericalError, match="without a finite variance"):
        bayesian.linked_rows(X, R)


def test_the_start_with_gaps_has_no_more_components_than_are_asked_for(monkeypatch):
    X, asked, way = planted(50, 6, 2, 0), [], bayesian.gaps.maximise
    X[0, 0] = np.nan
    monkeypatch.setattr(
        bayesian.gaps, "maximise", lambda data, q, *a, **k: asked.append(q) or way(data, q, *a, **k)
    )
    for q in (1, 5):
        bayesian.maximise_with_gaps(bayesian.weighted_rows(X), q, iterate, max_iter=2, tol=1e-3)
    assert asked == [1, 2]


def test_the_noise_is_the_highest_between_what_few_axes_leave():
    """A spectrum whose maximum lies near none of them, and between two points of the grid."""
    values, n, d = 175 * np.array([0.01786798, 0.01327963, 0.00805275]), 175, 3
    found = bayesian._noise(values, values.sum(), n, d)
    noises = np.geomspace(1e-6, 0.1, 20_000)
    highest = bayesian._bound(noises, values, values.sum(), n, d).max()
    assert bayesian._bound(found, values, values.sum(), n, d) >= highest - 1e-9 * abs(highest)
