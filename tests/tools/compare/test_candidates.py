"""Every candidate gets what it takes: labels, gaps, sparse rows."""

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy import sparse
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA, FastICA

import gnomon
from gnomon.tools.compare.candidates import CANDIDATES, choose, make_pipeline_for, sizes_for
from gnomon.tools.compare.scoring import read_problem

PEERS = ("PCA", "whitened PCA", "LDA", "PLS", "PPCA", "kernel PCA", "NCA")


@pytest.mark.parametrize("model", PEERS)
def test_every_peer_takes_partly_labelled_rows(model):
    X, y = load_iris(return_X_y=True)
    y = np.where(np.arange(150) % 3, y, -1)
    result = gnomon.compare(X, y, models=[model], n_components=(1, 2), cv=2)
    assert not result.failed
    assert result.leader.score > 0.7


@pytest.mark.slow
def test_umap_takes_part_where_it_is_installed():
    pytest.importorskip("umap")
    X, y = load_iris(return_X_y=True)
    y[::3] = -1
    result = gnomon.compare(X, y, models=["UMAP"], n_components=2, cv=3)
    assert not result.failed
    # The bar of the other peers.
    assert result.leader.score > 0.7


def test_gaps_in_the_inputs_are_filled_for_those_that_need_it():
    X, y = load_iris(return_X_y=True)
    X[::7, 1] = np.nan
    result = gnomon.compare(X, y, models=["PCA", "PPCA", "LDA"], n_components=2, cv=2)
    assert not result.failed
    assert "SimpleImputer" in gnomon.compare(X, y, models=["LDA"], n_components=2, cv=2).snippet()


def test_sparse_inputs_stay_sparse_or_are_reduced(rng):
    y = np.repeat([0, 1, 2], 40)
    X = sparse.random_array((120, 300), density=0.05, rng=rng, format="csr")
    X = (X + sparse.csr_array(np.eye(3)[y] @ (rng.random((3, 300)) > 0.8))).tocsr()
    result = gnomon.compare(X, y, models=["PCA", "LDA", "PPCA"], n_components=2, cv=2)
    assert not result.failed
    assert result.leader.score > 0.9


def test_an_estimator_of_the_users_takes_part():
    X, y = load_iris(return_X_y=True)
    ica = FastICA(random_state=0, whiten="unit-variance")
    result = gnomon.compare(X, y, models=["PCA", ica], n_components=2, cv=2)
    assert {row.model for row in result.rows} == {"PCA", "FastICA"}


def test_every_home_is_public():
    """What is recommended can be imported by its name."""
    for candidate in CANDIDATES:
        assert not any(part.startswith("_") for part in candidate.home.split("."))
        assert not candidate.home.startswith("gnomon.tools")


def test_a_model_is_told_the_kind_only_where_y_does_not_show_it(rng):
    X, y = rng.normal(size=(30, 3)), np.arange(30.0) % 10
    (sppca,), _ = choose(read_problem(X, y), ["SPPCA"])
    told = make_pipeline_for(sppca, read_problem(X, y, target="numeric"), 1, np.ones(30, bool))
    untold = make_pipeline_for(sppca, read_problem(X, y + 0.5), 1, np.ones(30, bool))
    assert told[-1].target == "numeric"
    assert untold[-1].target == "auto"


def test_models_that_do_not_apply_are_named_with_their_reason():
    X, y = load_iris(return_X_y=True)
    problem = read_problem(np.tile(X, (20, 1)), np.tile(y, 20))
    chosen, skipped = choose(problem, None)
    assert skipped["PRPCA"] == "needs links"
    assert skipped["NCA"] == "more than 2500 rows"
    assert "PCA" in {candidate.name for candidate in chosen}
    with pytest.raises(ValueError, match=r"models: none applies here: PRPCA \(needs links\)"):
        choose(problem, ["PRPCA"])


@pytest.mark.parametrize("model", ["DCAGM", "BSDR"])
@pytest.mark.parametrize("d", [400, 20])
def test_components_are_not_standardized_again(model, d, rng):
    """Units of their own would give the last components the weight of the first."""
    problem = read_problem(rng.standard_normal((30, d)), np.arange(30) % 2)
    (candidate,), _ = choose(problem, [model])
    pipeline = make_pipeline_for(candidate, problem, 2, np.ones(30, bool))
    by_default = type(pipeline[-1])().standardize
    assert pipeline[-1].standardize == (False if d == 400 else by_default)


def test_principal_components_stay_as_they_are_in_the_splits_too(rng):
    X = rng.standard_normal((60, 12)) * np.geomspace(10, 0.1, 12)
    components = PCA(8).fit_transform(X)
    for table, is_scaled in ((X, True), (components, False)):
        problem = read_problem(table, np.arange(60) % 2)
        for candidate in choose(problem, ["PCA", "SPPCA", "DCAGM", "BSDR", "kernel PCA"])[0]:
            pipeline = make_pipeline_for(candidate, problem, 2, np.ones(40, bool))
            assert ("scale" in dict(pipeline.steps)) == is_scaled
            if hasattr(pipeline[-1], "standardize"):
                assert pipeline[-1].standardize == ("auto" if is_scaled else False)
    gaps = np.where(rng.random(components.shape) < 0.1, np.nan, components)
    (pca,), _ = choose(read_problem(gaps, np.arange(60) % 2), ["PCA"])
    pipeline = make_pipeline_for(pca, read_problem(gaps, np.arange(60) % 2), 2, np.ones(60, bool))
    assert "scale" in dict(pipeline.steps)


def test_a_kernel_of_principal_components_is_as_wide_whatever_their_unit(rng):
    components = PCA(5).fit_transform(rng.standard_normal((60, 5)) * [3, 2, 1, 1, 1])
    maps = []
    for unit in (1.0, 1000.0):
        problem = read_problem(unit * components, np.arange(60) % 2)
        (candidate,), _ = choose(problem, ["kernel PCA"])
        pipeline = make_pipeline_for(candidate, problem, 2, np.ones(60, bool))
        maps.append(pipeline.fit_transform(problem.X))
    assert_allclose(*maps, atol=1e-8)
    # Points so far apart that none is near another have equal eigenvalues, one for each row.
    assert pipeline[-1].eigenvalues_[0] > 5


def test_what_is_slow_is_tried_in_one_size_only(rng):
    problem = read_problem(rng.standard_normal((30, 12)), np.arange(30) % 2)
    umap, pca = (next(c for c in CANDIDATES if c.name == name) for name in ("UMAP", "PCA"))
    assert sizes_for(umap, problem, (2, 5, 10), 24) == [2]
    assert sizes_for(pca, problem, (2, 5, 10), 24) == [2, 5, 10]
