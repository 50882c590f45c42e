"""How many components: a criterion against their number, for several models at once."""

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import FactorAnalysis
from sklearn.preprocessing import StandardScaler
from sklearn.utils import check_array

from gnomon._lazy import import_extra
from gnomon.estimators import check_integer, check_option, check_real, count, why_size
from gnomon.estimators.ppca import PPCA
from gnomon.linalg.data import has_gaps
from gnomon.tools.compare.candidates import names_with_sizes
from gnomon.tools.compare.scoring import (
    MEASURES,
    Deadline,
    interval,
    mean_score,
    read_problem,
    row_splits,
)
from gnomon.tools.compare.trials import Settings, chosen_sizes, ended, pooled, score_candidates
from gnomon.typing import OutputsLike, RowsLike

# A likelihood takes a moment a size; a prediction fits a dozen models in every fold, and scores of
# neighbouring sizes differ little.
LIKELY_SIZES, PREDICTED_SIZES = range(1, 11), (1, 2, 3, 5, 8)
CRITERIA = ("auto", "likelihood", "parallel", "prediction")
LIKELIHOOD_MODELS = {"PPCA": PPCA, "factor analysis": FactorAnalysis}
OF_GAPS = ("PPCA",)
# Tables with permuted columns that show what variances are chance, and the share of them that a
# component must exceed: the usual ones of parallel analysis.
N_PERMUTED, ABOVE = 20, 0.95


class DimensionRow(NamedTuple):
    """A criterion for one model and size: its mean, and standard deviation over splits.

    For predictions the score of all held-out rows, and its standard error.
    """

    model: str
    n_components: int
    mean: float
    sd: float


class DimensionChoice(NamedTuple):
    """Curves of a criterion, for each model the smallest size as good as its best, and why."""

    rows: Sequence[DimensionRow]
    chosen: dict[str, int]
    criterion: str
    reasons: Mapping[str, str] = MappingProxyType({})

    def to_frame(self):
        """The curves as a pandas data frame.

        Returns
        -------
        frame : pandas.DataFrame
            Columns model, n_components, mean, sd.
        """
        pandas = import_extra("pandas", "cli", "to_frame")
        return pandas.DataFrame(list(self.rows), columns=list(DimensionRow._fields))

    def plot(self, *, ax=None):
        """Draw the curves with error bars; the choices are ringed.

        Parameters
        ----------
        ax : matplotlib axes, default=None
            Where to draw; new axes by default.

        Returns
        -------
        display : DimensionDisplay
            With ``ax_`` and ``figure_``.
        """
        from gnomon.displays import DimensionDisplay

        sizes = sorted({row.n_components for row in self.rows})
        return DimensionDisplay(
            sizes,
            {name: self._along(name, sizes, "mean") for name in self.chosen},
            sds={name: self._along(name, sizes, "sd") for name in self.chosen},
            chosen=self.chosen,
            criterion=self.criterion,
        ).plot(ax)

    def _along(self, model, sizes, field):
        found = {r.n_components: getattr(r, field) for r in self.rows if r.model == model}
        return [found.get(size, np.nan) for size in sizes]


def choose_dimension(
    X: RowsLike,
    y: OutputsLike = None,
    *,
    models: Any = None,
    n_components: Sequence[int] | None = None,
    criterion: str = "auto",
    cv: Any = 5,
    target: str = "auto",
    time_limit: float | None = None,
    n_jobs: int | None = None,
    progress: bool | str = "auto",
    random_state: int = 0,
) -> DimensionChoice:
    """Choose the number of components by a criterion against it, for several models.

    Parameters
    ----------
    X : array-like of shape (n_samples, n_features)
        Inputs. The likelihoods are taken of X as it is: PPCA has one noise variance for all
        features, so features in different units should be brought to one scale first. NaN marks
        a gap: the likelihood is then that of PPCA, for "prediction" gaps are filled once, by PPCA
        of all rows, and "parallel" takes none.
    y : array-like of shape (n_samples,) or (n_samples, n_outputs), default=None
        For "prediction": as in `compare`.
    models : sequence, default=None
        For "likelihood" names among "PPCA" and "factor analysis"; for "prediction" as in
        `compare`. All that apply by default, but those that draw pictures of one size, as
        UMAP. "parallel" has none.
    n_components : sequence of int, default=None
        Sizes to try, as far as X allows; by default 1, 2, ... up to 10, for "prediction"
        1, 2, 3, 5 and 8.
    criterion : {"auto", "likelihood", "parallel", "prediction"}, default="auto"
        Log likelihood per held-out row; parallel analysis, which keeps the leading principal
        components whose variance exceeds that of the same component in 95 % of 20 tables with
        permuted columns; or the score of predictions from the embedding. "auto" is "prediction"
        with y and "likelihood" without.
    cv : int, default=5
        Number of folds.
    target : {"auto", "classes", "numeric", "multilabel"}, default="auto"
        For "prediction": what y holds.
    time_limit : float, default=None
        For "prediction": seconds after which it ends with what it has, as in `compare`.
    n_jobs : int, default=None
        Processes for "prediction".
    progress : bool or "auto", default="auto"
        Whether "prediction" shows a progress bar; "auto" does so on a terminal.
    random_state : int, default=0
        Makes the folds.

    Returns
    -------
    choice : DimensionChoice
        ``chosen`` has for each model the smallest size that is as good as its best: within 0.02
        of it for predictions, within one standard error for likelihoods; ``reasons`` says so.
        For "parallel" it has the name "principal components", at least one.

    See Also
    --------
    compare : Which model to use.

    Examples
    --------
    >>> from gnomon import choose_dimension
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> X = rng.standard_normal((200, 2)) @ rng.standard_normal((2, 8))
    >>> X += 0.3 * rng.standard_normal((200, 8))
    >>> choose_dimension(X, models=["PPCA"], n_components=[1, 2, 3, 4]).chosen
    {'PPCA': 2}
    """
    check_option("criterion", criterion, CRITERIA)
    if criterion == "auto":
        criterion = "likelihood" if y is None else "prediction"
    if criterion == "prediction":
        if y is None:
            raise ValueError("y is None; criterion == 'prediction' needs outputs to predict")
        if time_limit is not None:
            time_limit = check_real("time_limit", time_limit, low=0, open_low=True)
        until = Deadline(time_limit)
        settings = Settings("auto", cv, random_state, n_jobs, until, progress)
        sizes = _sizes(n_components, np.shape(X), PREDICTED_SIZES)
        return _by_prediction(X, y, target, models, sizes, settings)
    X = check_array(
        X, dtype=(np.float64, np.float32), ensure_all_finite="allow-nan", input_name="X"
    )
    sizes = _sizes(n_components, X.shape)
    if criterion == "parallel":
        if models is not None:
            raise ValueError(f"models == {models!r}; criterion == 'parallel' has none, pass None")
        if has_gaps(X):
            raise ValueError(
                "X has gaps, which criterion == 'parallel' does not take; 'likelihood' does"
            )
        return _by_permuted_columns(X, sizes, np.random.default_rng(random_state))
    splits = row_splits(len(X), cv, random_state)
    return _by_likelihood(X, _likelihood_models(models, has_gaps(X)), sizes, splits)


def _by_permuted_columns(X, sizes, rng):
    """Parallel analysis: components that vary more than in tables whose columns are unrelated."""
    own = _component_variances(X)
    by_chance = np.array([_component_variances(rng.permuted(X, axis=0)) for _ in range(N_PERMUTED)])
    limit = np.maximum(np.quantile(by_chance, ABOVE, axis=0), np.finfo(float).tiny)
    above = np.append(own > limit, False)
    found = int(np.argmin(above))
    size = max([q for q in sizes if q <= found], default=sizes[0])
    name, ratios, sds = "principal components", own / limit, by_chance.std(axis=0) / limit
    rows = [DimensionRow(name, q, float(ratios[q - 1]), float(sds[q - 1])) for q in sizes]
    reason = f"{count(found, 'leading component varies', 'leading components vary')} more than in "
    reason += f"{ABOVE:.0%} of {N_PERMUTED} tables with permuted columns."
    axis = "variance over that of permuted columns"
    return DimensionChoice(rows, {name: size}, axis, {name: reason})


def _component_variances(X):
    """Variances of the principal components times the number of rows, largest first."""
    X = X - X.mean(axis=0, dtype=float)
    small = X.T @ X if X.shape[1] <= X.shape[0] else X @ X.T
    return np.linalg.eigvalsh(small)[::-1]


def _sizes(n_components, shape, usual=LIKELY_SIZES):
    most = min(shape[1], shape[0] // 2) - 1
    if n_components is None:
        if most < 1:
            raise ValueError(f"X has shape {shape}; a choice needs at least 4 rows and 2 features")
        return [size for size in usual if size <= most]
    sizes = [check_integer("n_components", q, low=1) for q in np.atleast_1d(n_components).tolist()]
    return sorted({min(q, max(most, 1)) for q in sizes})


def _likelihood_models(models, gaps):
    accepted = OF_GAPS if gaps else tuple(LIKELIHOOD_MODELS)
    names = accepted if models is None else list(models)
    for name in names:
        check_option("models", name, tuple(LIKELIHOOD_MODELS))
        if name not in accepted:
            raise ValueError(f"models has {name!r}, which takes no gaps, and X has some; PPCA does")
    return {name: LIKELIHOOD_MODELS[name] for name in names}


def _by_likelihood(X, models, sizes, splits):
    values = {name: np.empty((len(sizes), len(splits))) for name in models}
    for s, (train, test) in enumerate(splits):
        seen, unseen = X[train], X[test]
        for name, model in models.items():
            for i, q in enumerate(sizes):
                values[name][i, s] = model(n_components=q).fit(seen).score(unseen)
    share = len(splits[0][1]) / len(splits[0][0])
    chosen = {name: within_an_error(sizes, values[name], share) for name in models}
    return DimensionChoice(
        [
            DimensionRow(name, q, float(v.mean()), float(v.std(ddof=1)))
            for name in models
            for q, v in zip(sizes, values[name], strict=True)
        ],
        chosen,
        "log likelihood per held-out row",
        {
            name: f"{q} is the smallest within a standard error of the best."
            for name, q in chosen.items()
        },
    )


def within_an_error(sizes, values, test_share) -> int:
    """Smallest size whose mean over splits is within a standard error of that of the best.

    ``values`` has a row for each size and a column for each split. Splits share training rows,
    ``test_share`` is the number of test rows over that of training rows, so the variance of a
    difference is corrected as in [NB03].
    """
    means = values.mean(axis=1)
    best = int(np.argmax(means))
    lost = values[best] - values
    errors = np.sqrt(lost.var(axis=1, ddof=1) * (1 / values.shape[1] + test_share))
    return sizes[int(np.flatnonzero(means[best] - means <= errors)[0])]


def _by_prediction(X, y, target, models, sizes, settings):
    problem = read_problem(X, y, target=target)
    models = names_with_sizes(problem.kind) if models is None else models
    problem = problem._replace(X=_filled(problem.X, max(sizes), settings.until))
    done = score_candidates(problem, models, sizes, settings)
    rows = [
        _scored_row(problem.kind, key, pooled(own, done.splits))
        for key, own in sorted(ended(done.outcomes).items())
    ]
    chosen = chosen_sizes(problem, done.outcomes, done.splits)
    scores = {m: {r.n_components: r.mean for r in rows if r.model == m} for m in chosen}
    reasons = {model: why_size(scores[model], size) for model, size in chosen.items()}
    return DimensionChoice(rows, chosen, MEASURES[problem.kind], reasons)


def _filled(X, q, until):
    """X with its gaps filled once, from its rows alone, so that not every fold fills them anew."""
    if not has_gaps(X) or sparse.issparse(X):
        return X
    scaled = StandardScaler().fit_transform(X)
    return until.bound(PPCA(q, random_state=0)).fit(scaled).impute(scaled)


def _scored_row(kind, key, sums):
    low, high = interval(kind, sums)
    return DimensionRow(*key, mean_score(kind, sums), (high - low) / (2 * 1.96))  # type: ignore[call-arg]
