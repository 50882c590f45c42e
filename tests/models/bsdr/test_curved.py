from functools import partial

import numpy as np
import pytest
from numpy.testing import assert_allclose

from gnomon.inference.loop import Method, iterate
from gnomon.linalg.data import Matrix
from gnomon.models.bsdr import curved, sweeps
from gnomon.models.bsdr.factors import Priors, make_model
from gnomon.models.bsdr.fit import regression_start
from gnomon.models.bsdr.inputs import read_inputs
from gnomon.models.bsdr.outputs import ClassOutputs, NumberOutputs, SignOutputs


def outputs_of(kind, scores):
    if kind == "classes":
        return ClassOutputs(scores.argmax(axis=1), scores.shape[1])
    return SignOutputs(np.sign(scores))


@pytest.mark.parametrize("kind", ["classes", "labels"])
def test_curvature_is_that_of_the_log_normaliser(kind, rng):
    M = 2 * rng.standard_normal((20, 4))
    M[0, 0] += 40.0
    outputs, h = outputs_of(kind, M + rng.standard_normal(M.shape)), 1e-5
    T, log_Z, D = outputs.curved_scores(M)
    expected, expected_log_Z = outputs.row_scores(M)
    assert_allclose(T, expected, atol=1e-12)
    assert_allclose(log_Z, expected_log_Z, atol=1e-12)
    for k, unit in enumerate(np.eye(4)):
        above, below = (outputs.row_scores(M + step * unit)[0] for step in (h, -h))
        assert_allclose(np.eye(4)[k] - (above - below) / (2 * h), D[:, :, k], atol=1e-4)


@pytest.fixture(params=[("classes", "entry"), ("classes", "column"), ("labels", "row")])
def far_apart(request, rng):
    """A model of classes that are told apart nearly always, and a start."""
    kind, prior = request.param
    X = rng.standard_normal((600, 8))
    scores = X[:, :3] @ (8 * rng.standard_normal((3, 4))) + rng.standard_normal((600, 4))
    _, ridge = read_inputs(Matrix(X), prior, 1.0, True)
    model = make_model(ridge, outputs_of(kind, scores), Priors(prior))
    return model, sweeps.start(model, regression_start(model, 3, rng))


def test_they_outrun_plain_sweeps(far_apart):
    model, start = far_apart
    plain = iterate(Method(start, partial(sweeps.step, model=model)), max_iter=30, tol=0)
    ours = iterate(curved.method(model, start), max_iter=15, tol=0)
    assert ours.objective[-1] > plain.objective[-1]
    assert np.all(np.diff(ours.objective) >= 0)


def test_with_full_caution_the_bound_never_falls(far_apart):
    model, start = far_apart
    run = iterate(Method(start, partial(curved.step, caution=1.0, model=model)), max_iter=10, tol=0)
    assert np.all(np.diff(run.objective) > 0)


def test_what_has_no_scores_or_too_many_weights_is_not_for_them(far_apart):
    model, _ = far_apart
    assert curved.suits(model, 3)
    assert not curved.suits(model, curved.MOST_WEIGHTS)
    assert not curved.suits(model._replace(outputs=NumberOutputs(np.zeros((600, 4)))), 3)
