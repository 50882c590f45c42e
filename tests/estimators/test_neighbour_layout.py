import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError
from sklearn.manifold import trustworthiness
from sklearn.neighbors import KNeighborsClassifier
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import PPCA, SPPCA, NeighbourLayout
from gnomon.estimators import neighbour_layout


@parametrize_with_checks([NeighbourLayout(), NeighbourLayout(5.0, max_rows=20)])
def test_estimator_checks(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def digits():
    """A map of ten coordinates, its classes, and the model."""
    X, y = load_digits(return_X_y=True)
    X, y = X[:400], y[:400]
    model = SPPCA(10).fit(X, np.where(np.arange(400) < 100, y, -1))
    return model.transform(X), y, model.posterior(X).covariance


@pytest.fixture(scope="module")
def layout(digits):
    return NeighbourLayout().fit(digits[0])


def test_rows_that_are_near_on_the_map_stay_near_as_no_two_axes_keep_them(digits, layout):
    Z, *_ = digits
    kept = trustworthiness(Z, layout.transform(Z), n_neighbors=10)
    assert kept > 0.95
    lost_by_axes = 1 - trustworthiness(Z, Z[:, :2], n_neighbors=10)
    assert 1 - kept < 0.2 * lost_by_axes


def test_two_fits_agree_and_the_order_of_the_rows_does_not_matter(digits, layout):
    Z, *_ = digits
    order = np.random.default_rng(0).permutation(len(Z))
    again = clone(layout).fit(Z[order])
    assert_array_equal(again.transform(Z), layout.transform(Z))


def test_the_layout_is_turned_as_the_first_two_axes_are(digits, layout):
    Z, *_ = digits
    P = layout.transform(Z)
    turned = np.linalg.svd((P - P.mean(axis=0)).T @ (Z[:, :2] - Z[:, :2].mean(axis=0)))
    assert_allclose(turned[0] @ turned[2], np.eye(2), atol=1e-6)
    assert all(np.corrcoef(P[:, j], Z[:, j])[0, 1] > 0.5 for j in range(2))


def test_an_axis_turned_over_turns_the_layout_over(digits, layout):
    Z, *_ = digits
    mirrored = Z * np.where(np.arange(Z.shape[1]) == 0, -1.0, 1.0)
    P = NeighbourLayout().fit_transform(mirrored)
    assert np.corrcoef(P[:, 0], layout.transform(Z)[:, 0])[0, 1] < -0.5


def test_new_rows_lie_among_rows_of_their_kind(digits):
    Z, y, _ = digits
    layout = NeighbourLayout().fit(Z[:300])
    nearest = KNeighborsClassifier(1).fit(layout.transform(Z[:300]), y[:300])
    on_map = KNeighborsClassifier(1).fit(Z[:300], y[:300]).score(Z[300:], y[300:])
    # Four standard errors of the difference, of 100 rows of which a tenth is told apart by one.
    assert nearest.score(layout.transform(Z[300:]), y[300:]) > on_map - 0.12


def test_a_new_row_between_two_lies_between_them():
    Z = np.repeat(np.eye(4)[:2], 10, axis=0) + 1e-3 * np.random.default_rng(0).normal(size=(20, 4))
    layout = NeighbourLayout().fit(Z)
    near, far = layout.transform(Z[:1] + 1e-6), layout.transform(Z[10:11])
    assert_allclose(near, layout.transform(Z[:1]), atol=1e-3 * np.linalg.norm(near - far))


def test_equal_rows_have_one_place(digits):
    Z, *_ = digits
    P = NeighbourLayout().fit_transform(np.vstack([Z[:50], Z[:50]]))
    assert_array_equal(P[:50], P[50:])


def test_of_many_rows_some_are_laid_out_and_the_others_placed(digits):
    Z, *_ = digits
    layout = NeighbourLayout(max_rows=200).fit(Z)
    assert layout.positions_.shape == (200, 2)
    P = layout.transform(Z)
    assert trustworthiness(Z, P, n_neighbors=10) > 0.9


def test_sure_rows_have_no_spread_and_doubtful_ones_more(digits, layout):
    Z, _, C = digits
    assert_allclose(layout.covariance(Z, 0 * C[0]), 0, atol=1e-12)
    sizes = [np.trace(layout.covariance(Z, s * C), axis1=1, axis2=2).mean() for s in (0.1, 1, 10)]
    assert sizes[0] < sizes[1] < sizes[2]


def test_a_covariance_for_all_rows_is_one_for_each(digits, layout):
    Z, _, C = digits
    each = np.broadcast_to(C[0], (len(Z), 10, 10))
    assert_allclose(layout.covariance(Z, C[0]), layout.covariance(Z, each))


def test_the_spread_follows_the_direction_of_the_doubt():
    """Two groups far apart: doubt to which of them a row belongs points along their distance."""
    rng = np.random.default_rng(0)
    Z = np.vstack([rng.normal(size=(40, 3)), rng.normal(size=(40, 3)) + np.array([30, 0, 0])])
    layout = NeighbourLayout(10.0).fit(Z)
    P = layout.transform(Z)
    along = P[40:].mean(axis=0) - P[:40].mean(axis=0)
    (spread,) = layout.covariance([[15.0, 0, 0]], np.diag([200.0, 0.01, 0.01]))
    leading = np.linalg.eigh(spread)[1][:, -1]
    assert abs(leading @ along) / np.linalg.norm(along) > 0.9


def test_few_rows_lie_as_on_the_first_axes():
    Z = np.random.default_rng(0).normal(size=(5, 3))
    P = NeighbourLayout().fit_transform(Z)
    assert_allclose(P, Z[:, :2] - Z[:, :2].mean(axis=0), atol=1e-12)


def test_one_coordinate_can_be_laid_out(digits):
    assert NeighbourLayout().fit_transform(digits[0][:60, :1]).shape == (60, 2)


@pytest.mark.parametrize(
    ("parameters", "words"),
    [({"perplexity": 0.5}, "perplexity == 0.5"), ({"max_rows": 3}, "max_rows == 3")],
)
def test_bad_parameters_are_named(parameters, words):
    with pytest.raises(ValueError, match=words):
        NeighbourLayout(**parameters).fit(np.eye(10))


def test_a_model_without_labels_can_be_laid_out():
    X, _ = load_digits(return_X_y=True)
    Z = PPCA(8).fit_transform(X[:150])
    assert trustworthiness(Z, NeighbourLayout().fit_transform(Z), n_neighbors=5) > 0.9


def test_two_rows_are_enough_for_a_layout():
    Z = NeighbourLayout().fit_transform(np.array([[0.0, 1.0, 2.0], [1.0, 1.0, 0.0]]))
    assert_allclose(Z[0] * np.sign(Z[0, 0]), [0.5, 0.0], atol=1e-12)
    assert_allclose(Z[0] + Z[1], 0, atol=1e-12)
    with pytest.raises(ValueError, match="minimum of 2"):
        NeighbourLayout().fit(np.ones((1, 3)))


def test_the_spread_is_the_covariance_of_the_draws(monkeypatch, rng):
    """Where rows are placed by their first two coordinates, these are draws of them."""
    layout = NeighbourLayout().fit(rng.standard_normal((40, 3)))
    monkeypatch.setattr(layout, "_place", lambda X: X[:, :2])
    half = np.random.default_rng(0).standard_normal((10, 3))
    expected = np.cov(2 * np.vstack([half, -half]).T)[:2, :2]
    assert_allclose(layout.covariance(np.zeros((1, 3)), 4 * np.eye(3)), [expected])


def test_few_rows_have_a_perplexity_that_they_can_have(rng, monkeypatch):
    asked = []

    class Laid:
        def __init__(self, *_, perplexity, **__):
            asked.append(perplexity)

        def fit_transform(self, rows):
            return rows[:, :2]

    monkeypatch.setattr(neighbour_layout, "TSNE", Laid)
    for n in (10, 40, 1000):
        neighbour_layout._laid_out(rng.normal(size=(n, 3)), 30)
    assert asked == [3.0, 5.0, 30]


def test_a_fit_that_fails_leaves_no_layout_of_other_rows(rng):
    layout = NeighbourLayout().fit(rng.normal(size=(30, 4)))
    with pytest.raises(ValueError, match="squares leave the range of numbers; rescale X"):
        layout.fit(1e170 * rng.normal(size=(30, 3)))
    with pytest.raises(NotFittedError):
        layout.transform(rng.normal(size=(5, 4)))


@pytest.mark.parametrize("unit", [2.0**-70, 2.0**60])
def test_rows_of_any_unit_have_the_same_layout(unit):
    Z = np.random.default_rng(0).normal(size=(80, 4)) + 3 * np.eye(4)[np.arange(80) % 4]
    assert_allclose(
        NeighbourLayout().fit_transform(unit * Z), NeighbourLayout().fit_transform(Z), atol=1e-6
    )


def test_axes_that_do_not_vary_are_no_start():
    Z = np.random.default_rng(0).normal(size=(60, 3))
    plain = NeighbourLayout().fit_transform(Z)
    beside = NeighbourLayout().fit_transform(np.hstack([np.zeros((60, 2)), Z]))
    assert_allclose(beside, plain, atol=1e-6)
