from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats
from scipy.optimize import approx_fprime
from sklearn.datasets import load_wine

from gnomon.inference.loop import Method, iterate
from gnomon.linalg.data import Matrix
from gnomon.models.bsdr import sweeps
from gnomon.models.bsdr.factors import (
    Gamma,
    Priors,
    bound,
    make_model,
    of_entries,
    pack,
    precision_posterior,
    score_means,
    unpack,
)
from gnomon.models.bsdr.fit import random_start, regression_start
from gnomon.models.bsdr.inputs import gram_or_dual_ridge, read_inputs, spectral_ridge
from gnomon.models.bsdr.outputs import ClassOutputs, NumberOutputs, SignOutputs
from gnomon.models.bsdr.probit import draw_class_scores, draw_sign_scores

n, d, q, c = 14, 5, 2, 3
KINDS = ["entry", "column", "row"]
OUTPUTS = ["classes", "binary", "labels", "labels with gaps", "numbers", "numbers with gaps"]


SINGLE_UPDATES = [
    sweeps.update_projection_covariances,
    sweeps.update_latent_covariances,
    sweeps.update_scores,
    sweeps.update_weight_precisions,
    sweeps.update_means,
    sweeps.update_projection_precisions,
    sweeps.update_weights,
    sweeps.update_noise,
    sweeps.update_projection,
    sweeps.update_latent,
    sweeps.update_basis,
]


def make_outputs(name, X, rng):
    scores = X[:, :2] @ rng.standard_normal((2, c)) + rng.standard_normal((len(X), c))
    known = rng.random(scores.shape) < 0.7
    if name == "classes":
        return ClassOutputs(scores.argmax(axis=1), c)
    if name == "binary":
        return SignOutputs(np.sign(scores[:, :1]))
    if name.startswith("labels"):
        return SignOutputs(np.sign(scores) * (known if "gaps" in name else 1))
    if "gaps" in name:
        return NumberOutputs(scores * known, known.astype(float))
    return NumberOutputs(scores)


def small_model(kind, name, rng, shape=(n, d), noise=1.0, **hyper):
    X = rng.standard_normal(shape)
    X -= X.mean(axis=0)
    outputs = make_outputs(name, X, rng)
    route = spectral_ridge if kind == "column" else gram_or_dual_ridge
    return make_model(route(Matrix(X), noise), outputs, Priors(kind, **hyper))


def fit(model, rng, n_sweeps=8):
    state = sweeps.start(model, regression_start(model, q, rng))
    return iterate(Method(state, partial(sweeps.step, model=model)), max_iter=n_sweeps, tol=0)


def ready(factors, model):
    """All factors mutually consistent enough to be drawn from."""
    return sweeps.update_projection_covariances(sweeps.update_latent(factors, model), model)


class Draws:
    """Draws from q and their log q and log p, written out term by term."""

    def __init__(self, f, model, rng, size):
        self.f, self.model, self.size = f, model, size
        self.X = model.ridge.X @ np.eye(model.ridge.X.shape[1])
        self.log_q, self.log_p = np.zeros(size), np.zeros(size)
        priors = model.priors
        phi = self.gamma(f.phi, priors.projection, rng)
        psi = self.gamma(f.psi, priors.weights, rng)
        lam = self.gamma(f.lam, priors.bias, rng)
        P = self.projection(phi, rng)
        Z = self.latent(P, rng)
        B = self.weights(psi, lam, rng)
        self.scores(Z, B, rng)

    def gamma(self, q, p, rng):
        x = rng.gamma(q.shape, q.scale, (self.size, *np.shape(q.scale)))
        for law, total in ((q, self.log_q), (p, self.log_p)):
            terms = stats.gamma(law.shape, scale=law.scale).logpdf(x)
            total += terms.reshape(self.size, -1).sum(axis=1)
        return x

    def normal(self, mean, covariance, rng):
        law = stats.multivariate_normal(mean, covariance)
        x = law.rvs(self.size, random_state=rng).reshape(self.size, -1)
        self.log_q += law.logpdf(x)
        return x

    def projection(self, phi, rng):
        f, kind = self.f, self.model.priors.kind
        columns = []
        full = of_entries(f.phi.mean, kind, f.P.shape)
        for s in range(q):
            precision = np.diag(full[:, s]) + self.X.T @ self.X / self.model.ridge.noise
            columns.append(self.normal(f.P[:, s], np.linalg.inv(precision), rng))
        P = np.stack(columns, axis=2)
        scale = {"entry": phi, "column": phi[:, None, :] if kind == "column" else 0}.get(kind)
        precision = np.broadcast_to(phi[:, :, None] if kind == "row" else scale, P.shape)
        self.log_p += stats.norm(0, precision**-0.5).logpdf(P).sum(axis=(1, 2))
        return P

    def latent(self, P, rng):
        f, index = self.f, self.model.patterns.of_row
        index = np.zeros(n, dtype=int) if index is None else index
        Z = np.stack([self.normal(f.Z[i], f.S[index[i]], rng) for i in range(n)], axis=1)
        noise = self.model.ridge.noise
        self.log_p += stats.norm(self.X @ P, noise**0.5).logpdf(Z).sum(axis=(1, 2))
        return Z

    def weights(self, psi, lam, rng):
        f = self.f
        B = np.stack([self.normal(f.B[:, k], f.C[k], rng) for k in range(f.B.shape[1])], axis=2)
        precision = np.concatenate([lam[:, None, :], psi], axis=1)
        self.log_p += stats.norm(0, precision**-0.5).logpdf(B).sum(axis=(1, 2))
        return B

    def scores(self, Z, B, rng):
        outputs = self.model.outputs
        means = np.einsum("lns,lsc->lnc", Z, B[:, 1:]) + B[:, None, 0]
        known = 1.0 if outputs.observed is None else outputs.observed
        if isinstance(outputs, NumberOutputs):
            eps = self.gamma(self.f.eps, self.model.priors.noise, rng)[:, None, :]
            terms = stats.norm(means, eps**-0.5).logpdf(outputs.Y)
            self.log_p += (known * terms).sum(axis=(1, 2))
            return
        M = score_means(self.f)
        draw = draw_class_scores if isinstance(outputs, ClassOutputs) else draw_sign_scores
        y = outputs.labels if isinstance(outputs, ClassOutputs) else outputs.signs
        T = np.stack([draw(M, y, rng) for _ in range(self.size)])
        _, log_Z = outputs.scores(M)
        self.log_q += (known * stats.norm(M).logpdf(T)).sum(axis=(1, 2)) - log_Z
        self.log_p += (known * stats.norm(means).logpdf(T)).sum(axis=(1, 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["classes", "labels with gaps", "numbers with gaps"])
def test_bound_agrees_with_monte_carlo(kind, name, rng):
    model = small_model(kind, name, rng, noise=0.8)
    factors = ready(fit(model, rng).state, model)
    factors = sweeps.update_scores(factors, model)
    draws = Draws(factors, model, rng, 2000)
    log_ratio = draws.log_p - draws.log_q
    error = log_ratio.std() / np.sqrt(len(log_ratio))
    assert abs(bound(factors, model) - log_ratio.mean()) < 4 * error
    assert error < 0.2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("shape", [(n, d), (n, 40)], ids=["tall", "wide"])
def test_no_single_update_lowers_the_bound(kind, name, shape, rng):
    model = small_model(kind, name, rng, shape)
    factors = sweeps.start(model, regression_start(model, q, rng))
    value = bound(sweeps.update_scores(factors, model), model)
    factors = sweeps.update_scores(factors, model)
    for _ in range(12):
        for update in SINGLE_UPDATES:
            factors = update(factors, model)
            after = bound(factors, model)
            assert after - value >= -1e-10 * abs(value), update.__name__
            value = after


@pytest.mark.parametrize("sparse_prior", [False, True])
def test_sweeps_ascend_with_every_hyperparameter(sparse_prior, rng):
    hyper = {"projection": Gamma(1e-3, 1e3)} if sparse_prior else {"weights": Gamma(3.0, 0.5)}
    model = small_model("column", "classes", rng, (60, 8), noise=0.01, **hyper)
    objective = fit(model, rng, n_sweeps=60).objective
    assert np.min(np.diff(objective) / np.abs(objective[1:])) > -1e-10


def test_sampled_expectations_make_the_bound_fall(rng):
    """Why the moments are integrated: the naive sampling of [G13] loses ascent."""
    model = small_model("entry", "classes", rng, (40, d))

    def sampled_scores(factors, model):
        M = score_means(factors)
        T = M[None] + rng.standard_normal((200, *M.shape))
        right = T.argmax(axis=2) == model.outputs.labels
        counts = np.maximum(right.sum(axis=0), 1)
        mean = (T * right[:, :, None]).sum(axis=0) / counts[:, None]
        log_Z = np.log(counts / 200).sum()
        return factors._replace(T=mean, T_normaliser=log_Z + np.sum(M * (0.5 * M - mean)))

    _, values = sweep_bounds(model, rng, sweeps.update_scores, sampled_scores)
    assert np.sum(np.diff(values) < -1e-8) > 3


def sweep_bounds(model, rng, update, printed, n_sweeps=15):
    """Plain sweeps of [G13] that use a printed update in place of the right one."""
    factors = sweeps.start(model, regression_start(model, q, rng))
    updates = [
        sweeps.update_projection_precisions,
        sweeps.update_projection,
        sweeps.update_latent,
        sweeps.update_weight_precisions,
        sweeps.update_weights,
        sweeps.update_scores,
    ]
    updates = [printed if u is update else u for u in updates]
    values = []
    for _ in range(n_sweeps):
        for u in updates:
            factors = u(factors, model)
        values.append(bound(factors, model))
    return factors, values


def literal_precisions(factors, model):
    phi = precision_posterior(model.priors.projection, 1, factors.P**2)
    return factors._replace(phi=phi)


def literal_latent(factors, model):
    blind = factors._replace(C=np.zeros_like(factors.C))
    moved = sweeps.update_latent(blind, model)
    return moved._replace(C=factors.C)


def literal_weights(factors, model):
    blind = factors._replace(S=np.zeros_like(factors.S))
    return sweeps.update_weights(blind, model)._replace(S=factors.S)


@pytest.mark.parametrize(
    ("update", "printed"),
    [
        pytest.param(sweeps.update_projection_precisions, literal_precisions, id="E-G13-1"),
        pytest.param(sweeps.update_latent, literal_latent, id="E-G13-2"),
        pytest.param(sweeps.update_weights, literal_weights, id="E-G13-3"),
    ],
)
def test_printed_squares_of_means_lower_the_bound(update, printed, rng):
    """Errata: (4), (6) and (9) read literally have squares of means for means of squares."""
    model = small_model("entry", "classes", rng, (40, d))
    right, values = sweep_bounds(model, np.random.default_rng(1), update, update)
    assert np.all(np.diff(values) > -1e-8)
    settled = bound(right, model)
    assert bound(printed(right, model), model) < settled - 1e-4


def test_joint_means_solve_the_coupled_updates(rng):
    model = small_model("column", "classes", rng)
    factors = sweeps.update_means(ready(fit(model, rng).state, model), model)
    after = sweeps.update_projection(factors, model)
    assert_allclose(after.P, factors.P, atol=1e-10)
    after = sweeps.update_latent(factors, model)
    assert_allclose(after.Z, factors.Z, atol=1e-10)


def test_conjugate_gradients_reach_the_same_means(rng, monkeypatch):
    monkeypatch.setattr(sweeps, "CG_STEPS", 100)
    monkeypatch.setattr(sweeps, "CG_TOLERANCE", 1e-12)
    model = small_model("entry", "labels with gaps", rng)
    factors = sweeps.update_means(ready(fit(model, rng).state, model), model)
    assert_allclose(sweeps.update_projection(factors, model).P, factors.P, atol=1e-8)


def test_routes_for_the_column_prior_agree(rng):
    X = rng.standard_normal((n, d))
    X -= X.mean(axis=0)
    outputs = make_outputs("classes", X, rng)
    ridge = spectral_ridge(Matrix(X), 1.0)
    axes = ridge.table
    start = rng.standard_normal((d, q))
    by_axes = make_model(ridge, outputs, Priors("column"))
    plain = make_model(gram_or_dual_ridge(Matrix(X), 1.0), outputs, Priors("entry"))
    state = sweeps.start(by_axes, axes.T @ start)
    phi = state.phi.mean
    covariances = plain.ridge.covariances(np.broadcast_to(phi, (d, q)), q)
    assert_allclose(covariances.log_det, state.P_covariances.log_det)
    moved = sweeps.update_projection(state, by_axes)
    R = X.T @ state.Z
    expected = plain.ridge.solve(np.broadcast_to(phi, (d, q)), covariances, R)
    assert_allclose(axes @ moved.P, expected, atol=1e-10)


@pytest.mark.parametrize("name", ["classes", "numbers"])
def test_packing_keeps_what_a_step_needs(name, rng):
    model = small_model("entry", name, rng)
    state = fit(model, rng).state
    like = sweeps.start(model, regression_start(model, q, rng))
    again = unpack(pack(state), like)
    assert_allclose(sweeps.step(again, model)[1], sweeps.step(state, model)[1], rtol=1e-12)


def test_planted_subspace_is_found(rng):
    X = rng.standard_normal((800, 6))
    truth = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    angles = np.arctan2(*(X @ truth).T)
    labels = np.floor((angles + np.pi) / (2 * np.pi) * 4).astype(int) % 4
    model = make_model(gram_or_dual_ridge(Matrix(X), 1.0), ClassOutputs(labels, 4), Priors())
    P = np.linalg.qr(fit(model, rng, n_sweeps=40).state.P)[0]
    assert np.linalg.svd(P.T @ truth, compute_uv=False).min() > 0.99


R = np.array([[1.2, -0.3], [0.4, 0.8]])


@pytest.fixture(params=["entry", "column", "row"])
def fitted(request, rng):
    """A model and its factors after a few sweeps, precisions at their best."""
    X, y = load_wine(return_X_y=True)
    _, ridge = read_inputs(Matrix(X), request.param, 0.1, True)
    model = make_model(ridge, ClassOutputs(y, 3), Priors(request.param))
    factors = sweeps.start(model, random_start(model, 2, rng))
    for _ in range(3):
        factors, _ = sweeps.step(factors, model)
    return model, sweeps.change_basis(factors, np.eye(2), model)


def test_scores_stay_as_they_are(fitted):
    model, factors = fitted
    turned = sweeps.change_basis(factors, R, model)
    assert_allclose(score_means(turned), score_means(factors), atol=1e-10)


def test_loss_is_that_of_the_bound(fitted):
    model, factors = fitted
    moments = sweeps.basis_moments(factors, model)
    turned = sweeps.change_basis(factors, R, model)
    before, after = (sweeps.basis_loss(x, moments, model)[0] for x in (np.eye(2).ravel(), R))
    gain = bound(turned, model) - bound(factors, model)
    assert_allclose(gain, model.n_samples * (before - after), rtol=1e-9)


def test_gradient_agrees_with_differences(fitted):
    model, factors = fitted
    moments = sweeps.basis_moments(factors, model)
    numeric = approx_fprime(R.ravel(), lambda x: sweeps.basis_loss(x, moments, model)[0], 1e-7)
    assert_allclose(sweeps.basis_loss(R.ravel(), moments, model)[1], numeric, atol=1e-5)


def test_a_poor_basis_is_mended(fitted):
    """A basis that sweeps would leave slowly is left at once."""
    model, factors = fitted
    poor = sweeps.change_basis(factors, 3 * R, model)
    swept = sweeps.update_latent(sweeps.update_projection(poor, model), model)
    mended = sweeps.update_basis(poor, model)
    lost = bound(factors, model) - bound(poor, model)
    assert bound(mended, model) - bound(swept, model) > 0.1 * lost
    for _ in range(4):
        mended = sweeps.update_basis(mended, model)
    assert bound(factors, model) - bound(mended, model) < 0.01 * lost


@pytest.mark.parametrize("scale", [0.8, 0.97, 1.03, 1.25])
def test_one_direction_that_is_a_little_long_or_short_is_mended(fitted, rng, scale):
    """Also where a step of length one would shorten it to nothing."""
    model = fitted[0]
    factors, _ = sweeps.step(sweeps.start(model, random_start(model, 1, rng)), model)
    best = sweeps.update_basis(sweeps.update_basis(factors, model), model)
    poor = sweeps.change_basis(best, scale * np.eye(1), model)
    lost = bound(best, model) - bound(poor, model)
    assert lost > 0
    assert bound(best, model) - bound(sweeps.update_basis(poor, model), model) < 0.01 * lost
