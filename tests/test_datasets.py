"""Samples that come with gnomon."""

import numpy as np

from gnomon.datasets import SCIPY_PARTS, load_scipy_texts


def test_texts_of_scipy_have_classes_and_links():
    sample = load_scipy_texts()
    n = len(sample.names)
    assert len(sample.texts) == len(sample.y) == n > 500
    assert set(sample.y) == set(SCIPY_PARTS)
    assert (sample.adjacency != sample.adjacency.T).nnz == 0
    assert not sample.adjacency.diagonal().any()
    first, second = sample.adjacency.nonzero()
    assert np.all(sample.y[first] == sample.y[second])
    linked = sample.adjacency[[sample.names.index("dct")]].nonzero()[1]
    assert "idct" in {sample.names[i] for i in linked}
    assert not any("See Also\n---" in text for text in sample.texts)
