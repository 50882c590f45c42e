from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris

from gnomon.inference.loop import Method, iterate
from gnomon.linalg.data import Matrix, center
from gnomon.models.sppca import em
from gnomon.models.sppca.closed_form import _pad, closed_form, profile
from gnomon.models.sppca.fit import Settings
from gnomon.models.sppca.statistics import from_moments, has_closed_form, noise_rule

n, d, c, q = 40, 6, 3, 2


def rule(stats, **options):
    return noise_rule(stats, Settings())._replace(**options)


def all_labelled(X, Y):
    return from_moments(center(Matrix(X))[1], Y, np.ones(Y.shape, dtype=bool))


@pytest.mark.parametrize("options", [{}, {"ratio": 0.3}, {"fixed": (0.3, 0.2)}], ids=str)
def test_em_ends_at_theorem_2(sample, options):
    stats, _ = all_labelled(*sample)
    noise = rule(stats, **options)
    assert has_closed_form(stats, noise)
    exact = closed_form(stats, q, noise)
    start = em.init(stats, q, noise)
    state = em.maximise(stats, q, noise, max_iter=5000, tol=1e-12, start=start).state
    assert_allclose(state.W @ state.W.T, exact.W @ exact.W.T, atol=1e-6)
    assert_allclose(state.W_y @ state.W.T, exact.W_y @ exact.W.T, atol=1e-6)
    assert_allclose(state.sigma2_y, exact.sigma2_y, rtol=1e-6)


def test_there_is_none_where_outputs_lack_or_loadings_have_a_prior(gappy):
    X, Y, observed = gappy
    stats, _ = all_labelled(X, Y)
    assert not has_closed_form(stats, rule(stats, per_output=True))
    assert not has_closed_form(stats, rule(stats, prior_x=1.0))
    part, _ = from_moments(center(Matrix(X))[1], Y, observed)
    assert not has_closed_form(part, rule(part))


def test_theorem_2_at_the_noise_of_em_gives_its_loadings(sample):
    stats, _ = all_labelled(*sample)
    noise = rule(stats)
    step = partial(em.em_step, stats=stats, noise=noise)
    state = iterate(Method(em.init(stats, q, noise), step), max_iter=3000, tol=0).state
    exact = closed_form(stats, q, rule(stats, fixed=(state.sigma2, state.sigma2_y[0])))
    assert_allclose(state.W @ state.W.T, exact.W @ exact.W.T, rtol=1e-8, atol=1e-8)


def test_the_profile_is_the_likelihood_at_the_closed_form(sample):
    stats, _ = all_labelled(*sample)
    state = closed_form(stats, q, rule(stats, ratio=0.7))
    _, expected = em.e_step(state, stats)
    assert_allclose(profile(stats, q, 0.7), expected, rtol=1e-12)


def test_erratum_weak_directions_have_no_loading(sample):
    """E-YYTKW06-6: where an eigenvalue is below one the printed root is not real."""
    X, Y = sample
    stats, _ = all_labelled(X, Y)
    exact = closed_form(stats, d, rule(stats, fixed=(5.0, 5.0)))
    joint = np.hstack([X, Y - Y.mean(axis=0)])
    eigenvalues = np.linalg.eigvalsh(joint.T @ joint / n / 5.0)[::-1]
    weak = eigenvalues[:d] < 1
    assert weak.any()
    lengths = np.sum(exact.W**2, axis=0) + np.sum(exact.W_y**2, axis=0)
    assert_allclose(lengths[weak], 0)
    assert_allclose(lengths[~weak], 5.0 * (eigenvalues[:d][~weak] - 1))


def test_theorem_2_projects_to_the_posterior_mean(sample):
    """E-YYTKW06-7: its formula is right where no eigenvalue is one."""
    X, Y = sample
    s_x, s_y = 0.3, 0.2
    scaled = np.hstack([X / np.sqrt(s_x), (Y - Y.mean(axis=0)) / np.sqrt(s_y)])
    values, U = np.linalg.eigh(scaled.T @ scaled / n)
    values, U = values[::-1][:q], U[:, ::-1][:, :q]
    inner = U[:d].T @ U[:d] + np.diag(1 / (values - 1))
    printed = (X / np.sqrt(s_x)) @ U[:d] @ np.linalg.inv(inner) / np.sqrt(values - 1)
    W = np.sqrt(s_x) * U[:d] * np.sqrt(values - 1)
    posterior = X @ W @ np.linalg.inv(W.T @ W + s_x * np.eye(q))
    assert_allclose(printed, posterior, rtol=1e-8, atol=1e-10)
    stats, axes = all_labelled(X, Y)
    exact = closed_form(stats, q, rule(stats, fixed=(s_x, s_y)))
    assert_allclose(axes @ exact.W @ (axes @ exact.W).T, W @ W.T, atol=1e-8)


def iris(code_vectors):
    X, y = load_iris(return_X_y=True)
    return all_labelled(X, code_vectors[y])[0]


def helmert():
    Q, _ = np.linalg.qr(np.column_stack([np.ones(3), np.eye(3)[:, :2]]))
    return Q[:, 1:]


def test_erratum_learnt_noise_has_two_maxima_and_the_search_takes_the_better():
    """E-YYTKW06-4: the paper says that there are no local optima."""
    stats = iris(helmert())
    noise = rule(stats)
    from_ppca = em.maximise(
        stats, 2, noise, max_iter=5000, tol=1e-11, start=em.init(stats, 2, noise)
    )
    best = em.maximise(stats, 2, noise, max_iter=5000, tol=1e-11)
    assert best.objective[-1] > from_ppca.objective[-1] + 10
    for run in (from_ppca, best):
        assert run.converged
        x = em.pack(run.state, noise)
        assert_allclose(em.value_and_gradient(x, run.state, stats, noise)[1], 0, atol=1e-2)


def test_erratum_one_hot_outputs_have_no_maximum():
    """E-YYTKW06-5: the profile grows by n/2 for every unit of log r, without end."""
    stats = iris(np.eye(3))
    curve = [profile(stats, 2, np.exp(log_r)) for log_r in (-12, -11, -10)]
    assert_allclose(np.diff(curve), -75, rtol=0.02)
    stats = iris(helmert())
    curve = [profile(stats, 2, np.exp(log_r)) for log_r in (-12, -11, -10)]
    assert np.abs(np.diff(curve)).max() < 1


def test_directions_that_the_moments_do_not_have_come_last():
    assert_allclose(_pad(np.ones((2, 3)), 5), [[1, 1, 1, 0, 0]] * 2)
    assert_allclose(_pad(np.ones(2), 3), [1, 1, 0])
