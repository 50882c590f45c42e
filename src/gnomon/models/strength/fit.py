"""The fit of SPPCA at a stated or chosen strength of supervision.

Of complete rows the principal directions are found, the strength is taken as given or chosen
by `choice`, and `closed_form` does the rest. Gaps are filled by PPCA before; then `gaps` goes
on, from what the filled rows give, to the maximum of the likelihood of the observed entries.
"""

from typing import NamedTuple

import numpy as np

from gnomon.inference.loop import Run
from gnomon.linalg.data import as_data
from gnomon.linalg.solve import one_thread
from gnomon.models.sppca.fit import Problem, SppcaFit
from gnomon.models.strength import closed_form, gaps
from gnomon.models.strength.choice import Choice, Curve, choose
from gnomon.models.strength.closed_form import PrincipalSpace, n_directions
from gnomon.models.strength.completion import Outputs
from gnomon.models.strength.trials import Candidate


class Settings(NamedTuple):
    """Number of components, strength in [0, 1] or "auto", scale of coordinates, when to stop.

    ``before`` is the candidate that an earlier fit chose, which "auto" leaves with reluctance.
    """

    n_components: int
    strength: float | str
    latent_scale: bool
    max_iter: int
    tol: float
    rng: np.random.Generator
    before: Candidate | None = None


class StrengthFit(NamedTuple):
    """SPPCA with its strength and directions, how they were chosen, the run, the passes over X.

    The objective is the log likelihood of x and the completed outputs where X has gaps, else the
    share of the energy that the components hold.
    """

    fitted: SppcaFit
    strength: float
    n_directions: int
    curve: Curve | None
    run: Run
    passes: int


def fit(problem: Problem, settings: Settings, loop) -> StrengthFit:
    """SPPCA with the share of energy in the completed outputs that the strength states."""
    rows = as_data(problem.X)
    if rows.has_gaps:
        return _fit_with_gaps(problem, settings, loop)
    outputs = Outputs(problem.Y, problem.observed, problem.labels, problem.chunks)
    return fit_in(_space(rows, problem.weights, settings), outputs, settings)


def fit_in(space: PrincipalSpace, outputs: Outputs, settings: Settings) -> StrengthFit:
    """The fit of complete rows in a principal space that is known already."""
    choice, found = _supervise(space, outputs, settings)
    energy = (1 - choice.s) * found.input_share.sum() + choice.s * found.target_share.sum()
    run = Run(None, [float(energy)], converged=True)
    return _scaled(found, choice, run, passes=2, settings=settings)


def _fit_with_gaps(problem, settings, loop):
    X, Y, observed, labels, weights, chunks = problem
    filled = gaps.fill(X, weights, settings)
    space = _space(filled.X, weights, settings)
    space = space._replace(total=filled.total)
    choice, found = _supervise(space, Outputs(Y, observed, labels, chunks), settings)
    found, run = gaps.refine(X, weights, filled, found, choice.s, settings, loop)
    passes = 2 * (filled.n_steps + 1 + len(run.objective))
    return _scaled(found, choice, run, passes=passes, settings=settings)


def _space(X, weights, settings):
    return closed_form.space_of(X, weights, settings.n_components, settings.rng)


@one_thread
def _supervise(space, outputs, settings):
    """The strength, chosen where it is not given, and the closed form."""
    q = settings.n_components
    if settings.strength == "auto":
        choice = choose(space, outputs, q, settings.rng, settings.before)
    else:
        choice = Choice(float(settings.strength), n_directions(q))
    space = closed_form.truncated(space, choice.n_directions)
    known = choice.votes, choice.learnt
    return choice, closed_form.supervise(space, outputs, q, choice.s, *known)


def _scaled(found, choice, run, *, passes, settings):
    found = closed_form.in_latent_scale(found) if settings.latent_scale else found
    return StrengthFit(found, choice.s, choice.n_directions, choice.curve, run, passes)
