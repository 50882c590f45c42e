import pickle
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pandas as pd
import polars as pl
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse
from sklearn import config_context
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.decomposition import PCA
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import PPCA
from gnomon.datasets import make_subspace, remove_entries
from gnomon.linalg.blocks import Blocks
from gnomon.linalg.data import Matrix

SOLVERS = ["auto", "moments", "dual", "subspace", "em"]
VARIANTS = [PPCA(solver=solver) for solver in SOLVERS] + [
    PPCA("auto"),
    PPCA(0.8),
    PPCA("auto", prior="ard"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(VARIANTS)
def test_estimator_contract(estimator, check):
    check(estimator)


def span(model):
    """Projection onto the fitted subspace."""
    Q, _ = np.linalg.qr(np.asarray(model.components_, dtype=float).T)
    return Q @ Q.T


@pytest.fixture(scope="module")
def X():
    return make_subspace(150, 12, 3).X


def wide():
    return np.random.default_rng(0).normal(size=(40, 300))


DATA = {
    "digits": lambda: load_digits().data,
    "wine": lambda: load_wine().data,
    "breast cancer": lambda: load_breast_cancer().data,
    "wide": wide,
}


def maximum_likelihood(pca, X, q):
    """scikit-learn's fit with divisor n, and with the noise spread over all d - q directions."""
    n, d = X.shape
    pca.explained_variance_ = pca.explained_variance_ * (n - 1) / n
    pca.noise_variance_ *= (n - 1) / n * (min(n, d) - q) / (d - q)
    return pca


@pytest.mark.parametrize("name", DATA)
@pytest.mark.parametrize("solver", ["moments", "dual", "subspace"])
def test_it_agrees_with_scikit_learn(name, solver):
    X, q = DATA[name](), 5
    pca = maximum_likelihood(PCA(q, svd_solver="full").fit(X), X, q)
    model = PPCA(q, solver=solver, tol=1e-15, random_state=0).fit(X)
    scale = np.abs(pca.get_covariance()).max()
    assert_allclose(model.noise_variance_, pca.noise_variance_, rtol=1e-8)
    assert_allclose(model.get_covariance(), pca.get_covariance(), atol=1e-8 * scale)
    assert_allclose(model.explained_variance_, pca.explained_variance_, rtol=1e-8)
    assert_allclose(model.score(X), pca.score(X), rtol=1e-8)
    assert_allclose(span(model), pca.components_.T @ pca.components_, atol=1e-8)


def test_with_few_features_no_correction_but_the_divisor_is_needed():
    X = load_wine().data
    model, pca = PPCA(3).fit(X), PCA(3).fit(X)
    n = len(X)
    assert_allclose(model.noise_variance_ * n / (n - 1), pca.noise_variance_, rtol=1e-8)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["digits", "wine", "breast cancer"])
def test_em_equals_the_closed_form(name):
    X = StandardScaler().fit_transform(DATA[name]())
    model = PPCA(3, solver="em", tol=0, max_iter=1000, random_state=0).fit(X)
    expected = PPCA(3).fit(X)
    scale = np.abs(expected.get_covariance()).max()
    assert_allclose(model.noise_variance_, expected.noise_variance_, rtol=1e-8)
    assert_allclose(model.get_covariance(), expected.get_covariance(), atol=1e-6 * scale)


@pytest.mark.parametrize("solver", ["moments", "dual", "subspace"])
def test_storage_does_not_matter(solver):
    rng = np.random.default_rng(0)
    X = np.where(rng.random((120, 80)) < 0.1, rng.normal(size=(120, 80)), 0.0)
    kinds = {
        "csr": sparse.csr_array(X),
        "csc matrix": sparse.csc_matrix(X),
        "coo": sparse.coo_array(X),
        "fortran": np.asfortranarray(X),
        "strided": np.repeat(X, 2, axis=0)[::2],
        "big endian": X.astype(">f8"),
        "blocks": Blocks([Matrix(X[:50]), Matrix(sparse.csr_array(X[50:]))]),
    }
    make = PPCA(4, solver=solver, tol=1e-15, random_state=0)
    expected = clone(make).fit(X)
    for kind, stored in kinds.items():
        model = clone(make).fit(stored)
        assert_allclose(model.get_covariance(), expected.get_covariance(), atol=1e-10, err_msg=kind)
        assert_allclose(model.transform(stored), expected.transform(X), atol=1e-9, err_msg=kind)
        assert_allclose(model.score_samples(stored), expected.score_samples(X), atol=1e-9)


@pytest.mark.parametrize("solver", SOLVERS)
def test_single_precision_stays_and_agrees(X, solver):
    model = PPCA(3, solver=solver, random_state=0).fit(X.astype(np.float32))
    assert model.components_.dtype == model.transform(X.astype(np.float32)).dtype == np.float32
    assert_allclose(span(model), span(PPCA(3).fit(X)), atol=1e-3)


def test_frames_go_in_and_out(X):
    names = [f"f{i}" for i in range(12)]
    expected = PPCA(2).fit(X)
    model = PPCA(2).set_output(transform="pandas").fit(pd.DataFrame(X, columns=names))
    assert list(model.feature_names_in_) == names
    frame = model.transform(pd.DataFrame(X, columns=names))
    assert list(frame.columns) == ["ppca0", "ppca1"]
    assert_allclose(frame, expected.transform(X))
    polars = PPCA(2).set_output(transform="polars").fit(pl.DataFrame(X, schema=names))
    assert isinstance(polars.transform(pl.DataFrame(X, schema=names)), pl.DataFrame)


def test_nullable_columns_and_masked_arrays_are_missing_values(X):
    gaps = remove_entries(X, 0.1)
    expected = PPCA(2).fit(gaps)
    frame = pd.DataFrame(gaps).convert_dtypes()
    masked = np.ma.masked_invalid(gaps)
    for stored in (frame, masked):
        assert_allclose(PPCA(2).fit(stored).get_covariance(), expected.get_covariance())


def test_it_works_in_pipelines_and_searches(X):
    search = GridSearchCV(
        make_pipeline(StandardScaler(with_std=False), PPCA()),
        {"ppca__n_components": [1, 3, 6]},
        cv=3,
    )
    assert search.fit(X).best_params_ == {"ppca__n_components": 3}


def test_sample_weights_are_routed(X):
    with config_context(enable_metadata_routing=True):
        pipe = make_pipeline(PPCA(2).set_fit_request(sample_weight=True))
        pipe.fit(X, sample_weight=np.ones(len(X)))
    assert_allclose(pipe[-1].get_covariance(), PPCA(2).fit(X).get_covariance())


@pytest.mark.parametrize("gaps", [False, True])
def test_weights_equal_repetition(X, gaps):
    rng = np.random.default_rng(0)
    X = remove_entries(X, 0.2) if gaps else X
    weights = rng.integers(0, 3, size=len(X))
    one = PPCA(3, tol=1e-13).fit(X, sample_weight=weights)
    two = PPCA(3, tol=1e-13).fit(np.repeat(X, weights, axis=0))
    assert_allclose(one.get_covariance(), two.get_covariance(), rtol=1e-5, atol=1e-5)
    assert_allclose(one.log_likelihood_, two.log_likelihood_, rtol=1e-10)


def test_gaps_at_transform_alone_are_welcome(X):
    model = PPCA(3).fit(X)
    row = X[:1].copy()
    row[0, :4] = np.nan
    assert model.transform(row).shape == (1, 3)
    wide_posterior, narrow = model.posterior(row), model.posterior(X[:1])
    assert np.trace(wide_posterior.covariance[0]) > np.trace(narrow.covariance[0])
    assert_allclose(model.posterior(X).mean, model.transform(X))
    assert_array_equal(model.impute(X), X)


@pytest.mark.parametrize("seed", range(3))
def test_intervals_of_imputed_values_cover_what_they_say(seed):
    sample = make_subspace(2000, 12, 3, random_state=seed)
    gaps = remove_entries(sample.X, 0.2, random_state=seed)
    values, std = PPCA(3).fit(gaps).impute(gaps, return_std=True)
    missing = np.isnan(gaps)
    covered = np.abs(values - sample.X)[missing] < 1.96 * std[missing]
    assert 0.93 < covered.mean() < 0.97
    assert np.all(std[~missing] == 0)


def test_posterior_covers_the_true_latent_variables():
    sample = make_subspace(4000, 20, 2, random_state=4)
    model = PPCA(2).fit(sample.X)
    model.components_, model.mean_ = sample.loadings.T, sample.mean
    model.noise_variance_ = sample.noise_variance
    mean, covariance = model.posterior(sample.X)
    deviations = np.sqrt(np.diagonal(covariance, axis1=1, axis2=2))
    for level, width in ((0.5, 0.6745), (0.8, 1.2816), (0.95, 1.96)):
        share = np.mean(np.abs(mean - sample.Z) < width * deviations)
        assert abs(share - level) < 3 * np.sqrt(level * (1 - level) / mean.size)


def test_draws_look_like_the_data(X):
    model = PPCA(3).fit(X)
    draws = model.sample(100_000, random_state=0)
    assert_allclose(np.cov(draws.T), model.get_covariance(), atol=0.3)
    assert_array_equal(model.sample(5, random_state=1), model.sample(5, random_state=1))
    assert_allclose(model.get_precision() @ model.get_covariance(), np.eye(12), atol=1e-10)


def test_inverse_transform_is_the_mean_of_x_given_z(X):
    model = PPCA(11).fit(X)
    assert_allclose(model.inverse_transform(model.transform(X)), X, atol=2)
    with pytest.raises(ValueError, match=r"Z has shape \(2, 3\).*\(n_samples, 11\)"):
        model.inverse_transform(np.ones((2, 3)))


def test_a_share_of_variance_gives_as_many_components_as_scikit_learn():
    X = load_digits().data
    for share in (0.3, 0.8, 0.95):
        assert PPCA(share).fit(X).n_components_ == PCA(share).fit(X).n_components_


def test_auto_finds_the_planted_dimension_and_keeps_its_curve():
    sample = make_subspace(300, 15, 4, random_state=3)
    for X in (sample.X, remove_entries(sample.X, 0.1)):
        model = PPCA("auto", random_state=0).fit(X)
        assert model.n_components_ == 4
        assert set(model.criterion_) == {"n_components", "mean", "std"}
        assert 4 in model.criterion_["n_components"]


# Degenerate data give a right result, or an error that names the argument.


@pytest.mark.parametrize("offset", ["common", "per column"])
@pytest.mark.parametrize("solver", ["auto", "moments", "dual", "subspace", "em"])
def test_an_offset_of_1e8_does_not_turn_the_subspace(solver, offset):
    X = make_subspace(500, 20, 3).X
    rng = np.random.default_rng(0)
    shift = 1e8 if offset == "common" else 1e8 * rng.normal(size=20)
    near = PPCA(3, solver="moments").fit(X - X.mean(axis=0))
    model = PPCA(3, solver=solver, random_state=0, tol=1e-12).fit(X + shift)
    assert np.linalg.norm(span(model) - span(near), 2) < 1e-4
    assert_allclose(model.score(X + shift), near.score(X - X.mean(axis=0)), rtol=1e-4)


@pytest.mark.parametrize("scale", [1e-150, 1e-30, 1e30, 1e150])
@pytest.mark.parametrize("gaps", [False, True])
def test_scale_does_not_turn_the_subspace(X, scale, gaps):
    Y = remove_entries(X, 0.1) if gaps else X
    expected = PPCA(3).fit(Y)
    model = PPCA(3).fit(Y * scale)
    assert np.linalg.norm(span(model) - span(expected), 2) < 1e-3
    assert_allclose(model.transform(Y * scale), expected.transform(Y), atol=1e-3)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("scale", [1e-300, 1e300])
def test_a_scale_out_of_range_is_an_error(X, scale, gaps):
    with pytest.raises(ValueError, match=r"X has .*; .*rescale X"):
        PPCA(3).fit((remove_entries(X) if gaps else X) * scale)


def test_constant_and_repeated_columns_are_harmless(X):
    expected = PPCA(3).fit(X)
    constant = PPCA(3).fit(np.column_stack([X, np.zeros(len(X)), np.full(len(X), 7.0)]))
    assert_allclose(span(constant)[:12, :12], span(expected), atol=1e-8)
    assert_allclose(constant.components_[:, 12:], 0, atol=1e-10)
    doubled = PPCA(3).fit(np.column_stack([X, X[:, 0]]))
    assert_allclose(doubled.components_[:, 0], doubled.components_[:, 12], atol=1e-8)


def test_repeated_rows_change_nothing(X):
    assert_allclose(
        PPCA(3).fit(np.tile(X, (3, 1))).get_covariance(), PPCA(3).fit(X).get_covariance()
    )


@pytest.mark.parametrize("X", [np.zeros((5, 3)), np.ones((5, 3)) * 3.3])
@pytest.mark.parametrize("size", [1, 0.5, "auto"])
def test_rows_without_variation_are_an_error(X, size):
    with pytest.raises(ValueError, match="X has no variation"):
        PPCA(size).fit(X)


def test_data_of_low_rank_hold_the_noise_at_its_floor_and_say_so():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 2)) @ rng.normal(size=(2, 6))
    with pytest.warns(ConvergenceWarning, match="n_components == 2 explains all variance"):
        model = PPCA(2).fit(X)
    assert_allclose(model.noise_variance_, 1e-9 * X.var(axis=0).mean(), rtol=1e-6)
    assert_allclose(model.get_covariance(), np.cov(X.T, bias=True), atol=1e-6)
    with pytest.warns(ConvergenceWarning, match="n_components == 4"):
        PPCA(4).fit(X)


@pytest.mark.parametrize(
    ("value", "error"),
    [(0, ValueError), (-1, ValueError), (2.5, ValueError), ("two", ValueError), (13, ValueError),
     (None, TypeError), (True, TypeError), (1.0, ValueError), ([2], TypeError)],
)  # fmt: skip
def test_a_wrong_number_of_components_is_named(X, value, error):
    model = PPCA(value)
    with pytest.raises(error, match="n_components"):
        model.fit(X)
    with pytest.raises(NotFittedError):
        model.transform(X)
    assert not hasattr(model, "components_")


@pytest.mark.parametrize(
    ("parameters", "match"),
    [
        ({"solver": "svd"}, "solver == 'svd'; accepted are 'auto'"),
        ({"max_iter": 0}, "max_iter == 0"),
        ({"tol": -1.0}, "tol == -1.0"),
        ({"tol": "small"}, "tol must be a number"),
    ],
)
def test_wrong_parameters_are_named(X, parameters, match):
    with pytest.raises((ValueError, TypeError), match=match):
        PPCA(**parameters).fit(X)


def test_bad_rows_are_named(X):
    with pytest.raises(ValueError, match="infinity"):
        PPCA().fit(np.where(X > 5, np.inf, X))
    with pytest.raises(ValueError, match="minimum of 2 is required"):
        PPCA().fit(X[:1])
    with pytest.raises(ValueError, match="0 feature"):
        PPCA().fit(np.empty((5, 0)))
    empty = X.copy()
    empty[:, 3] = np.nan
    with pytest.raises(ValueError, match="no observed value in column 3"):
        PPCA().fit(empty)
    with pytest.raises(ValueError, match=r"NaN and is sparse.*dense X only"):
        PPCA().fit(sparse.csr_array(np.where(X > 5, np.nan, 0.0)))
    with pytest.raises(TypeError, match="X is sparse"):
        PPCA().fit(X).impute(sparse.csr_array(X))
    with pytest.raises(ValueError, match=r"sample_weight has shape \(3,\); accepted is \(150,\)"):
        PPCA().fit(X, sample_weight=np.ones(3))


@pytest.mark.parametrize("kind", ["float16", "longdouble", "int8", "bool"])
def test_other_number_types_are_read_as_float(X, kind):
    Y = (X > 0) if kind == "bool" else np.round(X).astype(kind)
    expected = PPCA(2).fit(np.asarray(Y, dtype=float))
    assert_allclose(PPCA(2).fit(Y).get_covariance(), expected.get_covariance(), atol=5e-2)


def test_a_row_without_any_entry_is_at_the_prior(X):
    gaps = X.copy()
    gaps[0] = np.nan
    model = PPCA(3).fit(gaps)
    mean, covariance = model.posterior(gaps)
    assert_allclose(mean[0], 0, atol=1e-12)
    assert_allclose(covariance[0], np.eye(3), atol=1e-12)
    assert model.score_samples(gaps)[0] == 0


def test_the_same_seed_gives_the_same_bits_and_leaves_the_global_one(X):
    state = np.random.get_state()[1].copy()
    one, two = (PPCA(3, solver="subspace", random_state=5).fit(X) for _ in range(2))
    assert_array_equal(one.components_, two.components_)
    assert_array_equal(np.random.get_state()[1], state)


def test_a_refit_forgets(X):
    model = PPCA("auto", random_state=0).fit(X)
    model.set_params(n_components=2).fit(X[:, :5])
    assert model.components_.shape == (2, 5)
    assert not hasattr(model, "criterion_")


def test_concurrent_transforms_are_equal(X):
    model = PPCA(3).fit(X)
    expected = model.transform(X)
    with ThreadPoolExecutor(8) as pool:
        for result in pool.map(lambda _: model.transform(X), range(64)):
            assert_array_equal(result, expected)


def test_a_pickle_comes_back(X):
    model = PPCA(3).fit(X)
    assert_array_equal(pickle.loads(pickle.dumps(model)).transform(X), model.transform(X))


def test_too_few_iterations_warn_once(X):
    with pytest.warns(ConvergenceWarning, match="PPCA stopped after 2 iterations") as caught:
        model = PPCA(3, max_iter=2).fit(remove_entries(X, 0.2))
    assert len(caught) == 1
    assert not model.converged_
    assert model.n_iter_ == 2


def test_scikit_learn_callbacks_see_the_iterations(X, iteration_count):
    model = PPCA(3).set_callbacks(iteration_count).fit(remove_entries(X, 0.2))
    assert iteration_count.seen == model.n_iter_ - 1


def test_wide_indices_of_sparse_rows_are_read(X):
    stored = sparse.csr_array(np.where(np.abs(X) > 4, X, 0.0))
    expected = PPCA(2).fit(stored)
    stored.indices, stored.indptr = stored.indices.astype(np.int64), stored.indptr.astype(np.int64)
    assert_allclose(PPCA(2).fit(stored).get_covariance(), expected.get_covariance())


def test_nulls_of_a_polars_frame_are_missing_values(X):
    gaps = remove_entries(X, 0.1)
    frame = pl.DataFrame(gaps).fill_nan(None)
    assert_allclose(PPCA(2).fit(frame).get_covariance(), PPCA(2).fit(gaps).get_covariance())


@pytest.mark.parametrize("size", [1, 7, 40])
@pytest.mark.parametrize("n_components", [2, 0.8])
def test_parts_of_any_size_make_the_fit_of_all_rows(rng, size, n_components):
    X, weights = rng.normal(size=(40, 5)) * np.arange(1, 6) + 3, rng.random(40) + 0.1
    model = PPCA(n_components)
    model.partial_fit(X[:10], sample_weight=weights[:10])
    for start in range(10, 40, size):
        part = slice(start, start + size)
        model.partial_fit(X[part], sample_weight=weights[part])
    whole = PPCA(n_components).fit(X, sample_weight=weights)
    assert model.n_components_ == whole.n_components_
    assert_allclose(model.get_covariance(), whole.get_covariance(), rtol=1e-10)
    assert_allclose(model.mean_, whole.mean_)
    assert_allclose(model.log_likelihood_, whole.log_likelihood_, rtol=1e-10)
    assert model.moments_.n_rows == 40


def test_sparse_and_single_parts_make_the_same_fit(rng):
    X = sparse.random_array((60, 8), density=0.3, rng=rng, format="csr")
    model = PPCA(2).partial_fit(X[:20]).partial_fit(X[20:])
    assert_allclose(model.get_covariance(), PPCA(2).fit(X.toarray()).get_covariance(), rtol=1e-10)
    single = X.toarray().astype(np.float32)
    assert PPCA(2).partial_fit(single).components_.dtype == np.float32


def test_a_failed_part_leaves_the_model_as_it_was(rng):
    X = rng.normal(size=(20, 3))
    model = PPCA(1).partial_fit(X)
    with pytest.raises(ValueError, match="NaN"):
        model.partial_fit(np.where(X > 1, np.nan, X))
    with pytest.raises(ValueError, match="4 features"):
        model.partial_fit(np.ones((5, 4)))
    assert model.moments_.n_rows == 20
    assert_allclose(model.get_covariance(), PPCA(1).fit(X).get_covariance())


def test_parts_need_rows_enough_and_a_size_that_moments_can_tell(rng):
    X = rng.normal(size=(20, 3))
    with pytest.raises(ValueError, match="n_components == 2"):
        PPCA(2).partial_fit(X[:1])
    with pytest.raises(AttributeError) as caught:
        PPCA("auto").partial_fit(X)
    assert "keeps moments, not rows" in str(caught.value.__cause__)


def test_a_fit_forgets_the_parts_before_it(rng):
    X = rng.normal(size=(20, 3))
    model = PPCA(1).partial_fit(X).fit(X)
    assert not hasattr(model, "moments_")
    assert model.partial_fit(X).moments_.n_rows == 20


def test_the_prior_finds_the_number_of_components_and_the_maximum_of_its_bound(rng):
    X = rng.standard_normal((80, 3)) @ rng.standard_normal((3, 10)) * 2
    X += rng.standard_normal(X.shape)
    model = PPCA("auto", prior="ard").fit(X)
    assert model.n_components_ == 3 and not hasattr(model, "log_likelihood_")
    assert PPCA(2, prior="ard").fit(X).n_components_ == 2
    weights = rng.integers(0, 3, 80)
    repeated = PPCA("auto", prior="ard").fit(np.repeat(X, weights, axis=0))
    weighted = PPCA("auto", prior="ard").fit(X, sample_weight=weights)
    assert_allclose(weighted.objective_, repeated.objective_)
    assert_allclose(weighted.get_covariance(), repeated.get_covariance(), atol=1e-6)


def test_a_share_of_the_variance_is_not_for_the_prior(rng):
    with pytest.raises(ValueError, match="with prior='ard' accepted are integers"):
        PPCA(0.9, prior="ard").fit(rng.standard_normal((20, 4)))
