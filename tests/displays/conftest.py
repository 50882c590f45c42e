import matplotlib

matplotlib.use("Agg")

import matplotlib.pyplot as plt
import numpy as np
import pytest


@pytest.fixture(autouse=True)
def _closed_figures():
    yield
    plt.close("all")


@pytest.fixture
def points(rng):
    """60 points of three classes, half of them unlabelled, with a covariance each."""
    y = np.arange(60) % 3
    Z = rng.normal(size=(60, 2)) + 4 * np.array([[0, 0], [1, 0], [0, 1]])[y]
    factors = rng.normal(size=(60, 2, 2))
    covariance = factors @ factors.swapaxes(1, 2) + 0.1 * np.eye(2)
    return Z, np.where(np.arange(60) < 30, y, -1), covariance
