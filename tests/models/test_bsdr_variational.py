from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from gnomon.inference.loop import Method, iterate
from gnomon.linalg.data import Matrix
from gnomon.models import bsdr, bsdr_factors
from gnomon.models import bsdr_variational as variational
from gnomon.models.bsdr import ClassOutputs, NumberOutputs, Priors, SignOutputs
from gnomon.stats.gamma import Gamma, precision_posterior
from gnomon.stats.probit import draw_class_scores, draw_sign_scores
from gnomon.stats.ridge import gram_or_dual, spectral

n, d, q, c = 14, 5, 2, 3
KINDS = ["entry", "column", "row"]
OUTPUTS = ["classes", "binary", "labels", "labels with gaps", "numbers", "numbers with gaps"]
SINGLE_UPDATES = [
    variational.update_spread,
    variational.update_latent_spread,
    variational.update_scores,
    variational.update_weight_precisions,
    variational.update_means,
    variational.update_projection_precisions,
    variational.update_weights,
    variational.update_noise,
    variational.update_projection,
    variational.update_latent,
    variational.update_basis,
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


def make_problem(kind, name, rng, shape=(n, d), noise=1.0, **hyper):
    X = rng.standard_normal(shape)
    X -= X.mean(axis=0)
    outputs = make_outputs(name, X, rng)
    route = spectral(Matrix(X), noise)[0] if kind == "column" else gram_or_dual(Matrix(X), noise)
    return bsdr.pose(route, outputs, Priors(kind, **hyper))


def fit(problem, rng, sweeps=8):
    state = variational.init(problem, bsdr.coded_start(problem, q, rng))
    return iterate(
        Method(state, partial(variational.step, problem=problem)), max_iter=sweeps, tol=0
    )


def ready(factors, problem):
    """All factors mutually consistent enough to be drawn from."""
    return variational.update_spread(variational.update_latent(factors, problem), problem)


class Draws:
    """Draws from q and their log q and log p, written out term by term."""

    def __init__(self, f, problem, rng, size):
        self.f, self.problem, self.size = f, problem, size
        self.X = problem.ridge.X @ np.eye(problem.ridge.X.shape[1])
        self.log_q, self.log_p = np.zeros(size), np.zeros(size)
        priors = problem.priors
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
        f, kind = self.f, self.problem.priors.kind
        columns = []
        full = bsdr.spread_out(f.phi.mean, kind, f.P.shape)
        for s in range(q):
            precision = np.diag(full[:, s]) + self.X.T @ self.X / self.problem.ridge.noise
            columns.append(self.normal(f.P[:, s], np.linalg.inv(precision), rng))
        P = np.stack(columns, axis=2)
        scale = {"entry": phi, "column": phi[:, None, :] if kind == "column" else 0}.get(kind)
        precision = np.broadcast_to(phi[:, :, None] if kind == "row" else scale, P.shape)
        self.log_p += stats.norm(0, precision**-0.5).logpdf(P).sum(axis=(1, 2))
        return P

    def latent(self, P, rng):
        f, index = self.f, self.problem.patterns.row_pattern
        index = np.zeros(n, dtype=int) if index is None else index
        Z = np.stack([self.normal(f.Z[i], f.S[index[i]], rng) for i in range(n)], axis=1)
        noise = self.problem.ridge.noise
        self.log_p += stats.norm(self.X @ P, noise**0.5).logpdf(Z).sum(axis=(1, 2))
        return Z

    def weights(self, psi, lam, rng):
        f = self.f
        B = np.stack([self.normal(f.B[:, k], f.C[k], rng) for k in range(f.B.shape[1])], axis=2)
        precision = np.concatenate([lam[:, None, :], psi], axis=1)
        self.log_p += stats.norm(0, precision**-0.5).logpdf(B).sum(axis=(1, 2))
        return B

    def scores(self, Z, B, rng):
        outputs = self.problem.outputs
        means = np.einsum("lns,lsc->lnc", Z, B[:, 1:]) + B[:, None, 0]
        known = 1.0 if outputs.observed is None else outputs.observed
        if isinstance(outputs, NumberOutputs):
            eps = self.gamma(self.f.eps, self.problem.priors.noise, rng)[:, None, :]
            terms = stats.norm(means, eps**-0.5).logpdf(outputs.Y)
            self.log_p += (known * terms).sum(axis=(1, 2))
            return
        M = variational.score_means(self.f)
        draw = draw_class_scores if isinstance(outputs, ClassOutputs) else draw_sign_scores
        y = outputs.codes if isinstance(outputs, ClassOutputs) else outputs.signs
        T = np.stack([draw(M, y, rng) for _ in range(self.size)])
        _, log_Z = outputs.scores(M)
        self.log_q += (known * stats.norm(M).logpdf(T)).sum(axis=(1, 2)) - log_Z
        self.log_p += (known * stats.norm(means).logpdf(T)).sum(axis=(1, 2))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["classes", "labels with gaps", "numbers with gaps"])
def test_bound_agrees_with_monte_carlo(kind, name, rng):
    problem = make_problem(kind, name, rng, noise=0.8)
    factors = ready(fit(problem, rng).state, problem)
    factors = variational.update_scores(factors, problem)
    draws = Draws(factors, problem, rng, 2000)
    log_ratio = draws.log_p - draws.log_q
    error = log_ratio.std() / np.sqrt(len(log_ratio))
    assert abs(variational.bound(factors, problem) - log_ratio.mean()) < 4 * error
    assert error < 0.2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", OUTPUTS)
@pytest.mark.parametrize("shape", [(n, d), (n, 40)], ids=["tall", "wide"])
def test_no_single_update_lowers_the_bound(kind, name, shape, rng):
    problem = make_problem(kind, name, rng, shape)
    factors = variational.init(problem, bsdr.coded_start(problem, q, rng))
    value = variational.bound(variational.update_scores(factors, problem), problem)
    factors = variational.update_scores(factors, problem)
    for _ in range(12):
        for update in SINGLE_UPDATES:
            factors = update(factors, problem)
            after = variational.bound(factors, problem)
            assert after - value >= -1e-10 * abs(value), update.__name__
            value = after


@pytest.mark.parametrize("sparse_prior", [False, True])
def test_sweeps_ascend_with_every_hyperparameter(sparse_prior, rng):
    hyper = {"projection": Gamma(1e-3, 1e3)} if sparse_prior else {"weights": Gamma(3.0, 0.5)}
    problem = make_problem("column", "classes", rng, (60, 8), noise=0.01, **hyper)
    objective = fit(problem, rng, sweeps=60).objective
    assert np.min(np.diff(objective) / np.abs(objective[1:])) > -1e-10


def test_sampled_expectations_make_the_bound_fall(rng):
    """Why the moments are integrated: the naive sampling of [G13] loses ascent."""
    problem = make_problem("entry", "classes", rng, (40, d))

    def sampled_scores(factors, problem):
        M = variational.score_means(factors)
        T = M[None] + rng.standard_normal((200, *M.shape))
        right = T.argmax(axis=2) == problem.outputs.codes
        counts = np.maximum(right.sum(axis=0), 1)
        mean = (T * right[:, :, None]).sum(axis=0) / counts[:, None]
        log_Z = np.log(counts / 200).sum()
        return factors._replace(T=mean, T_normaliser=log_Z + np.sum(M * (0.5 * M - mean)))

    _, values = sweep_bounds(problem, rng, variational.update_scores, sampled_scores)
    assert np.sum(np.diff(values) < -1e-8) > 3


def sweep_bounds(problem, rng, update, printed, sweeps=15):
    """Plain sweeps of [G13] that use a printed update in place of the right one."""
    factors = variational.init(problem, bsdr.coded_start(problem, q, rng))
    updates = [
        variational.update_projection_precisions,
        variational.update_projection,
        variational.update_latent,
        variational.update_weight_precisions,
        variational.update_weights,
        variational.update_scores,
    ]
    updates = [printed if u is update else u for u in updates]
    values = []
    for _ in range(sweeps):
        for u in updates:
            factors = u(factors, problem)
        values.append(variational.bound(factors, problem))
    return factors, values


def literal_precisions(factors, problem):
    phi = precision_posterior(problem.priors.projection, 1, factors.P**2)
    return factors._replace(phi=phi)


def literal_latent(factors, problem):
    blind = factors._replace(C=np.zeros_like(factors.C))
    moved = variational.update_latent(blind, problem)
    return moved._replace(C=factors.C)


def literal_weights(factors, problem):
    blind = factors._replace(S=np.zeros_like(factors.S))
    return variational.update_weights(blind, problem)._replace(S=factors.S)


@pytest.mark.parametrize(
    ("update", "printed"),
    [
        pytest.param(variational.update_projection_precisions, literal_precisions, id="E-G13-1"),
        pytest.param(variational.update_latent, literal_latent, id="E-G13-2"),
        pytest.param(variational.update_weights, literal_weights, id="E-G13-3"),
    ],
)
def test_printed_squares_of_means_lower_the_bound(update, printed, rng):
    """Errata: (4), (6) and (9) read literally have squares of means for means of squares."""
    problem = make_problem("entry", "classes", rng, (40, d))
    right, values = sweep_bounds(problem, np.random.default_rng(1), update, update)
    assert np.all(np.diff(values) > -1e-8)
    settled = variational.bound(right, problem)
    assert variational.bound(printed(right, problem), problem) < settled - 1e-3
    _, printed_values = sweep_bounds(problem, np.random.default_rng(1), update, printed)
    assert printed_values[-1] < values[-1] - 1e-4


def test_joint_means_solve_the_coupled_updates(rng):
    problem = make_problem("column", "classes", rng)
    factors = variational.update_means(ready(fit(problem, rng).state, problem), problem)
    after = variational.update_projection(factors, problem)
    assert_allclose(after.P, factors.P, atol=1e-10)
    after = variational.update_latent(factors, problem)
    assert_allclose(after.Z, factors.Z, atol=1e-10)


def test_conjugate_gradients_reach_the_same_means(rng, monkeypatch):
    monkeypatch.setattr(variational, "CG_STEPS", 100)
    monkeypatch.setattr(variational, "CG_TOLERANCE", 1e-12)
    problem = make_problem("entry", "labels with gaps", rng)
    factors = variational.update_means(ready(fit(problem, rng).state, problem), problem)
    assert_allclose(variational.update_projection(factors, problem).P, factors.P, atol=1e-8)


def test_routes_for_the_column_prior_agree(rng):
    X = rng.standard_normal((n, d))
    X -= X.mean(axis=0)
    outputs = make_outputs("classes", X, rng)
    ridge, axes = spectral(Matrix(X), 1.0)
    start = rng.standard_normal((d, q))
    by_axes = bsdr.pose(ridge, outputs, Priors("column"))
    plain = bsdr.pose(gram_or_dual(Matrix(X), 1.0), outputs, Priors("entry"))
    state = variational.init(by_axes, axes.T @ start)
    phi = state.phi.mean
    spread = plain.ridge.spread(np.broadcast_to(phi, (d, q)), q)
    assert_allclose(spread.log_det, state.spread.log_det)
    moved = variational.update_projection(state, by_axes)
    R = X.T @ state.Z
    expected = plain.ridge.solve(np.broadcast_to(phi, (d, q)), spread, R)
    assert_allclose(axes @ moved.P, expected, atol=1e-10)


@pytest.mark.parametrize("name", ["classes", "numbers"])
def test_packing_keeps_what_a_step_needs(name, rng):
    problem = make_problem("entry", name, rng)
    state = fit(problem, rng).state
    like = variational.init(problem, bsdr.coded_start(problem, q, rng))
    again = bsdr_factors.unpack(bsdr_factors.pack(state), like)
    assert_allclose(
        variational.step(again, problem)[1], variational.step(state, problem)[1], rtol=1e-12
    )


def test_planted_subspace_is_found(rng):
    X = rng.standard_normal((800, 6))
    truth = np.linalg.qr(rng.standard_normal((6, 2)))[0]
    angles = np.arctan2(*(X @ truth).T)
    codes = np.floor((angles + np.pi) / (2 * np.pi) * 4).astype(int) % 4
    problem = bsdr.pose(gram_or_dual(Matrix(X), 1.0), ClassOutputs(codes, 4), Priors())
    P = np.linalg.qr(fit(problem, rng, sweeps=40).state.P)[0]
    assert np.linalg.svd(P.T @ truth, compute_uv=False).min() > 0.99
