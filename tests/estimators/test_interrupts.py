"""Ctrl-C leaves every fit, and every search that runs fits; nobody goes on with a cut one."""

from inspect import signature

import pytest
from sklearn.model_selection import GridSearchCV

import gnomon

ITERATIVE = [
    name
    for name in sorted(gnomon._HOMES)
    if isinstance(getattr(gnomon, name), type)
    and "callback" in signature(getattr(gnomon, name)).parameters
]
# How a model that has a closed form is made to iterate.
BY_STEPS = {
    "PPCA": {"solver": "em"},
    "SPPCA": {"supervision": "likelihood", "solver": "em"},
    "KernelSPPCA": {"supervision": "likelihood"},
    "PRPCA": {"relation": "paper", "solver": "em"},
}


def interrupt(n_iter, state, objective):
    """A callback: Ctrl-C at the first iteration."""
    raise KeyboardInterrupt


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((30, 5))
    return X, (X[:, 0] + 0.3 * X[:, 1] > 0).astype(int)


def made(name, **options):
    return getattr(gnomon, name)(**BY_STEPS.get(name, {}), **options)


@pytest.mark.parametrize("name", ITERATIVE)
def test_an_interrupt_leaves_the_fit(name, rows):
    X, y = rows
    chain = gnomon.Links.from_edges([(i, i + 1) for i in range(29)])
    more = {"links": chain} if name == "PRPCA" else {}
    model = made(name, callback=interrupt, tol=0.0)
    with pytest.raises(KeyboardInterrupt):
        model.fit(X, y + 0.5 * X[:, 2] if name == "BSDRRegressor" else y, **more)


def test_an_interrupt_leaves_a_grid_search(rows):
    X, y = rows
    model = gnomon.BSDR(2, callback=interrupt)
    with pytest.raises(KeyboardInterrupt):
        GridSearchCV(model, {"max_iter": [5, 6]}, cv=2).fit(X, y)


def test_an_interrupt_leaves_a_choice_of_the_dimension(rows):
    X, y = rows
    models = {"BSDR": gnomon.BSDR(callback=interrupt)}
    with pytest.raises(KeyboardInterrupt):
        gnomon.choose_dimension(X, y, models=models, n_components=[1, 2], cv=2)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_comparison_keeps_whole_trials_only(rows):
    X, y = rows
    models = ["PCA", gnomon.BSDR(callback=interrupt)]
    result = gnomon.compare(X, y, models=models, n_components=1, cv=2)
    assert result.stopped == "interrupted"
    assert {outcome.model for outcome in result.outcomes} == {"PCA"}
    assert result.skipped["BSDR"] == "not tried before the end"


def test_a_comparison_with_nothing_done_is_left(rows):
    X, y = rows
    with pytest.raises(KeyboardInterrupt):
        gnomon.compare(X, y, models={"BSDR": gnomon.BSDR(callback=interrupt)}, n_components=1)
