import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.model_selection import KFold

import gnomon
from gnomon import choose_dimension
from gnomon.tools.compare import candidates
from gnomon.tools.compare.scoring import row_splits


def planted(seed, n=200, d=10, q=3):
    rng = np.random.default_rng(seed)
    W = np.linalg.qr(rng.standard_normal((d, q)))[0] * 3
    return rng.standard_normal((n, q)) @ W.T + 0.7 * rng.standard_normal((n, d))


@pytest.mark.parametrize("criterion", ["likelihood", "parallel"])
@pytest.mark.parametrize("seed", range(3))
def test_the_planted_number_is_chosen(criterion, seed):
    choice = choose_dimension(planted(seed), n_components=range(1, 7), criterion=criterion)
    assert next(iter(choice.chosen.values())) == 3


@pytest.mark.parametrize("criterion", ["likelihood", "parallel"])
def test_weak_signals_are_found(criterion):
    rng = np.random.default_rng(0)
    W = np.linalg.qr(rng.standard_normal((30, 4)))[0]
    X = 1.5 * rng.standard_normal((200, 4)) @ W.T + rng.standard_normal((200, 30))
    choice = choose_dimension(X, n_components=[1, 3, 4, 5, 6], criterion=criterion)
    assert next(iter(choice.chosen.values())) == 4


@pytest.mark.parametrize("shape", [(60, 8), (12, 40)])
def test_parallel_analysis_is_that_of_singular_values_by_hand(shape):
    X = np.random.default_rng(1).standard_normal(shape) + 3
    choice = choose_dimension(X, n_components=[1, 2, 3], criterion="parallel", random_state=5)
    rng, variances = np.random.default_rng(5), []
    for _ in range(20):
        columns = rng.permuted(X, axis=0)
        variances.append(np.linalg.svd(columns - columns.mean(axis=0), compute_uv=False) ** 2)
    limit = np.quantile(variances, 0.95, axis=0)
    own = np.linalg.svd(X - X.mean(axis=0), compute_uv=False) ** 2
    assert_allclose([row.mean for row in choice.rows], (own / limit)[:3])
    assert choice.chosen == {"principal components": 1}


def test_parallel_analysis_says_how_many_exceed_chance_and_takes_no_models():
    choice = choose_dimension(planted(0), n_components=[1, 2], criterion="parallel")
    assert choice.chosen == {"principal components": 2}
    assert choice.reasons["principal components"].startswith("3 leading components vary more")
    with pytest.raises(ValueError, match=r"models == .*'parallel' has none"):
        choose_dimension(planted(0), models=["PPCA"], criterion="parallel")


def test_held_out_likelihood_is_that_of_a_loop_by_hand():
    X = planted(0)
    choice = choose_dimension(X, models=["PPCA"], n_components=[2])
    by_hand = []
    for train, test in KFold(5, shuffle=True, random_state=0).split(X):
        # scikit-learn divides by n - 1; the likelihood of a row moves by less than 1e-3.
        by_hand.append(PCA(2, svd_solver="full").fit(X[train]).score(X[test]))
    assert_allclose(choice.rows[0].mean, np.mean(by_hand), rtol=1e-3)


def test_gaps_leave_the_likelihood_of_ppca():
    X = planted(0)
    holed = np.where(np.random.default_rng(1).random(X.shape) < 0.05, np.nan, X)
    choice = choose_dimension(holed)
    assert choice.chosen == {"PPCA": 3}
    by_hand = [gnomon.PPCA(2).fit(holed[a]).score(holed[b]) for a, b in row_splits(len(X))]
    assert_allclose(choice.rows[1].mean, np.mean(by_hand))
    with pytest.raises(ValueError, match="models has 'factor analysis', which takes no gaps"):
        choose_dimension(holed, models=["factor analysis"])
    with pytest.raises(ValueError, match="X has gaps, which criterion == 'parallel' does not take"):
        choose_dimension(holed, criterion="parallel")


def test_prediction_chooses_among_the_models_of_compare():
    X, y = load_iris(return_X_y=True)
    choice = choose_dimension(X, y, models=["LDA", "PCA"], n_components=[1, 2], cv=3)
    assert set(choice.chosen) == {"LDA", "PCA"}
    assert choice.criterion == "accuracy"


def test_curves_are_drawn_and_tabulated():
    pytest.importorskip("pandas")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    pyplot.switch_backend("agg")
    choice = choose_dimension(planted(1), n_components=[1, 2, 3])
    assert len(choice.to_frame()) == 6
    assert choice.plot().ax_.get_ylabel() == "log likelihood per held-out row"
    pyplot.close("all")


@pytest.mark.parametrize(
    "settings, message",
    [
        ({"criterion": "best"}, "criterion == 'best'; accepted are"),
        ({"criterion": "prediction"}, "y is None"),
        ({"models": ["PCA"]}, "models == 'PCA'"),
        ({"n_components": [0]}, "n_components == 0"),
    ],
)
def test_errors_name_the_argument(settings, message):
    with pytest.raises(ValueError, match=message):
        choose_dimension(planted(0), **settings)


def test_one_feature_leaves_no_choice():
    with pytest.raises(ValueError, match="a choice needs at least 4 rows"):
        choose_dimension(planted(0)[:, :1])


def test_gaps_are_filled_once_and_not_in_every_fold(monkeypatch):
    X, y = load_iris(return_X_y=True)
    X[::5, 1] = np.nan
    seen, fit = [], gnomon.SPPCA.fit

    def watched(self, X, y=None, **more):
        seen.append(bool(np.isnan(X).any()))
        return fit(self, X, y, **more)

    monkeypatch.setattr(gnomon.SPPCA, "fit", watched)
    choice = gnomon.choose_dimension(X, y, models=["SPPCA"], n_components=[1, 2])
    assert seen
    assert not any(seen)
    assert choice.reasons["SPPCA"].startswith(f"{choice.chosen['SPPCA']} ")


def test_predictions_try_few_sizes_and_no_model_of_one_size_by_default(rng):
    X = rng.standard_normal((40, 12))
    y = (X[:, 0] > 0).astype(int)
    tried = choose_dimension(X, y, cv=2, progress=False, time_limit=1e-3)
    assert tried.chosen == {}
    names = candidates.names_with_sizes("classes")
    assert "UMAP" not in names
    assert {"PCA", "SPPCA", "BSDR"} <= set(names)
    choice = choose_dimension(X, y, models=["PCA"], cv=2, progress=False)
    assert [row.n_components for row in choice.rows] == [1, 2, 3, 5, 8]
