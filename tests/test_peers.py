import numpy as np
from numpy.testing import assert_allclose
from sklearn.cross_decomposition import PLSRegression
from sklearn.datasets import load_iris

from gnomon.peers import PLSDiscriminant


def test_pls_of_classes_is_pls_of_their_indicators():
    X, y = load_iris(return_X_y=True)
    names = np.array(["c", "a", "b"])[y]
    expected = PLSRegression(2, scale=False).fit(X, np.eye(3)[(y + 2) % 3]).transform(X)
    assert_allclose(PLSDiscriminant(2).fit(X, names).transform(X), expected)


def test_columns_have_names():
    X, y = load_iris(return_X_y=True)
    names = PLSDiscriminant(2).fit(X, y).get_feature_names_out().tolist()
    assert names == ["plsdiscriminant0", "plsdiscriminant1"]
