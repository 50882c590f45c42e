import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import SPPCA

VARIANTS = [
    SPPCA(),
    SPPCA(1, supervision=0.5),
    SPPCA(supervision=0),
    SPPCA(supervision="likelihood"),
    SPPCA(1, supervision="likelihood", solver="moments", noise="per_output"),
    SPPCA(1, supervision="likelihood", solver="dual", scale="energy", noise=0.5),
    SPPCA(1, supervision="likelihood", solver="subspace", prior=1.0),
    SPPCA(1, supervision="likelihood", solver="em", tol=1e-4, max_iter=2000),
    SPPCA(supervision="likelihood", likelihood="probit"),
]


# Tiny random samples put noise at its floor, of which the fit warns.
@pytest.mark.filterwarnings("ignore:n_components == ")
@pytest.mark.filterwarnings("ignore:SPPCA stopped")
@parametrize_with_checks(VARIANTS)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
