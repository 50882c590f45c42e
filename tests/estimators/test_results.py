import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy import sparse

from gnomon import DCAGM, PPCA, SPPCA, from_loaders, from_rows, transform_blocks
from gnomon.estimators import results


@pytest.fixture
def rows(rng):
    y = rng.integers(3, size=90)
    return 3 * np.eye(3, 5)[y] + rng.standard_normal((90, 5)), y


@pytest.mark.parametrize(
    "store", [np.asarray, sparse.csr_array, from_rows], ids=lambda store: store.__name__
)
def test_blocks_are_those_of_all_rows_at_once(rows, monkeypatch, store):
    monkeypatch.setattr(results, "RESULT_ENTRIES", 100)
    X, y = rows
    model = SPPCA(2).fit(X, y)
    found = list(transform_blocks(model, store(X)))
    assert_allclose(np.concatenate(found), model.transform(X), atol=1e-12)
    assert store is from_rows or len(found) > 1
    classes = np.concatenate(list(transform_blocks(model, store(X), method="predict")))
    assert_array_equal(classes, model.predict(X))


def test_results_are_written_where_they_are_wanted(rows, tmp_path):
    X, y = rows
    model, blocks = DCAGM(2).fit(X, y), from_rows(X, block_rows=7)
    out = np.lib.format.open_memmap(tmp_path / "P.npy", "w+", float, (90, 3))
    assert transform_blocks(model, blocks, out=out, method="predict_proba") is out
    assert_allclose(np.load(tmp_path / "P.npy"), model.predict_proba(X))
    with pytest.raises(ValueError, match="out has 10 rows; accepted are 90"):
        transform_blocks(model, blocks, out=np.empty((10, 2)))
    with pytest.raises(ValueError, match=r"out has shape \(90, 3\); accepted is \(90, 2\)"):
        transform_blocks(model, blocks, out=np.empty((90, 3)))
    with pytest.raises(ValueError, match="method == 'fit'"):
        transform_blocks(model, X, method="fit")


def test_gaps_in_blocks(rows, rng):
    X, _ = rows
    X = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    blocks = from_loaders([lambda: X[:50], lambda: X[50:]])
    model = PPCA(2).fit(blocks)
    assert_allclose(np.concatenate(list(transform_blocks(model, blocks))), model.transform(X))
    filled = transform_blocks(model, blocks, out=np.empty(X.shape), method="impute")
    assert_allclose(filled, model.impute(X))
