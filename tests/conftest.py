import os

# Small problems gain nothing from BLAS threads, and test workers share the cores.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)


class IterationCount:
    """A callback of scikit-learn 1.9 that counts the iterations of a fit."""

    max_estimator_depth = None
    seen = 0

    def setup(self, estimator, context):
        pass

    def on_fit_task_begin(self, estimator, context):
        pass

    def on_fit_task_end(self, estimator, context):
        self.seen += context.task_name == "iteration"
        return False

    def teardown(self, estimator, context):
        pass


@pytest.fixture
def iteration_count():
    callback = pytest.importorskip("sklearn.callback", reason="needs scikit-learn 1.9")
    count = IterationCount()
    assert isinstance(count, callback.FitCallback)
    return count
