"""The fit of SPPCA at a stated or chosen strength of supervision."""

from functools import partial

from gnomon.estimators._fit import IterativeFit
from gnomon.inference.loop import Method, Run, iterate
from gnomon.linalg.data import center, check_columns, check_spread, has_gaps, weighted
from gnomon.models import supervision_gaps
from gnomon.models.gaussian import gaps
from gnomon.models.sppca import fit as sppca_fitted
from gnomon.models.sppca import gaps as sppca_gaps
from gnomon.models.sppca import statistics as sppca
from gnomon.models.sppca.gaps import climb as climb_with_gaps
from gnomon.models.supervision import pool, pool_size, supervise, truncated
from gnomon.models.supervision_choice import Choice, choose


class StrengthFit(IterativeFit):
    """Fits a number or "auto" as `supervision` of an estimator with the parameters of SPPCA."""

    def _fit_supervised(self, rows, q):
        X, targets, weights = rows
        filled, passes = None, 2
        if has_gaps(X):
            filled, passes = self._fill(X, weights, q)
            X = filled.X.astype(X.dtype)
        mean, centered = center(weighted(X, weights))
        choice, found = self._supervise(centered, targets, q, filled)
        held = (1 - choice.s) * found.x_share.sum() + choice.s * found.y_share.sum()
        run = Run(None, [float(held)], converged=True)
        if filled is not None:
            mean, found, run = self._refine(rows, filled, found, choice.s)
            passes += 2 + 2 * len(run.objective)
        fitted = sppca_fitted.from_supervised(mean, found, energy_scale=self.scale != "latent")
        self._keep(rows, fitted, choice.s, passes)
        if choice.curve is not None:
            self.supervision_curve_ = choice.curve._asdict()
        self._keep_run(run, max_iter=1 if filled is None else self.max_iter)
        return self

    def _supervise(self, X, targets, q, filled):
        """The strength and the closed form for centred rows, gaps filled where there were some."""
        rng = self._generator()
        labels = targets.Y, targets.observed
        space = pool(X, pool_size(q), rng, leading=q)
        check_spread(space.total)
        if filled is not None:
            space = space._replace(total=filled.total)
        choice = Choice(float(0 if self.supervision == "auto" else self.supervision), pool_size(q))
        if self.supervision == "auto":
            choice = choose(space, *labels, q, targets.labels, rng)
        space = truncated(space, choice.pool)
        return choice, supervise(space, *labels, q, choice.s, targets.labels, choice.votes)

    def _fill(self, X, weights, q):
        """The rows with their gaps filled by PPCA, and the passes it took."""
        check_columns(X)
        data = sppca_gaps.table(X.astype(float), *sppca_gaps.no_outputs(len(X)), weights)
        check_spread(gaps.squared_norm(data))
        start, noise = gaps.init(data, q), sppca.Noise(data.floors[0], data.floors[1:])
        options = {"max_iter": self.max_iter, "tol": self.tol, "loop": iterate}
        run = climb_with_gaps(data, start, noise, **options)
        return supervision_gaps.fill(run.state, data), 2 * len(run.objective)

    def _refine(self, rows, filled, found, s):
        """The maximum over the observed entries, from the closed form on the filled rows."""
        X = rows.X.astype(float)
        problem = supervision_gaps.problem(X, filled, found, s, rows.weights)
        options = {"max_iter": self.max_iter, "tol": self.tol, "loop": self._iterate}
        run = climb_with_gaps(*problem[:3], **options)
        start, data = supervision_gaps.inputs(run.state, X, rows.weights)
        tol = self.tol * gaps.n_observed(data)
        step = partial(gaps.noise_step, data=data)
        alone = iterate(Method(start, step), max_iter=self.max_iter, tol=tol)
        fit = supervision_gaps.assemble(run.state, alone.state.noise[0], problem, filled, found)
        return *fit, run
