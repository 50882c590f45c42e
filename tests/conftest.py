import os

# Small problems gain nothing from BLAS threads, and test workers share the cores.
for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(name, "1")

import numpy as np
import pytest


@pytest.fixture
def rng():
    return np.random.default_rng(0)
