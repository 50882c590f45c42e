import re
import warnings

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.linalg import subspace_angles
from scipy.stats import multivariate_normal
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import PPCA, PRPCA, Links
from gnomon.datasets import make_linked
from gnomon.linalg import graph
from gnomon.linalg.data import Matrix
from gnomon.models.relational import rounds

VARIANTS = [
    PRPCA(relation="paper"),
    PRPCA(solver="em", relation="paper"),
    PRPCA(projection="smoothed", relation="paper"),
    PRPCA(relation="filter"),
    PRPCA(relation="learnt"),
    PRPCA(),
    PRPCA("auto", prior="ard", relation="paper"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(VARIANTS)
def test_estimator_contract(estimator, check):
    check(estimator)


N, D = 60, 8


def path(n):
    return Links.from_edges([(i, i + 1) for i in range(n - 1)])


@pytest.fixture
def linked(rng):
    """Rows on a ring of groups: a smooth part on two axes, own parts and noise."""
    n = 240
    side = np.repeat(np.arange(8), 30)
    A = rng.random((n, n)) < np.where(np.equal.outer(side, side), 0.25, 0.004)
    # On an ellipse: two axes that differ and that the groups fill, whatever is drawn.
    angle = np.arange(8) * np.pi / 4
    centers = np.column_stack([3.5 * np.cos(angle), 2.5 * np.sin(angle)])
    axes = np.linalg.qr(rng.standard_normal((D, 4)))[0]
    own = 3 * rng.standard_normal((n, 2))
    X = np.hstack([centers[side] + rng.standard_normal((n, 2)), own]) @ axes.T
    return X + 0.5 * rng.standard_normal((n, D)) + 5, Links(np.triu(A, 1)), side


def gram(Z):
    return Z @ Z.T


@pytest.mark.parametrize("relation", ["paper", "filter", "learnt"])
def test_the_largest_loading_of_an_axis_is_positive(linked, relation):
    X, links, _ = linked
    model = PRPCA(3, relation=relation, random_state=0).fit(X, links=links)
    axes = [model.components_, getattr(model, "axes_", model.components_)]
    for row in np.vstack(axes):
        assert row[np.argmax(np.abs(row))] > 0


@pytest.mark.parametrize("relation", ["paper", "filter", "learnt"])
def test_without_links_it_is_ppca(rng, relation):
    X = rng.standard_normal((N, D)) @ rng.standard_normal((D, D))
    model = PRPCA(3, relation=relation).fit(X)
    expected = PPCA(3).fit(X)
    assert_allclose(gram(model.transform(X)), gram(expected.transform(X)), atol=1e-9)
    assert_allclose(model.score(X), expected.score(X))
    assert not model.links_used_


@pytest.mark.parametrize("relation", ["paper", "filter", "learnt"])
def test_missing_values_without_links_are_ppca(rng, relation):
    X = rng.standard_normal((N, D)) @ rng.standard_normal((D, D))
    X[rng.random(X.shape) < 0.1] = np.nan
    model = PRPCA(2, relation=relation, max_iter=500, tol=1e-11).fit(X)
    expected = PPCA(2, tol=1e-11).fit(X)
    assert_allclose(model.impute(X), expected.impute(X), atol=1e-4)


@pytest.mark.filterwarnings("ignore:X has missing values, which PPCA fills")
def test_entries_without_variation_are_refused():
    """Every column has one observed entry."""
    with pytest.raises(ValueError, match="X has no variation"):
        PRPCA(1, relation="paper").fit([[np.nan, -2.5], [-0.3, np.nan]], links=np.zeros((2, 2)))


def test_no_edges_scale_nothing(rng):
    X = rng.standard_normal((N, D)) @ rng.standard_normal((D, D))
    model = PRPCA(3, alpha=2.0, gamma=0.5, relation="paper").fit(X, links=np.zeros((N, N)))
    expected = PPCA(3).fit(X)
    assert_allclose(model.get_covariance(), expected.get_covariance())


@pytest.mark.parametrize(
    "store", [np.asarray, sparse.csr_array, sparse.csc_array, sparse.coo_array]
)
@pytest.mark.parametrize("relation", ["paper", "filter"])
def test_storage_changes_nothing(linked, relation, store):
    X, links, _ = linked
    X = np.where(np.abs(X - 5) > 3, X, 0.0)
    expected = PRPCA(2, relation=relation).fit_transform(X, links=links)
    A = store(links.adjacency.toarray())
    Z = PRPCA(2, relation=relation).fit_transform(sparse.csr_array(X), links=A)
    assert_allclose(gram(Z), gram(expected), atol=1e-8)


def test_transform_is_equation_19_scaled_to_an_unlinked_row(linked):
    X, links, _ = linked
    alpha, gamma = 1.5, 0.1
    model = PRPCA(2, alpha=alpha, gamma=gamma, relation="paper").fit(X, links=links)
    inner = alpha * np.eye(len(X)) + links.adjacency.toarray()
    Delta = gamma * np.eye(len(X)) + inner @ inner
    mean = X.T @ Delta.sum(axis=1) / Delta.sum()
    values, U = np.linalg.eigh((X - mean).T @ Delta @ (X - mean) / len(X))
    sigma2 = values[:-2].mean()
    W = U[:, -2:] * np.sqrt(values[-2:] - sigma2)
    Z = (X - mean) @ W @ np.linalg.inv(W.T @ W + sigma2 * np.eye(2)) * np.sqrt(alpha**2 + gamma)
    assert_allclose(model.mean_, mean)
    assert_allclose(gram(model.transform(X)), gram(Z), rtol=1e-7)
    assert_allclose(model.transform(X, links=links), model.transform(X))


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_em_equals_the_closed_form(linked):
    X, links, _ = linked
    closed = PRPCA(2, relation="paper").fit(X, links=links)
    em = PRPCA(2, solver="em", tol=0, max_iter=1000, relation="paper").fit(X, links=links)
    expected = closed.get_covariance()
    assert_allclose(em.get_covariance(), expected, rtol=0, atol=1e-6 * np.abs(expected).max())
    assert np.diff(em.objective_).min() > -1e-7
    assert em.n_iter_ > 1


def test_smoothed_projection_sums_over_neighbours(linked):
    X, links, _ = linked
    Z = PRPCA(2, relation="paper").fit(X, links=links).transform(X)
    model = PRPCA(2, projection="smoothed", relation="paper").fit(X, links=links)
    assert_allclose(model.transform(X, links=links), Z + links.adjacency @ Z)
    assert_allclose(model.transform(X), Z)


@pytest.mark.parametrize(
    "options",
    [
        {"relation": "filter"},
        {"relation": "paper", "projection": "smoothed"},
        {"relation": "learnt"},
        {"relation": "beside"},
    ],
)
def test_the_ways_to_name_the_graph_agree(linked, options):
    X, links, _ = linked
    new = np.arange(0, len(X), 5)
    old = np.setdiff1d(np.arange(len(X)), new)
    model = PRPCA(2, random_state=0, **options).fit(X[old], links=links, sample_index=old)
    one = model.transform(X[new], links=links, sample_index=new)
    extended = links.subset(np.concatenate([old, new]))
    assert_allclose(model.transform(X[new], links=extended), one, atol=1e-9)
    everything = model.transform(X, links=links, sample_index=np.arange(len(X)))
    assert_allclose(everything[new], one, atol=1e-6)
    assert np.abs(model.transform(X[new]) - one).max() > 0.01


@pytest.mark.parametrize("relation", ["paper", "filter", "learnt"])
def test_renaming_nodes_renames_the_result(linked, relation, rng):
    X, links, _ = linked
    order = rng.permutation(len(X))
    one = PRPCA(2, relation=relation, random_state=0).fit_transform(X, links=links)
    moved = links.subset(order)
    two = PRPCA(2, relation=relation, random_state=0).fit_transform(X[order], links=moved)
    assert_allclose(gram(two), gram(one)[np.ix_(order, order)], atol=2e-2 * np.abs(gram(one)).max())


def test_links_help_to_tell_groups_apart(linked):
    X, links, side = linked

    def spread(Z):
        within = np.mean([Z[side == s].var(axis=0).sum() for s in range(8)])
        return within / Z.var(axis=0).sum()

    plain = spread(PPCA(2).fit_transform(X))
    for options in (dict(relation="filter"), dict(relation="learnt")):
        assert spread(PRPCA(2, random_state=0, **options).fit_transform(X, links=links)) < plain / 3


def test_learnt_finds_the_smooth_axes_and_says_that_links_are_used(linked):
    X, links, _ = linked
    model = PRPCA(2, relation="learnt", random_state=0).fit(X, links=links)
    assert model.links_used_
    assert model.link_gain_ > model.permuted_link_gain_ + 50
    assert model.smoothness_.min() > 0.1
    assert_allclose(model.axes_ @ model.axes_.T, np.eye(len(model.axes_)), atol=1e-9)


def test_scarce_rows_are_fitted_no_further_than_serves_rows_held_out(rng):
    """Many columns and few rows: the maximum of the likelihood finds axes smooth by chance."""
    n, d = 100, 200
    side = np.repeat(np.arange(4), n // 4)
    densities = np.zeros(3)
    for _ in range(3):
        A = np.triu(rng.random((n, n)) < np.where(np.equal.outer(side, side), 0.15, 0.01), 1)
        X = 0.7 * rng.standard_normal((4, d))[side] + rng.standard_normal((n, d))
        links, new = Links(A), rng.random(n) < 0.2
        old = np.flatnonzero(~new)
        for k, tol in enumerate((None, 1e-5)):
            model = PRPCA(5, relation="learnt", own_components=10, tol=tol, max_iter=500)
            model.fit(X[old], links=links, sample_index=old)
            assert model.links_used_ and model.converged_
            S = graph.normalized(links.adjacency)
            held_out = rounds.hold_out(Matrix(X - model.mean_), S, np.flatnonzero(new))
            density = rounds.held_out_log_density(model._relational(), held_out, [1.0])
            densities[k] += density[0] / new.sum()
        densities[2] += PPCA(15).fit(X[old]).score(X[new])
    assert densities[0] > densities[1] > densities[2]


def test_score_with_links_is_the_joint_density(linked):
    X, links, _ = linked
    X, links = X[:40], links.subset(np.arange(40))
    model = PRPCA(2, relation="learnt", own_components=1, random_state=0).fit(
        *linked[:1], links=linked[1]
    )
    state = model._relational()
    S = graph.normalized(links.adjacency).toarray()
    C = state.sigma2 * np.eye(40 * D)
    for k in range(3):
        K = state.c[k] * np.eye(40)
        if k < 2:
            inner = np.linalg.inv(np.eye(40) + state.beta[k] * (np.eye(40) - S))
            K = K + state.a[k] * inner @ inner
        C += np.kron(K, np.outer(state.U[:, k], state.U[:, k]))
    expected = multivariate_normal(cov=C).logpdf((X - model.mean_).ravel()) / 40
    assert_allclose(model.score(X, links=links), expected, rtol=1e-6)
    paper = PRPCA(2, gamma=0.1, relation="paper").fit(X, links=links)
    inner = np.eye(40) + links.adjacency.toarray()
    Phi = np.linalg.inv(0.1 * np.eye(40) + inner @ inner)
    C = np.kron(Phi, 1.1 * paper.get_covariance())
    expected = multivariate_normal(np.tile(paper.mean_, 40), C).logpdf(X.ravel()) / 40
    assert_allclose(paper.score(X, links=links), expected, rtol=1e-8)


def test_score_of_the_filter_is_that_of_smoothed_rows(linked):
    X, links, _ = linked
    model = PRPCA(2, relation="filter", power=1).fit(X, links=links)
    smooth = graph.normalized(links.adjacency) @ (X - model.mean_)
    expected = multivariate_normal(cov=model.get_covariance()).logpdf(smooth).mean()
    assert_allclose(model.score(X, links=links), expected)


def test_posterior_has_the_mean_of_transform_and_less_variance_with_links(linked):
    X, links, _ = linked
    model = PRPCA(2, relation="learnt", random_state=0).fit(X, links=links)
    mean, covariance = model.posterior(X[:50], links=links, sample_index=np.arange(50))
    assert_allclose(mean, model.transform(X[:50], links=links, sample_index=np.arange(50)))
    alone = model.posterior(X[:50]).covariance
    linked_rows = links.adjacency[:50].sum(axis=1) > 0
    less, more = (np.trace(C, axis1=1, axis2=2)[linked_rows] for C in (covariance, alone))
    assert np.all(less < more)
    assert PRPCA(2, relation="paper").fit(X, links=links).posterior(X[:3]).covariance.shape == (
        3,
        2,
        2,
    )


def test_temper_trusts_neighbours_more(linked):
    X, links, side = linked
    model = PRPCA(2, relation="learnt", random_state=0)
    cool = model.fit_transform(X, links=links)
    warm = model.set_params(temper=10).transform(X, links=links)

    def share(Z):
        return np.mean([Z[side == s].var(axis=0).sum() for s in range(8)]) / Z.var(axis=0).sum()

    assert share(warm) < share(cool)


def test_a_row_of_links_alone_lands_among_its_neighbours(linked):
    X, links, side = linked
    new = np.arange(0, len(X), 6)
    old = np.setdiff1d(np.arange(len(X)), new)
    model = PRPCA(2, relation="learnt", random_state=0).fit(X[old], links=links, sample_index=old)
    Z = model.transform(X[old], links=links, sample_index=old)
    centers = np.array([Z[side[old] == s].mean(axis=0) for s in range(8)])
    blank = np.full((len(new), D), np.nan)
    found = model.transform(blank, links=links, sample_index=new)
    distances = np.linalg.norm(found[:, None] - centers[None], axis=2)
    assert np.mean(np.argmin(distances, axis=1) == side[new]) > 0.8


def test_content_is_filled_in_from_neighbours(linked):
    X, links, _ = linked
    new = np.arange(0, len(X), 6)
    old = np.setdiff1d(np.arange(len(X)), new)
    model = PRPCA(2, relation="learnt", random_state=0).fit(X[old], links=links, sample_index=old)
    blank = np.full((len(new), D), np.nan)
    filled = model.impute(blank, links=links, sample_index=new)
    error = np.sum((filled - X[new]) ** 2) / np.sum((X[new] - model.mean_) ** 2)
    assert error < 0.9
    some = np.where(np.arange(D) < 4, X[new], np.nan)
    filled, std = model.impute(some, links=links, sample_index=new, return_std=True)
    assert_allclose(filled[:, :4], X[new][:, :4])
    assert np.all(std[:, :4] == 0)
    alone, wider = model.impute(some, return_std=True)
    errors = [np.sum((values - X[new])[:, 4:] ** 2) for values in (filled, alone)]
    assert errors[0] < errors[1]
    assert np.all(std[:, 4:] < wider[:, 4:])
    # Of 40 rows with four values that go together: it deviates by .15 from one.
    assert 0.4 < np.mean(((filled - X[new])[:, 4:] / std[:, 4:]) ** 2) < 1.8


# Squared errors of filled entries, as shares of those without links. Links help where they are
# learnt (.94 and .98 on average over samples); the filter knows a row by its neighbours' mean
# (1.004, 1.003), the paper's prior has linked rows opposed (1.008, 1.006).
NO_WORSE = {
    ("learnt", False): 0.98,
    ("learnt", True): 1.005,
    ("filter", False): 1.005,
    ("filter", True): 1.0,
    ("paper", False): 1.015,
    ("paper", True): 1.01,
}


@pytest.mark.one_sample("shares of errors move by .01, coverage by .03, with 600 filled entries")
@pytest.mark.filterwarnings("ignore:X has missing values, which PPCA fills")
@pytest.mark.parametrize("in_fit", [False, True])
@pytest.mark.parametrize("relation", ["paper", "filter", "learnt"])
def test_intervals_of_filled_entries_cover_what_they_say(rng, relation, in_fit):
    """Links average most of a row's own noise away: what is left of it is not that of a row."""
    X, links = planted_groups(rng)
    gaps = rng.random(X.shape) < 0.2
    holes = np.where(gaps, np.nan, X)
    model = PRPCA(2, relation=relation, random_state=0).fit(holes if in_fit else X, links=links)
    filled, std = model.impute(holes, links=links, return_std=True)
    distances = np.abs(filled - X)[gaps] / std[gaps]
    assert_allclose([np.mean(distances < 1.96), np.mean(distances < 0.674)], [0.95, 0.5], atol=0.04)
    alone = PPCA(2).fit(holes if in_fit else X).impute(holes)
    errors = [np.mean((values - X)[gaps] ** 2) for values in (filled, alone)]
    assert errors[0] < NO_WORSE[relation, in_fit] * errors[1]


def planted_groups(rng):
    """Rows of 30 groups whose members share most of their latent part, and links within groups."""
    group = np.arange(300) % 30
    Z = 0.8 * rng.normal(size=(30, 2))[group] + 0.6 * rng.normal(size=(300, 2))
    X = Z @ rng.normal(size=(2, 10)) + 0.7 * rng.normal(size=(300, 10))
    inside = (group[:, None] == group) & (rng.random((300, 300)) < 0.3)
    return X, np.triu(inside, 1).astype(float)


@pytest.mark.one_sample("in one sample of some thirty content alone fills gaps better")
def test_missing_entries_in_the_fit_are_bridged_by_links(linked, rng):
    X, links = linked[0][::2], linked[1].subset(np.arange(0, 240, 2))
    holes = np.where(rng.random(X.shape) < 0.15, np.nan, X)
    # With a tolerance both end at their maxima, and not where entries left out ask to stop.
    options = dict(relation="learnt", own_components=2, tol=1e-4, random_state=0)
    model = PRPCA(2, **options).fit(holes, links=links)
    assert model.links_used_
    full = PRPCA(2, relation="learnt", own_components=2, tol=1e-7, max_iter=1000)
    full.fit(X, links=links)
    gap = model.axes_[:2].T @ model.axes_[:2] - full.axes_[:2].T @ full.axes_[:2]
    assert np.linalg.norm(gap, 2) < 0.2
    assert np.diff(model.objective_).min() > -1e-3 * len(X)
    gaps = np.isnan(holes)
    errors = [
        np.mean((values - X)[gaps] ** 2)
        for values in (model.impute(holes, links=links), PPCA(4).fit(holes).impute(holes))
    ]
    assert errors[0] < errors[1]


@pytest.mark.filterwarnings("ignore:X has missing values, which PPCA fills")
@pytest.mark.parametrize("relation", ["paper", "filter"])
def test_embeddings_of_rows_with_gaps_are_near_those_of_complete_rows(linked, relation, rng):
    X, links, _ = linked
    holes = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    full, gappy = (
        PRPCA(2, relation=relation).fit_transform(each, links=links) for each in (X, holes)
    )
    agreement = np.corrcoef(gram(full).ravel(), gram(gappy).ravel())[0, 1]
    assert agreement > (0.85 if relation == "paper" else 0.95)


def test_many_rows_are_reordered_and_in_single_precision_with_the_same_result(linked, monkeypatch):
    X, links, _ = linked
    X = sparse.csr_array(np.where(X > 5, X, 0.0))
    # Both at their maximum: far from it a direction that hardly matters is still open.
    options = dict(relation="learnt", own_components=2, tol=1e-9, max_iter=2000, random_state=0)
    few = PRPCA(2, **options).fit(X, links=links)
    monkeypatch.setattr("gnomon.models.relational.rounds.MANY", 100)
    many = PRPCA(2, **options).fit(X, links=links)
    # Single precision mostly ends 5e-6 of the likelihood from the maximum, at most at another one
    # that is 2e-4 lower, and where it is flat mostly two hundredths of the map from it; rows in the
    # wrong order share nothing of it.
    unsure = 5e-4 * abs(few.objective_[-1])
    assert_allclose(many.link_gain_, few.link_gain_, rtol=0, atol=unsure)
    expected, found = (gram(model.transform(X, links=links)) for model in (few, many))
    assert np.linalg.norm(found - expected) < 0.5 * np.linalg.norm(expected)


@pytest.mark.parametrize("seed", range(3))
def test_random_links_are_left_aside(linked, seed):
    X, links, _ = linked
    order = np.random.default_rng(seed).permutation(len(X))
    model = PRPCA(2, relation="learnt", own_components=2, random_state=seed)
    model.fit(X, links=links.subset(order))
    assert not model.links_used_
    expected = PPCA(4).fit(X)
    assert_allclose(model.score(X), expected.score(X), rtol=1e-6)
    axes = PPCA(2).fit(X).components_
    axes = np.linalg.qr(axes.T)[0]
    found = np.linalg.qr(model.components_.T)[0]
    assert_allclose(found @ found.T, axes @ axes.T, atol=1e-6)
    moved = links.subset(order)
    assert_allclose(model.transform(X, links=moved), model.transform(X))
    assert_allclose(model.score(X, links=moved), model.score(X))
    assert_allclose(model.posterior(X).mean, model.transform(X))


def test_axes_of_the_adjacency_may_stand_beside_an_embedding(linked):
    """The recipe of the documentation for graphs whose links carry classes of their own."""
    X, links, side = linked
    Z = PRPCA(2, random_state=0, relation="paper").fit_transform(X, links=links)
    both = np.hstack([Z, PPCA(8).fit_transform(links.adjacency)])
    plain, joint = (
        cross_val_score(LogisticRegression(max_iter=1000), each, side).mean() for each in (Z, both)
    )
    assert joint > plain + 0.2


def test_a_new_fit_forgets_the_last(linked):
    X, links, _ = linked
    model = PRPCA(2, relation="learnt", random_state=0).fit(X, links=links)
    model.set_params(relation="paper").fit(X)
    fresh = PRPCA(2, random_state=0, relation="paper").fit(X)
    assert vars(model).keys() == vars(fresh).keys()


GRAPHS = {
    "matching": np.kron(np.eye(N // 2), [[0, 1], [1, 0]]),
    "complete": 1 - np.eye(N),
    "clique": np.pad(np.ones((5, 5)) - np.eye(5), (0, N - 5)),
    "empty": np.zeros((N, N)),
}


def projected(X, mixed, q):
    """Posterior means of the rows of X by PPCA of mixed rows, from dense algebra."""
    values, U = np.linalg.eigh(mixed.T @ mixed / N)
    sigma2 = values[:-q].mean()
    return X @ (U[:, -q:] * np.sqrt(values[-q:] - sigma2) / values[-q:])


@pytest.mark.parametrize("name", GRAPHS)
def test_degenerate_graphs_of_the_paper_are_as_by_dense_algebra(rng, name):
    X, A = rng.standard_normal((N, D)), GRAPHS[name]
    R = np.vstack([np.eye(N) + A, 1e-3 * np.eye(N)])
    centered = X - X.T @ (R.T @ R).sum(axis=1) / np.sum(R.T @ R)
    expected = projected(centered, R @ centered, 2) * np.sqrt(1 + 1e-6)
    Z = PRPCA(2, random_state=0, relation="paper").fit_transform(X, links=A)
    assert_allclose(gram(Z), gram(expected), rtol=1e-6, atol=1e-8 * np.abs(gram(Z)).max())


@pytest.mark.parametrize("name", ["matching", "clique", "empty"])
def test_degenerate_graphs_of_the_filter_are_as_by_dense_algebra(rng, name):
    X, A = rng.standard_normal((N, D)), GRAPHS[name]
    S = graph.normalized(sparse.csr_array(A)).toarray()
    smoothed = S @ S @ (X - X.mean(axis=0))
    Z = PRPCA(2, relation="filter", random_state=0).fit_transform(X, links=A)
    assert_allclose(gram(Z), gram(projected(smoothed, smoothed, 2)), atol=1e-9)


@pytest.mark.parametrize("name", GRAPHS)
def test_degenerate_graphs_say_nothing_of_random_content(rng, name):
    X = rng.standard_normal((N, D))
    model = PRPCA(2, relation="learnt", own_components=1, random_state=0).fit(X, links=GRAPHS[name])
    assert not model.links_used_
    assert_allclose(model.score(X), PPCA(3).fit(X).score(X))


@pytest.mark.parametrize(
    ("options", "A"),
    [
        (dict(relation="paper", gamma=0.0), [[0, 1], [1, 0]]),
        (dict(relation="paper", gamma=0.0, solver="em"), [[0, 1], [1, 0]]),
        (dict(relation="filter"), [[0, 1], [1, 0]]),
        (dict(relation="filter", power=1), 1 - np.eye(30)),
    ],
)
def test_content_that_cancels_over_the_links_is_refused(options, A):
    """What was left of it was rounding, and depended on the seed."""
    for seed in range(10):
        X = np.random.default_rng(seed).standard_normal((len(A), 3))
        with pytest.raises(ValueError, match="no variation left once its rows are mixed"):
            PRPCA(1, **options).fit(X, links=A)


@pytest.mark.parametrize("relation", ["paper", "filter", "learnt"])
def test_offset_and_scale_change_nothing_but_scale(linked, relation):
    X, links, _ = linked
    model = PRPCA(2, relation=relation, random_state=0)
    Z = model.fit_transform(X, links=links)
    for moved in (X + 1e8, X * 1e-100):
        again = PRPCA(2, relation=relation, random_state=0).fit_transform(moved, links=links)
        assert_allclose(gram(again), gram(Z), atol=1e-2 * np.abs(gram(Z)).max())


def test_float32_stays_and_agrees(linked):
    X, links, _ = linked
    for relation in ("paper", "filter", "learnt"):
        one = PRPCA(2, relation=relation, random_state=0)
        Z = one.fit_transform(X.astype(np.float32), links=links)
        assert Z.dtype == np.float32
        expected = PRPCA(2, relation=relation, random_state=0).fit_transform(X, links=links)
        assert_allclose(gram(Z), gram(expected), atol=2e-2 * np.abs(gram(expected)).max())


def test_a_hub_in_small_integers_equals_floats(rng):
    X = rng.standard_normal((200, 4))
    star = np.zeros((200, 200), dtype=np.int8)
    star[0, 1:] = star[1:, 0] = 1
    one = PRPCA(2, relation="paper").fit(X, links=star).get_covariance()
    assert_allclose(
        one, PRPCA(2, relation="paper").fit(X, links=star.astype(float)).get_covariance()
    )


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (dict(n_components=0), "n_components == 0"),
        (dict(n_components=99), "n_components == 99"),
        (dict(relation="magic"), "relation == 'magic'"),
        (dict(alpha=0), "alpha == 0"),
        (dict(gamma=-1.0), "gamma == -1.0"),
        (dict(solver="qr"), "solver == 'qr'"),
        (dict(projection="x"), "projection == 'x'"),
        (dict(power=0), "power == 0"),
        (dict(temper=0.0), "temper == 0.0"),
        (dict(tol=-1.0), "tol == -1.0"),
    ],
)
def test_bad_parameters_are_named(rng, options, words):
    X = rng.standard_normal((N, D))
    with pytest.raises(ValueError, match=words):
        PRPCA(**options).fit(X, links=path(N))


def test_links_of_the_wrong_size_are_refused(rng):
    X = rng.standard_normal((N, D))
    model = PRPCA(relation="filter").fit(X, links=path(N))
    with pytest.raises(ValueError, match="links has 7 nodes, X has 5 rows and the fit had 60"):
        model.transform(X[:5], links=path(7))
    with pytest.raises(ValueError, match="sample_index has 2 entries"):
        model.transform(X[:5], links=path(N), sample_index=[0, 1])
    with pytest.raises(ValueError, match="rows of the fit go up to 59"):
        model.transform(X[:5], links=path(9), sample_index=np.arange(5))
    with pytest.raises(ValueError, match=r"pass Links\(adjacency\)"):
        PRPCA(relation="paper").fit(X[:30], links=path(N).adjacency[:30])
    with pytest.raises(ValueError, match="sample_index has 2 entries, X has 60 rows"):
        PRPCA(relation="paper").fit(X, sample_index=[0, 1])
    with pytest.raises(ValueError, match="with links score"):
        model.score(np.where(X > 2, np.nan, X), links=path(N))


def test_cross_validation_over_linked_rows(linked):
    X, links, side = linked
    with config_context(enable_metadata_routing=True):
        embed = PRPCA(2, relation="filter")
        embed.set_fit_request(links=True, sample_index=True)
        embed.set_transform_request(links=True, sample_index=True)
        model = make_pipeline(embed, LogisticRegression())
        cv = StratifiedKFold(5, shuffle=True, random_state=0)
        params = {"links": links, "sample_index": np.arange(len(X))}
        linked_score = cross_val_score(model, X, side, cv=cv, params=params).mean()
        alone = make_pipeline(PPCA(2), LogisticRegression())
        plain_score = cross_val_score(alone, X, side, cv=cv).mean()
        assert linked_score > plain_score + 0.2
        search = GridSearchCV(model, {"prpca__n_components": [1, 2]}, cv=cv)
        search.fit(X, side, **params)
        assert search.best_params_ == {"prpca__n_components": 2}
        cut = {"links": links.adjacency, "sample_index": np.arange(len(X))}
        with pytest.raises(ValueError, match="fits failed"):
            cross_val_score(model, X, side, cv=cv, params=cut)


def test_callback_stops_the_fit(linked):
    X, links, _ = linked
    seen = []

    def callback(n_iter, state, objective):
        seen.append(n_iter)
        return n_iter == 2

    with pytest.warns(ConvergenceWarning):
        PRPCA(2, solver="em", tol=0, callback=callback, relation="paper").fit(X, links=links)
    assert seen == [1, 2]


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_rewired_links_are_rejected_and_cost_nothing(linked, seed):
    X, links, side = linked
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(X))
    moved = links.subset(order)
    train = rng.permutation(len(X))[:180]
    test = np.setdiff1d(np.arange(len(X)), train)
    model = PRPCA(2, relation="learnt", own_components=2, random_state=seed)
    model.fit(X[train], links=moved, sample_index=train)
    assert not model.links_used_
    assert model.score(X[test]) >= PPCA(4).fit(X[train]).score(X[test]) - 1e-6
    classify = LogisticRegression()
    Z = [PPCA(2).fit(X[train]), model]
    scores = [
        classify.fit(m.transform(X[train]), side[train]).score(m.transform(X[test]), side[test])
        for m in Z
    ]
    # One row of sixty more or less is chance.
    assert scores[1] >= scores[0] - 1.01 / len(test)


@pytest.mark.parametrize("relation", ["paper", "filter"])
def test_it_is_said_that_ppca_fills_gaps_first(rng, relation):
    X = np.where(rng.random((N, D)) < 0.1, np.nan, rng.standard_normal((N, D)))
    with pytest.warns(UserWarning, match="PPCA fills from the content of each row"):
        PRPCA(2, relation=relation).fit(X, links=path(N))


def test_a_precision_of_ones_own_takes_the_place_of_links(rng):
    X, A = rng.standard_normal((N, D)), path(N)
    inner = np.eye(N) + A.adjacency.toarray()
    delta = sparse.csr_array(inner @ inner + 1e-6 * np.eye(N))
    own = PRPCA(2, relation="paper").fit(X, delta=delta)
    paper = PRPCA(2, relation="paper").fit(X, links=A)
    scale = delta.diagonal().mean() / (1 + 1e-6)
    assert_allclose(own.mean_, paper.mean_, atol=1e-8)
    assert_allclose(own.get_covariance() * scale, paper.get_covariance(), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize(
    "delta, options, word",
    [
        (np.eye(3), {}, "delta has shape"),
        (np.full((N, N), np.nan), {}, "delta has NaN or infinite entries"),
        (np.eye(N) + np.eye(N, k=1), {}, "not symmetric"),
        (np.diag(np.r_[0.0, np.ones(N - 1)]), {}, "delta cannot be used"),
        (np.eye(N), {"relation": "filter"}, "relation == 'filter'"),
    ],
)
def test_a_precision_that_cannot_be_one_is_refused(rng, delta, options, word):
    model = PRPCA(2, **({"relation": "paper"} | options))
    with pytest.raises(ValueError, match=word):
        model.fit(rng.standard_normal((N, D)), delta=delta)


def test_auto_smooths_where_links_join_rows_of_a_kind_and_leaves_permuted_links_aside():
    # Of columns enough to tell each other: content that tells nothing says nothing of links.
    sample = make_linked(300, 90, random_state=0)
    model = PRPCA(2).fit(sample.X, links=Links(sample.adjacency))
    same = PRPCA(2, relation="filter").fit(sample.X, links=Links(sample.adjacency))
    assert model.links_used_ and model.relation_ == "filter"
    links = Links(sample.adjacency)
    assert_allclose(model.transform(sample.X, links=links), same.transform(sample.X, links=links))
    order = np.random.default_rng(0).permutation(300)
    without = PRPCA(2).fit(sample.X, links=links.subset(order))
    assert not without.links_used_ and without.relation_ == "none"
    Z = PPCA(2).fit_transform(sample.X)
    assert_allclose(
        gram(without.transform(sample.X, links=links.subset(order))), gram(Z), atol=1e-8
    )
    assert_allclose(without.score(sample.X, links=links), without.score(sample.X))


def test_auto_keeps_neighbours_beside_where_links_join_different_kinds(rng):
    kind, community = np.arange(240) % 6, np.arange(240) // 6 % 4
    X = 2 * rng.standard_normal((6, 24))[kind] + rng.standard_normal((4, 24))[community]
    X += rng.standard_normal((240, 24))
    same = np.equal.outer(community, community)
    links = Links(np.triu(rng.random((240, 240)) < np.where(same, 0.25, 0.001), 1))
    model = PRPCA(2).fit(X, links=links)
    assert model.relation_ == "beside" and model.links_used_
    assert model.told_["smoothed"] > model.told_["content"]
    assert model.neighbour_components_.shape == model.components_.shape
    assert model.smoothed_components_.shape == model.components_.shape
    assert np.isfinite(model.score(X, links=links))
    again = model.set_params(relation="filter").fit(X, links=links)
    assert not hasattr(again, "neighbour_weight_") and not hasattr(again, "told_")
    assert not hasattr(again, "smoothed_weight_") and not hasattr(again, "smoothed_components_")


def test_beside_takes_gaps_filled_and_rows_with_links_alone(linked):
    X, links, _ = linked
    holes = np.where(np.random.default_rng(0).random(X.shape) < 0.1, np.nan, X)
    with pytest.warns(UserWarning, match="PPCA fills"):
        model = PRPCA(2, relation="beside").fit(holes, links=links)
    whole = PRPCA(2, relation="beside").fit(X, links=links)
    Z = model.transform(holes, links=links)
    assert np.all(np.isfinite(Z))
    shares = np.linalg.svd(np.linalg.qr(Z)[0].T @ np.linalg.qr(whole.transform(X, links=links))[0])
    assert shares.S.min() > 0.85
    alone = np.full((1, D), np.nan)
    pairs = [(240, 0), (240, 1), (240, 2)]
    new = whole.transform(alone, links=Links.from_edges(pairs, n_nodes=241), sample_index=[240])
    assert np.all(np.isfinite(new)) and np.abs(new).max() > 0


def test_the_planted_number_of_components_is_found_with_links_and_gaps():
    rng = np.random.default_rng(0)
    links = path(N)
    R = links.adjacency.toarray() + np.eye(N)
    L = np.linalg.cholesky(np.linalg.inv(R @ R + 0.1 * np.eye(N)))
    W = np.linalg.qr(rng.standard_normal((D, 2)))[0] * [4, 6]
    X = L @ (rng.standard_normal((N, 2)) @ W.T + rng.standard_normal((N, D))) + 3
    bayesian = {"prior": "ard", "relation": "paper", "gamma": 0.1}
    for rows in (X, np.where(rng.random(X.shape) < 0.1, np.nan, X)):
        model = PRPCA("auto", **bayesian).fit(rows, links=links)
        assert model.n_components_ == 2 and model.converged_
        assert np.all(model.prior_variances_ > 0)
        assert model.transform(rows, links=links).shape == (N, 2)
    at_most = PRPCA(1, **bayesian).fit(X, links=links)
    assert at_most.n_components_ == 1


def test_without_links_the_prior_makes_bayesian_pca(rng):
    X = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 6)) * 3 + rng.standard_normal(
        (50, 6)
    )
    relational = PRPCA("auto", prior="ard", relation="paper").fit(X)
    plain = PPCA("auto", prior="ard").fit(X)
    assert_allclose(gram(relational.components_.T), gram(plain.components_.T))
    assert_allclose(relational.objective_, plain.objective_)


def test_noise_has_no_component_and_a_warning_says_so(rng):
    """Noise as the model has it: linked rows vary together."""
    R = path(100).adjacency.toarray() + np.eye(100)
    L = np.linalg.cholesky(np.linalg.inv(R @ R + 0.1 * np.eye(100)))
    X = L @ rng.standard_normal((100, 6))
    with pytest.warns(ConvergenceWarning, match="no component has evidence"):
        model = PRPCA("auto", prior="ard", relation="paper", gamma=0.1).fit(X, links=path(100))
    assert_allclose(model.transform(X), np.zeros((100, 1)))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"n_components": "auto"}, "with prior='ard' 'auto'"),
        ({"prior": "ard"}, "relation == 'auto'; prior='ard' accepts 'paper'"),
        ({"prior": "ard", "relation": "paper", "solver": "em"}, "solver == 'em'"),
        ({"prior": "flat"}, "prior == 'flat'; accepted are None, 'ard'"),
    ],
)
def test_the_prior_goes_with_the_paper_and_its_closed_form(rng, options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        PRPCA(**options).fit(rng.standard_normal((20, 4)))


@pytest.mark.parametrize("relation", ["auto", "filter", "beside"])
def test_rows_without_links_are_those_of_pca(rng, relation):
    X = rng.normal(size=(60, 25))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = PRPCA(2, relation=relation).fit(X, links=np.zeros((60, 60)))
    T = model.transform(X, links=np.zeros((60, 60)))
    plain = PPCA(2).fit_transform(X)
    assert_allclose(subspace_angles(T, plain), 0, atol=1e-5)
