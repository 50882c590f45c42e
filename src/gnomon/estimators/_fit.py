"""What every iterative estimator does around its loop: run it, keep its trace, warn.

scikit-learn 1.9 brought callbacks of its own (`set_callbacks`, with a progress bar); they see
each iteration as a task of the fit. The user's plain ``callback`` works with every version.
"""

import warnings
from contextlib import contextmanager
from functools import partial
from itertools import chain
from typing import Any

from scipy import sparse
from sklearn.exceptions import ConvergenceWarning

from gnomon.estimators._door import count
from gnomon.inference.callbacks import both
from gnomon.inference.checkpoint import fingerprint, leaves
from gnomon.inference.loop import Method, Run, iterate
from gnomon.linalg.data import Data, Matrix

try:
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:  # scikit-learn 1.8

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Nothing to support."""

    def with_callbacks(method):
        """The method as it is."""
        return method


def _contents(part):
    """The arrays and numbers of a problem, one after another; rows in blocks a block at a time."""
    if isinstance(part, tuple):
        for inner in part:
            yield from _contents(inner)
    elif isinstance(part, Matrix):
        yield from _contents(part.X)
    elif isinstance(part, Data):
        yield from part.dense_blocks()
    elif sparse.issparse(part):
        compressed: Any = part
        yield from (compressed.shape, compressed.data, compressed.indices, compressed.indptr)
    else:
        yield part


class IterativeFit(CallbackSupportMixin):
    """Runs a step with the user's callback; keeps n_iter_, objective_ and converged_."""

    callback: Any = None

    def _loop(self, problem):
        """The loop of the fit of a problem, with which a checkpoint must agree."""
        return partial(self._iterate, problem=problem)

    def _iterate(self, method: Method, *, max_iter, tol, patience=1, problem=()) -> Run:
        """The loop of `gnomon.inference.loop.iterate` with all callbacks attached."""
        if self.callback is not None and not callable(self.callback):
            raise TypeError(
                f"callback == {self.callback!r}; accepted are None and a function "
                "of (n_iter, state, objective)"
            )
        run = partial(iterate, max_iter=max_iter, tol=tol, patience=patience)
        if not hasattr(self.callback, "resume"):
            return self._with_callbacks(partial(run, method), self.callback, max_iter)
        if not method.resumes:
            return self._with_callbacks(partial(run, method), None, max_iter)
        saved = self.callback.resume(method.start, self._fingerprint(method.start, problem))
        run = partial(run, method._replace(start=saved.state), objective=saved.objective)
        return self._with_callbacks(partial(run, checkpoint=self.callback), None, max_iter)

    @with_callbacks
    def _with_callbacks(self, run, callback, max_iter):
        """``run(callback=...)`` with all callbacks in one; it has at most max_iter iterations."""
        with self._fit_task(max_iter) as task:
            return run(callback=callback if task is None else both(callback, task))

    def _fingerprint(self, state, problem=()):
        """What a checkpoint must agree with: class, parameters, start of the fit, and all data."""
        parameters = self.get_params(deep=False)
        stable = [item for item in sorted(parameters.items()) if item[0] != "callback"]
        return fingerprint(
            chain([type(self).__name__], leaves(stable), leaves(state), _contents(problem))
        )

    @contextmanager
    def _fit_task(self, max_iter):
        """The callback that tells scikit-learn's callbacks of every iteration, if there are any."""
        if not hasattr(self, "_skl_callbacks"):
            yield None
            return
        root = self._init_callback_context(max_subtasks=max_iter)
        root.call_on_fit_task_begin(estimator=self)

        def tell(n_iter, state, objective):
            task = root.subcontext(task_name="iteration")
            task.call_on_fit_task_begin(estimator=self)
            return task.call_on_fit_task_end(estimator=self)

        yield tell
        root.call_on_fit_task_end(estimator=self)

    def _keep_run(self, run: Run, *, max_iter):
        self.n_iter_ = len(run.objective)
        self.objective_ = run.objective
        self.converged_ = run.converged
        if not run.converged:
            warnings.warn(
                f"{type(self).__name__} stopped after {count(self.n_iter_, 'iteration')} "
                f"without having converged; raise max_iter == {max_iter} or tol",
                ConvergenceWarning,
                stacklevel=3,
            )


def warn_without_evidence(variances):
    """Warn where a prior left out every component."""
    if not (variances > 0).any():
        warnings.warn(
            "no component has evidence: X looks like noise; the loadings that are kept are zero",
            ConvergenceWarning,
            stacklevel=4,
        )
