import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import PPCA

VARIANTS = [
    PPCA(),
    PPCA(solver="moments"),
    PPCA(solver="dual"),
    PPCA(solver="subspace"),
    PPCA(solver="em"),
]


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@parametrize_with_checks(VARIANTS)
def test_estimator_contract(estimator, check):
    check(estimator)
