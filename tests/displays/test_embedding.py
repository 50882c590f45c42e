import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgba
from numpy.testing import assert_allclose
from scipy import sparse
from scipy.stats import chi2
from sklearn.datasets import load_wine
from sklearn.decomposition import KernelPCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from gnomon import DCAGM, PPCA, SPPCA, Links, NeighbourLayout
from gnomon.displays import EmbeddingDisplay
from gnomon.displays.layers import Mixture
from gnomon.displays.style import GREY, PALETTE


def drawn(collection):
    return np.asarray(collection.get_offsets())


def test_labelled_points_are_filled_and_unlabelled_open(points):
    Z, y, _ = points
    display = EmbeddingDisplay.from_data(Z, y)
    unlabelled, *classes = display.points_
    assert_allclose(drawn(unlabelled), Z[y == -1])
    assert len(unlabelled.get_facecolor()) == 0
    assert_allclose(unlabelled.get_edgecolor()[0, :3], to_rgba(GREY)[:3])
    for c, group in enumerate(classes):
        assert_allclose(drawn(group), Z[y == c])
        assert_allclose(group.get_facecolor()[0], to_rgba(PALETTE[c]))


def test_legend_names_the_classes(points):
    Z, y, _ = points
    names = np.array(["a", "b", "c", None], dtype=object)[y]
    legend = EmbeddingDisplay.from_data(Z, names).ax_.get_legend()
    assert [text.get_text() for text in legend.get_texts()] == ["unlabelled", "a", "b", "c"]


@pytest.mark.parametrize("n_classes", [60, 100])
def test_many_classes_have_a_look_each_and_a_short_legend(rng, n_classes):
    y = np.repeat(np.arange(n_classes), 3)
    display = EmbeddingDisplay.from_data(rng.normal(size=(len(y), 2)), y, class_ellipses=True)
    names = [text.get_text() for text in display.ax_.get_legend().get_texts()]
    assert names == [*map(str, range(31)), f"... and {n_classes - 31} more"]
    looks = {
        (tuple(group.get_facecolor()[0]), group.get_paths()[0].vertices.tobytes())
        for group in display.points_
    }
    assert len(looks) == n_classes
    display.figure_.canvas.draw()
    width = display.ax_.get_position().width
    assert width > 0.4


def test_regions_and_predictions_of_many_classes_are_drawn(rng):
    y = np.repeat(np.arange(100), 4)
    X = 9 * rng.normal(size=(100, 4))[y] + rng.normal(size=(400, 4))
    model = LinearDiscriminantAnalysis(n_components=2).fit(X, y)
    some = np.where(np.arange(400) % 2, y, -1)
    display = EmbeddingDisplay.from_estimator(model, X, some, regions=True, predict=True)
    display.figure_.canvas.draw()
    assert len(display.points_) == 101
    assert display.regions_.get_array().max() <= 99


def test_one_component_has_no_plane_to_fill(rng):
    X, y = rng.normal(size=(30, 3)), np.arange(30) % 2
    model = LinearDiscriminantAnalysis(n_components=1).fit(X, y)
    with pytest.raises(ValueError, match="regions needs two components; one is drawn of 1"):
        EmbeddingDisplay.from_estimator(model, X, y, regions=True)


def test_every_point_has_the_ellipse_of_its_covariance(points):
    Z, y, covariance = points
    ellipses = EmbeddingDisplay.from_data(Z, y, covariance=covariance, level=0.9).ellipses_
    assert_allclose(drawn(ellipses), Z)
    angle = np.radians(ellipses.get_angles())
    first = np.column_stack([np.cos(angle), np.sin(angle)])
    half = 0.5 * ellipses.get_widths()
    ends = half[:, None] * first
    # The end of an axis lies where the Mahalanobis distance holds the level.
    distance = np.einsum("ni,nij,nj->n", ends, np.linalg.inv(covariance), ends)
    assert_allclose(distance, chi2(2).ppf(0.9))
    area = np.pi / 4 * ellipses.get_widths() * ellipses.get_heights()
    assert_allclose(area, np.pi * chi2(2).ppf(0.9) * np.sqrt(np.linalg.det(covariance)))


def test_ellipses_that_cover_each_other_are_fainter(points):
    Z, y, covariance = points
    plain = EmbeddingDisplay.from_data(Z, y, covariance=0.01 * covariance).ellipses_
    Z, y, covariance = np.tile(Z, (5, 1)), np.tile(y, 5), np.tile(covariance, (5, 1, 1))
    crowded = EmbeddingDisplay.from_data(Z, y, covariance=100 * covariance).ellipses_
    assert_allclose(plain.get_facecolor()[0, 3], 0.2)
    assert crowded.get_facecolor()[0, 3] < 0.05


def test_ellipses_fit_inside_the_axes(points):
    Z, y, covariance = points
    display = EmbeddingDisplay.from_data(Z[:3], y[:3], covariance=100 * covariance[:3])
    display.figure_.canvas.draw()
    low, high = display.ax_.get_xlim()
    reach = 0.5 * display.ellipses_.get_widths().max() * 0.5
    assert high - low > reach


def test_many_points_become_a_density_of_the_mean_standard_deviation(rng):
    Z, sd = rng.normal(size=(3000, 2)), rng.uniform(1, 2, size=3000)
    covariance = sd[:, None, None] ** 2 * np.eye(2)
    display = EmbeddingDisplay.from_data(Z, covariance=covariance)
    assert display.ellipses_ is None
    shown = display.density_.get_array()
    assert 1 <= shown.min() and shown.max() <= 2
    assert abs(shown.mean() - sd.mean()) < 0.1
    assert len(display.figure_.axes) == 2


def test_two_thousand_points_still_have_ellipses(rng):
    Z = rng.normal(size=(2000, 2))
    display = EmbeddingDisplay.from_data(Z, covariance=np.eye(2))
    assert len(display.ellipses_.get_widths()) == 2000
    assert display.density_ is None


def test_a_shared_covariance_of_many_points_is_said_once(rng):
    Z = rng.normal(size=(2500, 2))
    shared = np.broadcast_to(np.eye(2), (2500, 2, 2))
    display = EmbeddingDisplay.from_data(Z, covariance=shared)
    assert display.ellipses_ is None and display.density_ is None
    assert len(drawn(display.points_[0])) == 2500
    assert len(display.ax_.artists) == 1


def test_labelled_points_stay_visible_over_the_density(rng):
    Z, y = rng.normal(size=(2500, 2)), np.full(2500, -1)
    y[:40] = np.arange(40) % 2
    covariance = rng.uniform(1, 2, size=(2500, 1, 1)) * np.eye(2)
    display = EmbeddingDisplay.from_data(Z, y, covariance=covariance)
    assert sum(len(drawn(group)) for group in display.points_) == 40
    assert [text.get_text() for text in display.ax_.texts] == ["0", "1"]


def test_all_labelled_points_are_drawn_however_many(rng):
    Z, y = rng.normal(size=(5000, 2)), np.arange(5000) % 4
    y[4000:] = -1
    covariance = rng.uniform(1, 2, size=(5000, 1, 1)) * np.eye(2)
    display = EmbeddingDisplay.from_data(Z, y, covariance=covariance)
    assert display.density_ is not None
    assert sum(len(drawn(group)) for group in display.points_) == 4000


@pytest.mark.parametrize("labels", [0, 30])
def test_a_crowd_is_a_density_with_labelled_points_over_it(rng, labels):
    Z, y = rng.normal(size=(20_100, 2)), np.full(20_100, -1)
    y[:labels] = np.arange(labels) % 3
    display = EmbeddingDisplay.from_data(Z, y if labels else None)
    assert display.crowd_.get_array().sum() == 20_100 - labels
    assert sum(len(drawn(group)) for group in display.points_) == labels
    few = EmbeddingDisplay.from_data(Z[:200], y[:200] if labels else None)
    assert few.crowd_ is None
    assert sum(len(drawn(group)) for group in few.points_) == 200


def test_uncertainty_can_be_left_out(points):
    Z, y, covariance = points
    display = EmbeddingDisplay.from_data(Z, y, covariance=covariance, uncertainty="none")
    assert display.ellipses_ is None


def test_class_ellipses_have_the_moments_of_the_labelled_points(points):
    Z, y, _ = points
    ellipses = EmbeddingDisplay.from_data(Z, y, class_ellipses=True).class_ellipses_
    means = [Z[y == c].mean(axis=0) for c in range(3)]
    assert_allclose(drawn(ellipses), means)
    area = ellipses.get_widths() * ellipses.get_heights() / 4
    determinants = [np.linalg.det(np.cov(Z[y == c].T)) for c in range(3)]
    assert_allclose(area, chi2(2).ppf(0.95) * np.sqrt(determinants))


def test_numbers_get_a_colour_bar(points):
    Z, _, _ = points
    values = Z[:, 0] + 0.5
    values[:10] = np.nan
    display = EmbeddingDisplay.from_data(Z, values)
    unlabelled, labelled = display.points_
    assert len(drawn(unlabelled)) == 10
    assert_allclose(labelled.get_array(), values[10:])
    assert len(display.figure_.axes) == 2


def test_one_component_is_spread_by_class(points):
    Z, y, _ = points
    display = EmbeddingDisplay.from_data(Z[:, :1], y, covariance=np.array([[0.5]]))
    for c, group in enumerate(display.points_[1:]):
        assert_allclose(drawn(group)[:, 0], Z[y == c, 0])
        assert np.abs(drawn(group)[:, 1] - c).max() < 0.5
    assert_allclose(display.ellipses_.get_heights(), 0)


def test_every_link_is_a_line_once(points):
    Z, y, _ = points
    adjacency = sparse.coo_array(([1, 1, 1, 1], ([0, 1, 5, 3], [1, 0, 9, 3])), shape=(60, 60))
    lines = EmbeddingDisplay.from_data(Z, y, links=adjacency).links_
    assert_allclose(lines.get_segments(), Z[[[0, 1], [5, 9]]])


def test_links_objects_are_drawn(points):
    Z, y, _ = points
    links = Links.from_edges([(0, 1), (2, 3)], n_nodes=60)
    assert len(EmbeddingDisplay.from_data(Z, y, links=links).links_.get_segments()) == 2


def test_links_of_other_rows_are_refused(points):
    Z, y, _ = points
    with pytest.raises(ValueError, match="the embedding has 60"):
        EmbeddingDisplay.from_data(Z, y, links=sparse.eye_array(3))


def test_mixtures_are_outlined_in_the_plane_drawn(rng):
    means = rng.normal(size=(4, 3))
    covariances = np.broadcast_to(np.diag([1.0, 4.0, 9.0]), (4, 3, 3))
    mixture = Mixture(means, covariances, np.array(["a", "a", "b", "b"]))
    display = EmbeddingDisplay(rng.normal(size=(5, 3)), mixture=mixture, components=(2, 1)).plot()
    assert_allclose(drawn(display.mixture_), means[:, [2, 1]])
    assert_allclose(display.mixture_.get_widths() / display.mixture_.get_heights(), 1.5)


def test_estimators_give_their_posterior():
    X, y = load_wine(return_X_y=True)
    X[::3, 2] = np.nan
    model = make_pipeline(StandardScaler(), PPCA(n_components=3)).fit(X)
    display = EmbeddingDisplay.from_estimator(model, X, y, components=(1, 2))
    posterior = model[-1].posterior(model[0].transform(X))
    assert_allclose(drawn(display.ellipses_), posterior.mean[:, 1:])
    areas = display.ellipses_.get_widths() * display.ellipses_.get_heights()
    determinants = np.linalg.det(posterior.covariance[:, 1:, 1:])
    assert_allclose(areas / areas[0], np.sqrt(determinants / determinants[0]))
    assert display.ax_.get_xlabel() == "component 2"


def test_ellipses_follow_the_scale_of_the_axes():
    X, y = load_wine(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    model = SPPCA(n_components=2, supervision=0.5).fit(X, y)
    display = EmbeddingDisplay.from_estimator(model, X, y)
    posterior = model.posterior(X)
    assert np.abs(model.latent_scale_ - 1).max() > 0.1
    assert_allclose(drawn(display.ellipses_), posterior.mean)
    area = np.pi / 4 * display.ellipses_.get_widths() * display.ellipses_.get_heights()
    expected = np.sqrt(np.linalg.det(posterior.covariance))
    assert_allclose(area, np.pi * chi2(2).ppf(0.68) * expected)


@pytest.mark.parametrize("n_gaussians", [1, 2])
def test_the_gaussians_of_a_mixture_model_lie_on_its_map(n_gaussians):
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(), DCAGM(n_components=2, n_gaussians=n_gaussians))
    model.fit(X, y)
    display = EmbeddingDisplay.from_estimator(model, X, y, mixture=True, regions=True)
    means = drawn(display.mixture_)
    assert_allclose(means, model[-1].means_)
    assert len(means) == 3 * n_gaussians
    # Each Gaussian stands where its own class is predicted.
    columns = np.abs(display.regions.x - means[:, :1]).argmin(axis=1)
    rows = np.abs(display.regions.y - means[:, 1:]).argmin(axis=1)
    assert_allclose(display.regions.classes[rows, columns], np.repeat([0, 1, 2], n_gaussians))


@pytest.mark.parametrize("as_frame", [False, True])
def test_regions_are_what_the_classifier_predicts(as_frame):
    X, y = load_wine(return_X_y=True, as_frame=as_frame)
    model = make_pipeline(StandardScaler(), LinearDiscriminantAnalysis(n_components=2)).fit(X, y)
    display = EmbeddingDisplay.from_estimator(model, X, y, regions=True)
    regions, Z = display.regions, model.transform(X)
    columns = np.abs(regions.x - Z[:, :1]).argmin(axis=1)
    rows = np.abs(regions.y - Z[:, 1:]).argmin(axis=1)
    assert np.mean(regions.classes[rows, columns] == model.predict(X)) > 0.97
    assert_allclose(display.regions_.get_array().ravel(), regions.classes.ravel())


def test_regions_from_sparse_rows_are_the_same():
    X, y = load_wine(return_X_y=True)
    model = make_pipeline(StandardScaler(with_mean=False), _SparseLDA()).fit(X, y)
    dense = EmbeddingDisplay.from_estimator(model, X, y, regions=True).regions
    rows = EmbeddingDisplay.from_estimator(model, sparse.csr_array(X), y, regions=True).regions
    assert np.mean(dense.classes == rows.classes) > 0.999


class _SparseLDA(LinearDiscriminantAnalysis):
    def transform(self, X):
        return super().transform(X.toarray() if sparse.issparse(X) else X)


def test_regions_need_a_linear_map():
    X, y = load_wine(return_X_y=True)
    model = KernelPCA(2, kernel="rbf", gamma=1e-5).fit(X)
    model.predict = lambda X: np.zeros(len(X))
    with pytest.raises(ValueError, match="linear"):
        EmbeddingDisplay.from_estimator(model, X, y, regions=True)


def test_regions_keep_the_colours_of_the_classes_that_have_points():
    X, y = load_wine(return_X_y=True)
    model = LinearDiscriminantAnalysis(n_components=2).fit(X, y)
    rows = y > 0
    display = EmbeddingDisplay.from_estimator(model, X[rows], y[rows], regions=True)
    drawn_labels = display.regions_.get_array()
    for label, name in enumerate([1, 2, 0]):
        assert np.all(drawn_labels[display.regions.classes == name] == label)


def test_unlabelled_points_can_take_the_predicted_colour():
    X, y = load_wine(return_X_y=True)
    model = LinearDiscriminantAnalysis(n_components=2).fit(X, y)
    partly = np.where(np.arange(len(y)) % 2 == 0, y, -1)
    display = EmbeddingDisplay.from_estimator(model, X, partly, predict=True)
    expected = [to_rgba(PALETTE[c])[:3] for c in model.predict(X)[partly == -1]]
    assert_allclose(display.points_[0].get_edgecolor()[:, :3], expected)


def test_axes_are_used_and_nothing_is_shown(points, monkeypatch):
    Z, y, _ = points
    monkeypatch.setattr(plt, "show", lambda *args, **kwargs: pytest.fail("shown unasked"))
    figure, ax = plt.subplots()
    display = EmbeddingDisplay.from_data(Z, y, ax=ax)
    assert display.ax_ is ax and display.figure_ is figure
    assert plt.get_fignums() == [figure.number]


@pytest.mark.parametrize("components", [(0, 5), (-1, 0), ()])
def test_components_that_do_not_exist_are_refused(points, components):
    Z, _, _ = points
    with pytest.raises(ValueError, match="components =="):
        EmbeddingDisplay(Z, components=components).plot()


def test_unknown_uncertainty_is_refused(points):
    Z, _, _ = points
    with pytest.raises(ValueError, match="uncertainty == 'haze'"):
        EmbeddingDisplay.from_data(Z, uncertainty="haze")


def test_mixture_needs_a_mixture(points):
    X, _ = load_wine(return_X_y=True)
    with pytest.raises(TypeError, match="PPCA has none"):
        EmbeddingDisplay.from_estimator(PPCA(2).fit(X), X, mixture=True)


@pytest.fixture(scope="module")
def laid_out():
    """Three groups in five dimensions, a model of them, and a display of its layout."""
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 20)
    X = 4 * rng.normal(size=(3, 8))[y] + rng.normal(size=(60, 8))
    model = SPPCA(5).fit(X, np.where(np.arange(60) % 2, y, -1))
    return model, X, y, EmbeddingDisplay.from_estimator(model, X, y, layout="neighbours")


def test_a_neighbour_layout_draws_all_components_where_it_has_the_points(laid_out):
    model, X, y, display = laid_out
    expected = NeighbourLayout().fit_transform(model.transform(X))
    found = np.vstack([drawn(points) for points in display.points_])
    assert_allclose(found, np.vstack([expected[y == c] for c in range(3)]))
    assert "neighbour layout of 5 components" in display.ax_.get_xlabel()
    assert len(display.ax_.get_xticks()) == 0


def test_the_uncertainty_of_the_map_is_carried_to_the_layout(laid_out):
    model, X, _, display = laid_out
    Z, C = model.posterior(X)
    expected = NeighbourLayout().fit(Z).covariance(Z, C)
    assert_allclose(display.ellipses_.get_offsets(), display.layout_.transform(Z))
    scale = chi2(2).ppf(0.68)
    widths = 2 * np.sqrt(scale * np.linalg.eigvalsh(expected)[:, -1])
    found = np.maximum(display.ellipses_.get_widths(), display.ellipses_.get_heights())
    assert_allclose(np.sort(found), np.sort(widths), rtol=1e-6)


def test_new_rows_are_placed_on_the_picture_of_others(laid_out):
    model, X, y, display = laid_out
    new = X[:5] + 0.1
    placed = EmbeddingDisplay.from_estimator(model, new, y[:5], layout=display.layout_)
    expected = display.layout_.transform(model.transform(new))
    assert_allclose(drawn(placed.points_[0]), expected)
    assert placed.layout_ is display.layout_


@pytest.mark.parametrize(
    "options", [{"regions": True}, {"components": (1, 2)}], ids=["regions", "components"]
)
def test_what_needs_two_axes_is_refused_in_a_layout(laid_out, options):
    model, X, y, _ = laid_out
    with pytest.raises(ValueError, match=f"{next(iter(options))} is for layout='axes'"):
        EmbeddingDisplay.from_estimator(model, X, y, layout="neighbours", **options)


def test_an_unknown_layout_is_named(points):
    with pytest.raises(ValueError, match="layout == 'umap'; accepted are 'axes', 'neighbours'"):
        EmbeddingDisplay.from_data(points[0], layout="umap")
