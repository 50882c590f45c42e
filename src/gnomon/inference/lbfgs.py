"""Ascent by limited-memory quasi-Newton steps, for likelihoods where EM crawls."""

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize

from gnomon.inference.loop import Callback, Run

ValueAndGradient = Callable[[np.ndarray], tuple[float, np.ndarray]]


def ascend(
    value_and_gradient: ValueAndGradient,
    x: np.ndarray,
    *,
    bounds=None,
    max_iter: int,
    tol: float,
    callback: Callback | None = None,
) -> Run:
    """Climb from x until an iteration gains less than tol; the state of the run is the vector.

    ``bounds`` are pairs (low, high) for each entry, None where there is none. The callback is
    that of `gnomon.inference.loop.iterate`; as there, the objective never falls.
    """
    start, _ = value_and_gradient(x)
    history = [float(start)]

    def negative(x):
        value, gradient = value_and_gradient(x)
        return -value, -gradient

    def watch(intermediate_result):
        history.append(-float(intermediate_result.fun))
        if callback is not None and callback(len(history), intermediate_result.x, history[-1]):
            raise StopIteration

    relative = tol / max(abs(start), 1.0)
    options = {"maxiter": max_iter, "ftol": relative, "gtol": 0.0, "maxfun": 20 * max_iter}
    found = minimize(  # type: ignore[call-overload]
        negative, x, jac=True, method="L-BFGS-B", bounds=bounds, options=options, callback=watch
    )
    # A line search that finds nothing better (2) is at the limit of the arithmetic.
    return Run(found.x, history, converged=found.status in (0, 2))
