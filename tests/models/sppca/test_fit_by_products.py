import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse

from gnomon.inference import subspace
from gnomon.inference.loop import iterate
from gnomon.linalg.data import Centered, Matrix, Weighted, center
from gnomon.models.sppca import em, fit_by_products
from gnomon.models.sppca.fit import Problem, Settings
from gnomon.models.sppca.statistics import from_moments, noise_rule, tolerance

n, d, c, q = 220, 90, 2, 3


@pytest.fixture
def problem(rng):
    """Counts in three groups of columns, each with a rate of its own in every row, and others."""
    rates = np.hstack([rng.gamma(0.5, size=(n, q)), np.full((n, 1), 0.3)])
    X = rng.poisson(rates[:, np.minimum(np.arange(d) // 20, q)]).astype(float)
    Y = rates[:, :c] + 0.5 * rng.normal(size=(n, c))
    observed = rng.random((n, c)) < 0.3
    return Problem(sparse.csr_array(X), np.where(observed, Y, 0.0), observed)


def by_products(problem, tol=1e-11, **options):
    settings = Settings(q, tol=tol, rng=np.random.default_rng(0), **options)
    X = Matrix(problem.X)
    X = center(X if problem.weights is None else Weighted(X, problem.weights))[1]
    found, noise = fit_by_products.maximise(X, X.squared_norm, problem, settings, iterate)
    stats, axes = from_moments(X, problem.Y, problem.observed, problem.weights)
    expected = noise_rule(stats, settings)
    run = em.maximise(stats, q, expected, max_iter=3000, tol=tolerance(stats, 1e-12))
    W = axes @ run.state.W
    return found, noise, run, (expected, W @ W.T)


@pytest.mark.parametrize(
    "options", [{}, {"noise": "per_output"}, {"noise": 0.4, "prior": 0.5}], ids=str
)
def test_the_maximum_is_that_of_the_moments(problem, options):
    found, noise, run, (expected, gram) = by_products(problem, **options)
    assert found.converged
    assert_allclose(found.small.objective, run.objective[-1], rtol=1e-9)
    W = found.basis @ found.small.state.W
    assert_allclose(W @ W.T, gram, atol=1e-3 * np.abs(gram).max())
    for ours, theirs in zip(noise, expected, strict=True):
        assert_allclose(ours, theirs) if ours is not None else None


def test_weights_and_rows_without_outputs(problem, rng):
    weights = rng.uniform(0.5, 2, size=n)
    found, _, run, _ = by_products(problem._replace(weights=weights))
    assert_allclose(found.small.objective, run.objective[-1], rtol=1e-9)
    alone = problem._replace(observed=np.zeros_like(problem.observed), Y=np.zeros((n, c)))
    found, _, run, _ = by_products(alone)
    assert_allclose(found.small.objective, run.objective[-1], rtol=1e-9)
    assert_allclose(found.small.state.W_y, 0)


def test_single_precision_on_the_way_leaves_an_exact_answer(problem):
    rough, _, run, _ = by_products(problem, tol=1e-7)
    assert abs(rough.small.objective - run.objective[-1]) < 1e-6 * n * d


@pytest.mark.parametrize("draw", range(4))
def test_all_rows_labelled_start_from_the_closed_form_in_every_basis(draw):
    """Outputs are columns of X: from PPCA a maximum is found that leaves them to the noise."""
    rng = np.random.default_rng(draw)
    X = rng.poisson(0.3, size=(n, d)) * (1 + 3 * rng.random((n, 1)) * (np.arange(d) < 20))
    complete = Problem(sparse.csr_array(X), X[:, :c].astype(float), np.ones((n, c), dtype=bool))
    found, _, run, _ = by_products(complete)
    # Two maxima may be as high but for a nat; from PPCA one of these samples ends far lower.
    assert_allclose(found.small.objective, run.objective[-1], rtol=1e-4)


@pytest.mark.parametrize(("tol", "rounded"), [(1e-7, True), (1e-11, False)])
def test_a_fine_tolerance_keeps_products_in_double_precision(problem, monkeypatch, tol, rounded):
    asked = []
    own = Centered.as_float32
    monkeypatch.setattr(Centered, "as_float32", lambda X: asked.append(X) or own(X))
    by_products(problem, tol=tol)
    assert bool(asked) == rounded


def test_labelled_rows_are_read_again_where_they_are_too_many_to_keep(problem, monkeypatch):
    kept, _, _, _ = by_products(problem)
    monkeypatch.setattr(subspace, "SAMPLED_ENTRIES", 0)
    found, _, run, _ = by_products(problem)
    assert_allclose(found.small.objective, kept.small.objective, rtol=1e-10)
    assert_allclose(found.small.objective, run.objective[-1], rtol=1e-9)
