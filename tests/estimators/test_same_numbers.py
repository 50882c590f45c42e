"""Fits give the numbers that they gave before: an answer changes on purpose or not at all.

    python tests/estimators/test_same_numbers.py    store the numbers of now, after such a change

Every public estimator with every option, on planted rows of many kinds. Of what a fit holds and
says of rows a sum is kept that signs do not change; of an objective its way up. Fits that end
elsewhere with the products of another processor are named with the numbers and not compared: their
path divides at a choice, ends early or ends where the bound is flat (of priors by row it is equal
to 1e-12, and loadings to a hundredth).
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from every import VARIANTS, fit, outputs, rows
from numpy import __version__ as numpy_version
from numpy.testing import assert_allclose
from scipy import __version__ as scipy_version
from scipy import sparse
from sklearn import __version__ as sklearn_version
from sklearn.base import clone

STORED = Path(__file__).parent / "numbers.json"
SAYS = (
    "transform",
    "predict",
    "predict_proba",
    "score_samples",
    "impute",
    "inverse_transform",
    "posterior",
    "get_covariance",
)
# Fits end where a step gains little, and rounding may add a step.
NEAR = 2e-4
# Kernels of OpenBLAS, each for other instructions; all run on a processor with AVX-512.
KERNELS = ("Prescott", "Sandybridge", "Haswell", "SkylakeX")
# These depend on how a sum is rounded where an end is near.
COUNTS = ("n_iter_", "n_passes_", "converged_")


def gaps(X, known):
    holes = np.sin(np.arange(X.size) ** 2).reshape(X.shape) > 0.8
    return np.where(holes & (np.arange(X.shape[1]) > 0), np.nan, X), known


def part_labelled(X, known):
    y = known.get("y")
    if y is None:
        return None
    hidden = np.arange(len(X)) % 5 > 1
    return X, known | {"y": np.where(hidden, -1 if y.dtype.kind == "i" else np.nan, y)}


def numbers(X, known):
    more = np.column_stack([X[:, 0] + np.sin(X[:, 1]), 10 * X[:, 2] - X[:, 3]])
    return (X, known | {"y": more}) if "y" in known else None


def stored_sparsely(X, known):
    return sparse.csr_array(np.where(np.abs(X) > 1, X, 0.0)), known


def weighted(X, known):
    return X, known | {"sample_weight": 1.0 + np.arange(len(X)) % 3}


def in_chunks(X, known):
    y = np.where(np.arange(len(X)) % 5 > 1, -1, known.get("y", -1))
    return X, known | {"y": y, "chunks": np.arange(len(X)) // 9 * 3 + np.arange(len(X)) % 3}


def linked(X, known):
    n = len(X)
    y = np.where(np.arange(n) % 5 > 1, -1, known.get("y", -1))
    pairs = sparse.csr_array((np.ones(n), (np.arange(n), (np.arange(n) + 3) % n)), shape=(n, n))
    return X, known | {"y": y, "links": pairs}


def wide(X, known):
    return np.hstack([X * np.cos(k + np.arange(len(X))[:, None]) for k in range(12)]), known


def tall(X, known):
    """Ten times the rows, each a little different."""
    if "links" in known:
        return None
    steps = np.sin(np.arange(10 * X.size)).reshape(-1, X.shape[1])
    return np.tile(X, (10, 1)) + steps, {k: np.tile(v, 10) for k, v in known.items()}


def noisy(X, known):
    return X + 6 * np.sin(np.arange(X.size) ** 1.5).reshape(X.shape), known


KINDS = (
    *(gaps, part_labelled, numbers, stored_sparsely, weighted),
    *(in_chunks, linked, wide, tall, noisy),
)
CASES = [*VARIANTS, *(f"{name}: {kind.__name__}" for name in VARIANTS for kind in KINDS)]


def data_of(case, model):
    """Rows and what is known of them, or None where the model has no use for the kind."""
    X, classes = rows()
    known = outputs(model, X, classes)
    _, _, kind = case.partition(": ")
    return next(k for k in KINDS if k.__name__ == kind)(X, known) if kind else (X, known)


def leaves(value) -> list[np.ndarray]:
    """The numbers in an array, a mapping, a record or a list; others say nothing."""
    if isinstance(value, dict):
        return [leaf for part in value.values() for leaf in leaves(part)]
    if isinstance(value, list | tuple):
        return [leaf for part in value for leaf in leaves(part)]
    values = np.asarray(value)
    return [np.abs(values.astype(float)).ravel()] if values.dtype.kind in "fib" else []


def summed(value):
    """A sum of numbers that signs do not change."""
    values = np.concatenate([[], *leaves(value)])
    values = values[np.isfinite(values)]
    return [float(values @ (1 + 0.5 * np.cos(np.arange(len(values)))))]


def says(model, X) -> dict[str, list]:
    """What a fit holds and what it says of rows, in few numbers."""
    held = {name: value for name, value in vars(model).items() if name.endswith("_")}
    path = held.pop("objective_", [])
    found = {name: summed(value) for name, value in held.items() if name not in COUNTS}
    if len(path):
        found["objective_"] = [float(path[i]) for i in (0, len(path) // 4, -1)]
    answers = {name: answered(model, name, X) for name in SAYS if hasattr(model, name)}
    return found | {f"{name}()": summed(answer) for name, answer in answers.items()}


def answered(model, name, X):
    """What a method says of rows; None where it refuses them."""
    try:
        if name == "get_covariance":
            return model.get_covariance()
        return getattr(model, name)(model.transform(X) if name.startswith("inverse") else X)
    except (TypeError, ValueError, NotImplementedError):
        return None


def numbers_of(case) -> dict[str, list]:
    """The numbers of a fit; none where the estimator refuses such rows."""
    model = clone(VARIANTS[case.partition(": ")[0]])
    given = data_of(case, model)
    if given is None:
        return {}
    try:
        fit(model, *given)
    except (TypeError, ValueError, NotImplementedError):
        return {}
    return says(model, given[0])


def made_with() -> list:
    """Versions that round and search in their own way, and the random numbers there are."""
    versions = (numpy_version, scipy_version, sklearn_version)
    short = (".".join(version.split(".")[:2]) for version in versions)
    return [*short, float(np.random.default_rng(0).random())]


def agree(found, kept) -> bool:
    """Whether two fits have the same numbers, nearer than is asked of a processor not tried."""
    return found.keys() == kept.keys() and all(map(nearer, found.values(), kept.values()))


def nearer(found, kept) -> bool:
    return np.allclose(found, kept, rtol=NEAR / 4, atol=tolerance(kept) / 4)


def tolerance(kept) -> float:
    return NEAR * np.max(np.abs(kept), initial=0.0) + 1e-9


if __name__ != "__main__":
    KEPT = json.loads(STORED.read_text())
    CASES = [case for case in CASES if case not in KEPT["open"]]


@pytest.mark.parametrize("case", CASES)
def test_a_fit_gives_the_numbers_that_it_gave(case):
    if KEPT["made with"] != made_with():
        pytest.skip("other versions or other random numbers")
    found, kept = numbers_of(case), KEPT["numbers"].get(case, {})
    assert found.keys() == kept.keys()
    for name, expected in kept.items():
        assert_allclose(found[name], expected, rtol=NEAR, atol=tolerance(expected), err_msg=name)


def rounded_numbers() -> dict:
    """The numbers of now, for all cases that are not refused."""
    found = {case: numbers_of(case) for case in CASES}
    return {
        case: {name: [float(f"{v:.8g}") for v in values] for name, values in kept.items()}
        for case, kept in found.items()
        if kept
    }


def numbers_elsewhere(kernels) -> dict:
    """The same as a processor with other instructions computes them."""
    environment = os.environ | {"OPENBLAS_CORETYPE": kernels}
    command = [sys.executable, __file__, "print"]
    done = subprocess.run(command, env=environment, capture_output=True, check=True)
    return json.loads(done.stdout)


def store():
    """Keep the numbers of now, a line for each case."""
    found, elsewhere = rounded_numbers(), [numbers_elsewhere(kernels) for kernels in KERNELS]
    left_out = [c for c, k in found.items() if not all(agree(e.get(c, {}), k) for e in elsewhere)]
    kept = (f"{json.dumps(c)}: {json.dumps(k)}" for c, k in found.items() if c not in left_out)
    lines = ",\n".join(kept)
    head = f'"made with": {json.dumps(made_with())}, "open": {json.dumps(left_out, indent=1)}'
    STORED.write_text(f'{{{head}, "numbers": {{\n{lines}\n}}}}\n')


if __name__ == "__main__":
    print(json.dumps(rounded_numbers())) if "print" in sys.argv else store()
