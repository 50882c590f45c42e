"""What every iterative estimator does around its loop: run it, keep its trace, warn."""

import warnings

from sklearn.exceptions import ConvergenceWarning

from gnomon.inference.fixed_point import Run, iterate


class IterativeFit:
    """Runs a step with the user's callback; keeps n_iter_, objective_ and converged_."""

    callback = None

    def _iterate(self, step, state, *, max_iter, tol) -> Run:
        return iterate(step, state, max_iter=max_iter, tol=tol, callback=self.callback)

    def _keep_run(self, run: Run, *, max_iter):
        self.n_iter_ = len(run.objective)
        self.objective_ = run.objective
        self.converged_ = run.converged
        if not run.converged:
            warnings.warn(
                f"{type(self).__name__} stopped after {self.n_iter_} iterations without having "
                f"converged; raise max_iter == {max_iter} or tol",
                ConvergenceWarning,
                stacklevel=3,
            )
