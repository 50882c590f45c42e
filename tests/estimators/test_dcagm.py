from sklearn.utils.estimator_checks import parametrize_with_checks

from gnomon import DCAGM


@parametrize_with_checks(
    [
        DCAGM(max_iter=200),
        DCAGM(solver="joint", tol=0.1),
        DCAGM(covariance="gaussian", n_gaussians=1, metric="unit", standardize=False),
    ]
)
def test_sklearn_contract(estimator, check):
    check(estimator)
