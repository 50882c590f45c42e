"""What a labelling session learns from its labels: the map, the next rows, how far it has come.

Pure computation, to be called from a thread: `Learner.update` refits after each label and is
fast; `Learner.progress` cross-validates, takes seconds, and can be called less often.
"""

from copy import copy
from inspect import signature
from typing import NamedTuple

import numpy as np
from scipy.linalg import orthogonal_procrustes
from scipy.sparse import issparse
from sklearn.base import clone

from gnomon.estimators import check_option, labelled_rows, n_rows, take_rows
from gnomon.estimators.bsdr import BSDR
from gnomon.estimators.dcagm import DCAGM
from gnomon.estimators.kernel_sppca import KernelSPPCA
from gnomon.estimators.sppca import SPPCA
from gnomon.linalg.data import has_gaps
from gnomon.linalg.solve import one_thread
from gnomon.models.gaussian import filling
from gnomon.tools.compare.held_out import held_out
from gnomon.tools.compare.scoring import code_problem, labelled_splits
from gnomon.tools.suggest import OF_CLASSES, RULES, Suggestion, View, choose, content

# Models that have a map and probabilities of classes. PPCA has the first alone: nothing would say
# which row is in doubt, how many are found, or which label is a slip.
MODELS = {"SPPCA": SPPCA, "KernelSPPCA": KernelSPPCA, "DCAGM": DCAGM, "BSDR": BSDR}
# Length of the queue: more rows than a person skips before the next refit is there.
QUEUE = 20
# A class with fewer labels can hardly be held out: in five folds each should have one.
FEW_LABELS = 5
# Unlabelled rows that cross-validation keeps beside the labelled ones; more cost seconds.
ROWS_OF_PROGRESS = 1500
# A label is surprising where a fit that had not seen it gives it less than this.
SURPRISING = 0.1
# Draws of half of the labels. Where at most this share of the rows without label changes its
# class with them, all labels together added .003 to the accuracy on average, in 26 sessions, and
# .057 at most (benchmarks/labelling_progress.py).
HALVES, FLAT = 3, 0.05


class Surprise(NamedTuple):
    """A labelled row whose class a fit that did not see the label finds improbable."""

    row: int
    given: int
    found: int
    probability: float


class Progress(NamedTuple):
    """How well labels left out are found, and whether more labels would change much.

    ``accuracy`` is by cross-validation over the labelled rows, with its 95 % interval (low, high);
    ``permuted`` is what the same fits reach with labels in another order, ``guess`` a constant
    guess. Rows that were labelled because they are hard make it lower than it is over all rows:
    ``expected`` is what the model expects of the rows without label, by its own probabilities.
    ``changed`` is the share of these that have another class with half of the labels. All are NaN
    where labels are too few. ``few`` names the classes with too few labels to be scored well.
    """

    n_labels: int
    accuracy: float = np.nan
    low: float = np.nan
    high: float = np.nan
    permuted: float = np.nan
    guess: float = np.nan
    expected: float = np.nan
    changed: float = np.nan
    verdict: str = "too few labels to hold some out"
    few: tuple[str, ...] = ()
    surprising: tuple[Surprise, ...] = ()

    @property
    def is_flat(self) -> bool:
        """Whether half of the labels do nearly as well as all of them."""
        return self.changed <= FLAT


class State(NamedTuple):
    """The map and the queue after a refit.

    ``coordinates`` (n, 2) are turned to lie as in the state before, with standard deviations
    ``sd``; ``probabilities`` (n, C) are even where ``predicts`` is not set, as while fewer than
    two classes are labelled.
    ``n_moved`` is the share of rows that moved by more than their own uncertainty. ``progress``
    and ``surprising`` are of the last call of `Learner.progress`.
    """

    version: int
    coordinates: np.ndarray
    sd: np.ndarray
    probabilities: np.ndarray
    queue: list[Suggestion]
    surprising: list[Surprise]
    progress: Progress | None
    n_moved: float
    predicts: bool


class Learner:
    """Refits a model after each label.

    Parameters
    ----------
    X : array or sparse matrix of shape (n, d)
        All rows; NaN marks gaps.
    classes : list of str
        Names of the classes by their codes; append to it where a class is new.
    model : str, default="auto"
        "SPPCA", which "auto" takes with chunks and without, "KernelSPPCA", "DCAGM" or "BSDR",
        which learns from labelled rows alone.
    rule : str, default="representative"
        The rule of the queue, as in `gnomon.suggest`.
    random_state : int, default=0
    """

    def __init__(self, X, classes, model="auto", rule="representative", random_state=0):
        self.X, self.classes, self.model, self.rule = X, list(classes), model, rule
        self.random_state = random_state
        check_option("model", model, ("auto", *MODELS))
        check_option("rule", rule, tuple(RULES))
        gaps = not issparse(X) and has_gaps(np.asarray(X))
        self._whole = _filled(X) if gaps else X
        self._content = content(self._whole)
        self._size = min(2, X.shape[1])
        self.fitted = None
        self._last: State | None = None
        self._progress: Progress | None = None

    @one_thread
    def update(self, labels, chunks=None, skipped=None) -> State:
        """The state with these labels (codes, -1 unlabelled) and chunks (numbers, -1 none).

        Rows of the mask ``skipped`` are not in the queue. ``fitted`` is then the model of the map.
        """
        labels = np.asarray(labels)
        self.fitted = fitted = self._fit(labels, _agreeing(chunks, labels))
        Z, covariances = _placed(fitted, self._seen_by(fitted))
        Z, sd, moved = self._aligned(Z, covariances)
        P = self._probabilities(fitted, labels)
        queue = self._queue(Z, P if hasattr(fitted, "classes_") else None, labels, skipped)
        version = 1 if self._last is None else self._last.version + 1
        surprising = self._still_surprising(labels)
        predicts = hasattr(fitted, "classes_")
        Z = Z.astype(np.float32)
        self._last = State(version, Z, sd, P, queue, surprising, self._progress, moved, predicts)
        return self._last

    def progress(self, labels, chunks=None) -> Progress:
        """Accuracy on labels left out, by cross-validation with its controls, and a verdict."""
        labels = np.asarray(labels)
        few = tuple(self._name(c) for c in self._codes(labels) if np.sum(labels == c) < FEW_LABELS)
        found = Progress(int(np.sum(labels >= 0)), few=few)
        if _n_classes(labels) > 1:
            found = self._judged(found, labels, _agreeing(chunks, labels))
        self._progress = found
        return found

    def _judged(self, found, labels, chunks):
        rows = self._rows_of_progress(labels)
        X, y = take_rows(self._whole, rows), labels[rows]
        model = self.new_model()
        chunks = None if chunks is None else chunks[rows]
        known = known_to(model, chunks)
        score = held_out(model, X, y, "classes", **known)
        if score is None:
            return found
        expected, changed = _against_half(model, X, y, chunks, self.random_state)
        return found._replace(
            accuracy=score.value,
            low=score.low,
            high=score.high,
            permuted=np.nan if score.control is None else score.control,
            guess=score.baseline,
            expected=expected,
            changed=changed,
            verdict=_verdict(score, changed),
            surprising=_surprises(score.rows, rows, code_problem(X, y, "classes", **known)),
        )

    def _codes(self, labels):
        return range(max(len(self.classes), labels.max(initial=-1) + 1))

    def _name(self, code):
        return self.classes[code] if code < len(self.classes) else str(code)

    def new_model(self):
        """The model of the map, not fitted."""
        kind = SPPCA if self.model == "auto" else MODELS[self.model]
        more = {"warm_start": True} if kind is SPPCA else {}
        more |= {"target": "classes"} if issubclass(kind, SPPCA | KernelSPPCA) else {}  # type: ignore[dict-item]
        # One start, by discriminant analysis: five take five times as long after every label.
        more |= {"n_init": 1} if kind is BSDR else {}  # type: ignore[dict-item]
        return kind(self._size, random_state=self.random_state, **more)

    def _fit(self, labels, chunks):
        if _n_classes(labels) > 1:
            # A copy, as another thread may look at the last fit; it starts from what that chose.
            model = copy(self.fitted) if hasattr(self.fitted, "classes_") else self.new_model()
            fitted = fit_model(model, self._whole, labels, chunks)
            # BSDR may find no direction in few labels: all rows would lie on one point.
            if not isinstance(fitted, BSDR) or fitted.kept_.any():
                return fitted
        return SPPCA(self._size, random_state=self.random_state).fit(self._whole)

    def _seen_by(self, fitted):
        """The rows with their gaps where the model knows what these mean for a place."""
        return self.X if isinstance(fitted, SPPCA) else self._whole

    def _probabilities(self, fitted, labels):
        n_classes = len(self._codes(labels))
        if not hasattr(fitted, "classes_"):
            return np.full((n_rows(self.X), n_classes), 1 / max(n_classes, 1), dtype=np.float32)
        P = np.zeros((n_rows(self.X), n_classes), dtype=np.float32)
        P[:, fitted.classes_] = fitted.predict_proba(self._seen_by(fitted))
        return P

    def _aligned(self, Z, covariances):
        """Coordinates turned to the last ones, their deviations, and the share that moved."""
        if self._last is None:
            return Z, np.sqrt(np.diagonal(covariances, axis1=1, axis2=2)), 0.0
        before = self._last.coordinates.astype(float)
        center, old = Z.mean(axis=0), before.mean(axis=0)
        turn, _ = orthogonal_procrustes(Z - center, before - old)
        Z = (Z - center) @ turn + old
        variances = np.diagonal(turn.T @ covariances @ turn, axis1=1, axis2=2)
        away = np.sum((Z - before) ** 2, axis=1)
        return Z, np.sqrt(variances), float(np.mean(away > variances.sum(axis=1)))

    def _queue(self, Z, P, labels, skipped):
        names = tuple(self._name(c) for c in self._codes(labels))
        rule = "representative" if P is None and self.rule in OF_CLASSES else self.rule
        view = View(Z, self._content, P, labels >= 0, names, skipped)
        return choose(view, n=QUEUE, rule=rule, rng=np.random.default_rng(self.random_state))

    def _still_surprising(self, labels):
        if self._progress is None:
            return []
        return [s for s in self._progress.surprising if labels[s.row] == s.given]

    def _rows_of_progress(self, labels):
        """All labelled rows and so many others."""
        others = np.flatnonzero(labels < 0)
        rng = np.random.default_rng(self.random_state)
        if len(others) > ROWS_OF_PROGRESS:
            others = rng.choice(others, ROWS_OF_PROGRESS, replace=False)
        return np.sort(np.concatenate([np.flatnonzero(labels >= 0), others]))


def _n_classes(labels):
    return len(np.unique(labels[labels >= 0]))


def _against_half(model, X, y, chunks, seed):
    """What a fit expects of the rows without label, and how many of these half of y changes."""
    others = take_rows(X, y < 0)
    if not n_rows(others):
        return np.nan, np.nan
    P = fit_model(clone(model), X, y, chunks).predict_proba(others)
    found = np.unique(y[y >= 0])[P.argmax(axis=1)]
    rng, labelled = np.random.default_rng(seed), np.flatnonzero(y >= 0)
    changed = []
    for _ in range(HALVES):
        half = y.copy()
        half[rng.choice(labelled, len(labelled) // 2, replace=False)] = -1
        if _n_classes(half) > 1:
            again = fit_model(clone(model), X, half, chunks).predict(others)
            changed.append(np.mean(again != found))
    return float(P.max(axis=1).mean()), float(np.mean(changed)) if changed else np.nan


def _verdict(score, changed):
    if not score.is_better_than_guessing:
        return "labels left out are not found better than by guessing"
    same = f"half of the labels give {100 * (1 - changed):.0f} % of the other rows the same class"
    if np.isnan(changed):
        return "all rows are labelled"
    flat = changed <= FLAT
    return f"more labels will not change much: {same}" if flat else f"more labels help: {same}"


def _agreeing(chunks, labels):
    """The chunks without those whose members have labels of two classes; None where none is."""
    if chunks is None:
        return None
    chunks = np.array(chunks)
    known = (chunks >= 0) & (labels >= 0)
    pairs = np.unique(np.column_stack([chunks[known], labels[known]]), axis=0)
    number, n_classes = np.unique(pairs[:, 0], return_counts=True)
    chunks[np.isin(chunks, number[n_classes > 1])] = -1
    return chunks if np.any(chunks >= 0) else None


def fit_model(model, X, y, chunks=None):
    """A model fitted to labels, -1 or None for rows without, and to chunks where it takes them.

    BSDR learns nothing from rows without a label, and is not shown them.
    """
    if isinstance(model, BSDR):
        labelled = labelled_rows(y, "classes")
        return model.fit(take_rows(X, labelled), y[labelled])
    return model.fit(X, y, **known_to(model, chunks))


def known_to(model, chunks):
    """What a fit is told besides labels: the chunks, where the model takes them."""
    takes = "chunks" in signature(model.fit).parameters
    return {"chunks": chunks} if takes and chunks is not None else {}


def _filled(X):
    """The rows with gaps at their means given the rest of the row."""
    found = filling.learn(X)
    return X if found is None else filling.fill(found, X)


def _placed(fitted, X):
    """Places (n, 2) of the rows on the map, and their covariances (n, 2, 2), zero if not known."""
    if hasattr(fitted, "posterior"):
        mean, covariance = fitted.posterior(X)
    else:
        mean = fitted.transform(X)
        covariance = np.zeros((*mean.shape, mean.shape[1]))
    lacking = 2 - mean.shape[1]
    Z = np.pad(np.asarray(mean, dtype=float), [(0, 0), (0, lacking)])
    return Z, np.pad(np.asarray(covariance, dtype=float), [(0, 0), (0, lacking), (0, lacking)])


def _surprises(said, rows, problem):
    """Labels that held-out fits find improbable, the least probable first."""
    if said is None or said.proba is None:
        return ()
    index = np.concatenate([test for _, test in labelled_splits(problem)])
    own = said.proba[np.arange(len(index)), said.truth]
    found = said.proba.argmax(axis=1)
    names = said.names
    chosen = np.flatnonzero((own < SURPRISING) & (found != said.truth))
    chosen = chosen[np.argsort(own[chosen], kind="stable")]
    return tuple(
        Surprise(
            int(rows[index[i]]), int(names[said.truth[i]]), int(names[found[i]]), float(own[i])
        )
        for i in chosen
    )
