"""Geweke's test: draws of the joint law and of the kernel with y redrawn must agree."""

from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import stats

from gnomon.inference.loop import Method, iterate
from gnomon.linalg.data import Matrix
from gnomon.models.bsdr import gibbs, sweeps
from gnomon.models.bsdr.factors import Gamma, Priors, make_model, of_entries, with_ones
from gnomon.models.bsdr.fit import regression_start
from gnomon.models.bsdr.inputs import gram_or_dual_ridge, spectral_ridge
from gnomon.models.bsdr.outputs import ClassOutputs, NumberOutputs, SignOutputs

n, d, q, c = 8, 3, 2, 3
# At (1, 1) moments do not exist and at scale one a slip between scale and rate is invisible.
HYPER = Gamma(3.0, 0.5)
KINDS = ["entry", "column", "row"]


def small_model(kind, rng, name="classes", noise=0.7, shape=(n, d)):
    X = rng.standard_normal(shape)
    X -= X.mean(axis=0)
    route = spectral_ridge if kind == "column" else gram_or_dual_ridge
    priors = Priors(kind, HYPER, HYPER, HYPER, HYPER)
    known = rng.random((shape[0], c)) < 0.8
    outputs = {
        "classes": ClassOutputs(np.zeros(shape[0], dtype=int), c),
        "labels": SignOutputs(np.where(known, 1.0, 0.0)),
        "numbers": NumberOutputs(np.zeros((shape[0], c)), known.astype(float)),
    }[name]
    return make_model(route(Matrix(X), noise), outputs, priors)


def gamma(shape, rng):
    return rng.gamma(HYPER.shape, HYPER.scale, shape)


def draw_prior(model, rng):
    """One chain."""
    kind, ridge = model.priors.kind, model.ridge
    width = ridge.X.shape[1]
    phi = gamma({"entry": (width, q), "column": q, "row": width}[kind], rng)
    P = rng.standard_normal((width, q)) / np.sqrt(of_entries(phi, kind, (width, q)))
    projected = ridge.X @ P
    Z = projected + np.sqrt(ridge.noise) * rng.standard_normal(projected.shape)
    psi, lam = gamma((q, c), rng), gamma(c, rng)
    B = rng.standard_normal((q + 1, c)) / np.sqrt(np.vstack([lam, psi]))
    outside = ridge.n_features - width
    rest = rng.chisquare(outside, q) / phi if outside else np.zeros(q)
    eps = gamma(c, rng) if isinstance(model.outputs, NumberOutputs) else np.ones(c)
    values = (phi, P, projected, rest, Z, psi, lam, B, Z @ B[1:], eps)
    return gibbs.Draw(*(value[None] for value in values))


def in_chains(state, size):
    """The same draw in so many chains."""
    return gibbs.Draw(*(np.repeat(value, size, axis=0) for value in state))


def redraw_outputs(state, model, rng):
    """Scores and outputs together, given all else: y is a function of T."""
    M = with_ones(state.Z) @ state.B
    T = M + rng.standard_normal(M.shape) / np.sqrt(state.eps)
    outputs = model.outputs
    if isinstance(outputs, ClassOutputs):
        outputs = ClassOutputs(T[0].argmax(axis=1), c)
    elif isinstance(outputs, SignOutputs):
        outputs = SignOutputs(np.sign(T[0]) * np.abs(outputs.signs))
    else:
        outputs = outputs._replace(Y=T[0] * outputs.observed)
    return state._replace(T=T), model._replace(outputs=outputs)


def statistics(state):
    return np.array(
        [
            np.log(state.phi).mean(),
            np.log(state.psi).mean(),
            np.log(state.lam).mean(),
            np.log(state.eps).mean(),
            np.log(np.sum(state.P**2)),
            np.log(np.sum(state.Z**2)),
            np.log(np.sum(state.B**2)),
            np.tanh(state.B).mean(),
            np.tanh(state.Z).mean(),
            np.tanh(np.sum(state.projected * state.Z)),
            np.tanh(state.T - state.T.mean()).mean(),
            np.log(np.sum((state.Z - state.projected) ** 2)),
            np.log(np.sum((state.T - with_ones(state.Z) @ state.B) ** 2)),
        ]
    )


def geweke(model, rng, size, kernel=gibbs.step):
    """Largest |z| between means of statistics under the two ways to draw."""
    prior = []
    for _ in range(size):
        state, _ = redraw_outputs(draw_prior(model, rng), model, rng)
        prior.append(statistics(state))
    state, model = redraw_outputs(draw_prior(model, rng), model, rng)
    chain = []
    for _ in range(size):
        state = kernel(state, rng, model)
        state, model = redraw_outputs(state, model, rng)
        chain.append(statistics(state))
    prior, chain = np.array(prior), np.array(chain)
    # Batches of 50 draws and more, longer than draws depend on each other.
    batches = chain[: size - size % 20].reshape(20, -1, chain.shape[1]).mean(axis=1)
    error = np.sqrt(prior.var(axis=0) / size + batches.var(axis=0, ddof=1) / 20)
    z = (chain.mean(axis=0) - prior.mean(axis=0)) / np.where(error > 0, error, 1.0)
    return np.abs(z).max()


def test_short_geweke(rng):
    assert geweke(small_model("entry", rng), rng, 1000) < 5


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["classes", "labels", "numbers"])
def test_geweke(kind, name, rng):
    model = small_model(kind, rng, name)
    z = geweke(model, rng, 20_000)
    if 4 <= z < 5:
        z = geweke(model, np.random.default_rng(1), 80_000)
    assert z < 4


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["entry", "column"])
def test_geweke_with_more_features_than_rows(kind, rng):
    assert geweke(small_model(kind, rng, shape=(4, 9)), rng, 20_000) < 4


def without_half(state, rng, model):
    """Planted fault: shape of the precisions without the half of one entry."""
    state = gibbs.step(state, rng, model)
    scale = 1.0 / (1.0 / HYPER.scale + 0.5 * state.B[:, 1:] ** 2)
    return state._replace(psi=rng.gamma(HYPER.shape, scale))


def blind_to_scores(state, rng, model):
    """Planted fault, erratum E-G13-7: Z drawn as printed, not given T."""
    state, _ = gibbs.draw_projection(state, rng, model)
    noise = np.sqrt(model.ridge.noise) * rng.standard_normal(state.Z.shape)
    state = state._replace(Z=state.projected + noise)
    return gibbs.draw_scores(gibbs.draw_weights(state, rng, model), rng, model)


@pytest.mark.slow
@pytest.mark.parametrize("fault", [without_half, blind_to_scores])
def test_geweke_catches_planted_faults(fault, rng):
    assert geweke(small_model("entry", rng), rng, 5000, fault) > 6


@pytest.mark.parametrize("name", ["classes", "labels", "numbers"])
def test_latent_conditional_is_that_of_the_joint_normal(name, rng):
    """Z given the rest, by brute force on the precision of each row."""
    model = small_model("entry", rng, name)
    state, model = redraw_outputs(draw_prior(model, rng), model, rng)
    chains = in_chains(state, 3000)
    draws = gibbs.draw_latent(chains, gibbs.evidence_of(chains, model), rng, model).Z
    state = gibbs.Draw(*(value[0] for value in state))
    V, b = state.B[1:], state.B[0]
    for i in (0, 3):
        seen = np.ones(c) if model.outputs.observed is None else model.outputs.observed[i]
        weights = seen * state.eps
        precision = np.eye(q) / model.ridge.noise + (V * weights) @ V.T
        rhs = state.projected[i] / model.ridge.noise + V @ (weights * (state.T[i] - b))
        mean = np.linalg.solve(precision, rhs)
        assert_allclose(draws[:, i].mean(axis=0), mean, atol=0.1)
        assert_allclose(np.cov(draws[:, i].T), np.linalg.inv(precision), atol=0.12)


@pytest.mark.parametrize(
    ("kind", "name", "shape"),
    [
        ("entry", "classes", (n, d)),
        ("entry", "numbers", (n, d)),
        ("entry", "classes", (4, 9)),
        ("row", "labels", (n, d)),
        ("column", "classes", (n, d)),
        ("column", "labels", (n, d)),
    ],
)
def test_projection_is_drawn_with_the_latent_variables_integrated_out(kind, name, shape, rng):
    """Against the dense law of vec(P) given the scores, rows of noise noise V'V + 1 / eps."""
    model = small_model(kind, rng, name, shape=shape)
    state, model = redraw_outputs(draw_prior(model, rng), model, rng)
    chains = in_chains(state, 400)
    draws = gibbs.draw_joint(chains.phi, gibbs.evidence_of(chains, model), rng, model)
    state = gibbs.Draw(*(value[0] for value in state))
    X, V = np.asarray(model.ridge.X @ np.eye(model.ridge.X.shape[1])), state.B[1:]
    phi = of_entries(state.phi, kind, state.P.shape)
    precision, rhs = np.diag(phi.ravel()), 0.0
    for i, x in enumerate(X):
        known = np.ones(c) if model.outputs.observed is None else model.outputs.observed[i]
        S = model.ridge.noise * V.T @ V + np.diag(1.0 / state.eps)
        S = S[np.ix_(known > 0, known > 0)]
        G = np.kron(x[:, None], V[:, known > 0])
        precision = precision + G @ np.linalg.solve(S, G.T)
        rhs = rhs + G @ np.linalg.solve(S, (state.T[i] - state.B[0])[known > 0])
    covariance = np.linalg.inv(precision)
    white = np.linalg.cholesky(precision).T @ (draws.reshape(400, -1) - covariance @ rhs).T
    assert np.abs(white.mean(axis=1)).max() < 0.25
    assert_allclose(np.cov(white), np.eye(len(white)), atol=0.4)


def test_log_joint_changes_as_the_densities_do(rng):
    model = small_model("entry", rng)
    state, model = redraw_outputs(draw_prior(model, rng), model, rng)
    other = state._replace(Z=state.Z + 0.1)
    X = model.ridge.X @ np.eye(d)

    def dense(s):
        noise = model.ridge.noise
        total = stats.norm(X @ s.P, np.sqrt(noise)).logpdf(s.Z).sum()
        return total + stats.norm(s.Z @ s.B[:, 1:] + s.B[:, :1]).logpdf(s.T).sum()

    change = gibbs.log_joint(other, model) - gibbs.log_joint(state, model)
    assert_allclose(change, dense(other) - dense(state))


@pytest.mark.parametrize("kind", KINDS)
def test_ways_to_solve_for_the_projection_agree(kind, rng, monkeypatch):
    """Along axes, with the matrix formed, and by conjugate gradients, for the same noise."""
    model = small_model(kind, rng)
    state, model = redraw_outputs(draw_prior(model, rng), model, rng)
    chains = in_chains(state, 2)
    chains = chains._replace(B=chains.B * np.array([1.0, 2.0])[:, None, None])

    def draws():
        evidence = gibbs.evidence_of(chains, model)
        return gibbs.draw_joint(chains.phi, evidence, np.random.default_rng(3), model)

    found = draws()
    one_pattern = model.patterns._replace(of_row=np.zeros(n, dtype=int))
    model = model._replace(patterns=one_pattern)
    assert_allclose(found, draws(), rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("name", ["classes", "labels", "numbers"])
def test_chains_know_nothing_of_each_other(name, rng):
    """What a chain is told by its scores, and its density, are those it has alone."""
    model = small_model("entry", rng, name)
    state, model = redraw_outputs(draw_prior(model, rng), model, rng)
    other, _ = redraw_outputs(draw_prior(model, rng), model, rng)
    both = gibbs.Draw(*(np.concatenate(pair) for pair in zip(state, other, strict=True)))
    reference = rng.standard_normal((n, q))
    for i, alone in enumerate((state, other)):
        for function in (gibbs.evidence_of, partial(gibbs.keep, reference=reference)):
            pairs = zip(function(both, model=model), function(alone, model=model), strict=True)
            for together, single in pairs:
                assert_allclose(together[i], single[0], rtol=1e-12)


@pytest.mark.parametrize("name", ["classes", "labels"])
def test_chances_given_the_noise_average_to_the_chance_of_the_outputs(name, rng):
    """The noise of a row's own score is standard normal; over it the chances have their mean."""
    labels = ClassOutputs(np.array([1]), c)
    outputs = labels if name == "classes" else SignOutputs(np.array([[1.0, 0.0, -1.0]]))
    M = rng.standard_normal((1, 1, c))
    noise = rng.standard_normal((200_000, 1, c))
    chances = np.exp(outputs.log_chances(noise)(np.broadcast_to(M, noise.shape)))
    error = chances.std() / np.sqrt(len(noise))
    exact = np.exp(outputs.scores(M[0])[1])
    assert_allclose(chances.mean(), exact, rtol=2e-3, atol=5 * error)


def test_turned_draws_are_kept_alike(rng):
    model = small_model("entry", rng)
    state, model = redraw_outputs(draw_prior(model, rng), model, rng)
    turn = np.linalg.qr(rng.standard_normal((q, q)))[0]
    B = np.concatenate([state.B[:, :1], turn.T @ state.B[:, 1:]], axis=1)
    turned = state._replace(P=state.P @ turn, projected=state.projected @ turn, B=B)
    reference = rng.standard_normal((n, q))
    one, two = (gibbs.keep(s, model, reference) for s in (state, turned))
    assert_allclose(two.P, one.P, atol=1e-10)
    assert_allclose(two.V, one.V, atol=1e-10)
    assert_allclose(two.score_spread, one.score_spread, atol=1e-10)
    small = gibbs.keep(state._replace(B=1e-3 * state.B), model, reference)
    assert_allclose(small.score_spread, 1e-3 * one.score_spread, rtol=1e-6)


def test_chain_agrees_with_the_variational_mean_on_easy_data(rng):
    X = rng.standard_normal((300, 3))
    labels = (X[:, :1] * [1.0, 0.0, -1.0] + 0.3 * rng.standard_normal((300, 3))).argmax(axis=1)
    model = make_model(gram_or_dual_ridge(Matrix(X), 1.0), ClassOutputs(labels, 3), Priors())
    start = sweeps.start(model, regression_start(model, 1, rng))
    fit = iterate(Method(start, partial(sweeps.step, model=model)), max_iter=100, tol=0).state
    kept = gibbs.sample(fit, model, gibbs.Sampling(1, 80, 30), rng)
    direction = kept.P[0].mean(axis=0)[:, 0]
    cosine = direction @ fit.P[:, 0] / np.linalg.norm(direction) / np.linalg.norm(fit.P)
    assert cosine > 0.98


@pytest.mark.parametrize(
    "rhat, size, mixed", [(1.0, 1e4, True), (1.5, 1e4, False), (1.0, 9, False)]
)
def test_draws_are_trusted_where_chains_agree_and_are_long(rhat, size, mixed):
    draws = gibbs.Draws(
        {},
        {"a": np.ones(2), "b": np.array([1.0, rhat])},
        {"a": np.full(2, 1e4), "b": np.array([1e4, size])},
    )
    assert draws.have_mixed == mixed
