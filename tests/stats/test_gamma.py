import numpy as np
from numpy.testing import assert_allclose
from scipy import stats
from scipy.integrate import quad

from gnomon.stats.gamma import Gamma, kl, log_density, precision_posterior

q, p = Gamma(2.5, 0.7), Gamma(1.5, 2.0)


def test_moments_are_those_of_scipy():
    law = stats.gamma(q.shape, scale=q.scale)
    assert_allclose(q.mean, law.mean())
    assert_allclose(q.log_mean, law.expect(np.log), rtol=1e-6)


def test_kl_equals_the_integral():
    f, g = stats.gamma(q.shape, scale=q.scale), stats.gamma(p.shape, scale=p.scale)
    expected, _ = quad(lambda x: f.pdf(x) * (f.logpdf(x) - g.logpdf(x)), 0, np.inf)
    assert_allclose(kl(q, p), expected, rtol=1e-6)


def test_kl_sums_over_entries():
    many = Gamma(2.5, np.full((3, 2), 0.7))
    assert_allclose(kl(many, p), 6 * kl(q, p))


def test_precision_posterior_is_conjugate():
    x = np.array([0.5, -1.0, 2.0])
    posterior = precision_posterior(p, 3, np.sum(x**2))
    grid = np.array([0.3, 1.0, 2.0])

    def log_joint(precision):
        return log_density(precision, p) + stats.norm(0, precision**-0.5).logpdf(x).sum()

    ratio = [log_joint(g) - log_density(g, posterior) for g in grid]
    assert_allclose(np.ptp(ratio), 0, atol=1e-10)
