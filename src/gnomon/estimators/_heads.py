"""How classes are told on a map: by a head, by the model itself, and how far each is believed.

A head is a logistic regression on the coordinates of labelled rows. Probabilities are the mean of
its own and of those of the model: each is too sure where the other is not, and with few labels the
mean has the lower log loss (`benchmarks/calibration.py`). A little of them is the shares of the
classes among the labelled rows, nearly all where the map says nothing of the classes.
"""

import warnings
from typing import NamedTuple

import numpy as np
from scipy.optimize import brentq
from scipy.special import entr, softmax
from sklearn.linear_model import LogisticRegression

from gnomon.estimators._targets import contrasts
from gnomon.estimators.selection import stratified_folds
from gnomon.linalg.data import as_data
from gnomon.linalg.solve import gaussian_log_odds, one_thread, ranks_of_rows
from gnomon.linalg.standardize import standardize
from gnomon.models.logistic import left_out_odds
from gnomon.models.sppca.fit import Prediction
from gnomon.models.strength.completion import Outputs, log_losses
from gnomon.models.strength.left_out import MOST_JUDGING, finds_classes, judging_rows

# Labelled rows that a head learns from: some hundred coefficients are certain long before.
MOST_TAUGHT = 5000
# Inverse penalty of a head, on coordinates whose mean squared length is one. Rows left out say how
# sure it may be, so that this matters little: log loss on rows not seen is .625, with 10 it is .623
# and with 1000 .625 (benchmarks/calibration.py --heads).
HEAD_C = 100.0
# The same for content smoothed over links, which has hundreds of columns that say much the same:
# from all of them alike to the few that part classes. Their mean has a log loss of 1.02 on two
# graphs with 20 labels a class, the one that rows left out prefer 1.04, at the same accuracy.
# Each has the factor of its log odds that rows left out prefer.
LINKED_C, SHARPER = (0.3, 1.0, 3.0, 10.0, 30.0), 2.0 ** np.arange(-2, 3.5, 0.5)
N_FOLDS = 5
# Labels a class with which a head of linked rows has half a say, as its error falls with them and
# that of the model, which unlabelled rows help, hardly does: of eight says on six graphs the least
# log loss has .5 with 2 labels, .6 with 5, .7 with 10 and .8 with 20, the best accuracy 1 with 20.
WORTH_OF_UNLABELLED = 2.0
# Factors of the log odds that are tried for a map that was fitted to few labels.
LESS_SHARP = 2.0 ** np.arange(0, -6.5, -0.5)
# Power of the factor that makes labelled rows as unsure as those left out. Where classes overlap,
# planted and in tables, log loss falls with it from .97 to .96 (SPPCA) and 1.04 to 1.00
# (KernelSPPCA; `benchmarks/overlap.py`). With .5 it fell by .005 and .017 more, and rose by .009 on
# ten sets of faces, texts, images and genes, where with .25 it stays.
OF_LEFT_OUT = 0.25
# Labelled rows that the shares of the classes count as in probabilities: with none, a handful of
# labels is surer than a uniform guess is right in some tasks (benchmarks/calibration.py --doubt).
WORTH_OF_SHARES = 0.5
# Share of the class shares in probabilities where rows left out are not found: what the map says
# then only breaks ties, and costs a thousandth of a nat at most.
NOTHING_FOUND = 0.999


class ClassHead(NamedTuple):
    """Logistic regression of classes: log odds X @ coef + intercept, of rows or of a kernel.

    ``say`` is its share of the probabilities, where the model has the rest.
    """

    coef: np.ndarray
    intercept: np.ndarray
    say: float = 0.5


@one_thread
def fit_head(Z, labels, weights=None, C=HEAD_C) -> ClassHead:
    """The head of a map, from the coordinates (n, q) of labelled rows and their class numbers."""
    Z = np.asarray(Z, dtype=float)
    center = np.average(Z, axis=0, weights=weights)
    squares = np.sum((Z - center) ** 2, axis=1)
    length = np.sqrt(np.average(squares, weights=weights)) or 1.0
    model = LogisticRegression(C=C, max_iter=1000)
    with warnings.catch_warnings():
        # That classes are many for the rows is no sign of numbers here.
        warnings.filterwarnings("ignore", "The number of unique classes", UserWarning)
        model.fit((Z - center) / length, labels, sample_weight=weights)
    coef, intercept = model.coef_.T / length, model.intercept_
    if coef.shape[1] == 1:
        coef, intercept = coef * [0.0, 1.0], intercept * [0.0, 1.0]
    return ClassHead(coef, intercept - center @ coef)


def fit_map_head(Z, labels, weights=None) -> ClassHead:
    """The head of a map, no sharper than where it finds rows left out as well as class shares do.

    Of many rows one fold shows it.
    """
    head, folds = fit_head(Z, labels, weights), head_folds(Z, labels, weights)
    if not folds:
        return head
    folds = folds if len(labels) <= MOST_JUDGING else folds[:1]
    odds, rows = _left_out_odds(Z, labels, weights, folds, head, HEAD_C)
    shares = class_shares(labels, weights, labels.max() + 1)[0]
    own = None if weights is None else weights[rows]
    factor = no_worse_than_shares(odds, labels[rows], shares, own)
    return blunted(head, factor, shares)


def head_folds(Z, labels, weights=None) -> list:
    """Rows of each fold by their distance from the mean; none unless two classes have several.

    So the order of rows says nothing, and equal ones share a fold: a row that is repeated, or that
    has a weight, is never left out from itself.
    """
    center = np.average(Z, axis=0, weights=weights)
    ranks = ranks_of_rows(np.sum((Z - center) ** 2, axis=1))
    distinct = np.unique(np.column_stack([labels, ranks]), axis=0)[:, 0]
    if np.sum(np.bincount(distinct) > 1) < 2:
        return []
    return stratified_folds(labels, N_FOLDS, ranks)


def no_worse_than_shares(odds, labels, shares, weights=None) -> float:
    """The largest factor with which log odds of rows left out have at most the loss of the shares.

    0 where none of them has. A class that the other rows did not show cannot be judged.
    """
    judged = np.isfinite(odds[np.arange(len(labels)), labels])
    odds, labels = odds[judged], labels[judged]
    weights = np.ones(len(labels)) if weights is None else weights[judged]
    of_shares = -weights @ np.log(shares)[labels]
    for factor in LESS_SHARP:
        if weights @ log_losses(less_sharp(odds, factor, shares), labels) <= of_shares:
            return float(factor)
    return 0.0


def blunted(head: ClassHead, factor, shares) -> ClassHead:
    """The head with its log odds less sharp."""
    return head._replace(
        coef=factor * head.coef, intercept=less_sharp(head.intercept, factor, shares)
    )


def fit_linked_head(Z, labels, weights=None) -> ClassHead:
    """A head on many columns: the mean of those of several penalties, each as sharp as it may be.

    How sharp, rows left out say. It has the more to say the more labels a class has.
    """
    folds = head_folds(Z, labels, weights)
    if not folds:
        return fit_head(Z, labels, weights)
    (Z, V), heads, left_out = _in_row_space(Z), [], []
    for C in LINKED_C:
        head = fit_head(Z, labels, weights, C)
        odds, rows = _left_out_odds(Z, labels, weights, folds, head, C)
        own = None if weights is None else weights[rows]
        losses = log_losses(SHARPER[:, None, None] * odds, labels[rows])
        sharper = SHARPER[np.argmin(np.average(losses, axis=1, weights=own))]
        heads.append(sharper * np.vstack([head.coef, head.intercept]))
        left_out.append(sharper * odds)
    mean, shares = np.mean(heads, axis=0), class_shares(labels, weights, labels.max() + 1)[0]
    factor = no_worse_than_shares(np.mean(left_out, axis=0), labels[rows], shares, own)
    return blunted(ClassHead(V @ mean[:-1], mean[-1], growing_say(labels)), factor, shares)


def _in_row_space(Z):
    """Rows Z = T V' by at most as many columns T as rows, which a ridge cannot tell apart."""
    if Z.shape[0] >= Z.shape[1]:
        return Z, np.eye(Z.shape[1])
    U, lengths, Vt = np.linalg.svd(Z, full_matrices=False)
    return U * lengths, Vt.T


def growing_say(labels) -> float:
    """Share of a head in the probabilities, the larger the more labels a class has."""
    counts = np.bincount(labels)
    per_class = counts[counts > 0].mean()
    return float(per_class / (per_class + WORTH_OF_UNLABELLED))


def _left_out_odds(Z, labels, weights, folds, head, C):
    """Log odds of the rows of the folds, each of which is left out, and their numbers."""
    odds = left_out_odds(Z, labels, weights, folds, (head.coef, head.intercept), C)
    rows = np.concatenate(folds)
    return odds[rows], rows


def with_head(odds, head_odds, say=0.5) -> np.ndarray:
    """A model's own probabilities with those of its head, None for none."""
    proba = softmax(odds, axis=1)
    return proba if head_odds is None else (1 - say) * proba + say * softmax(head_odds, axis=1)


def less_sharp(odds, factor, shares) -> np.ndarray:
    """Log odds of which that beyond the shares of the classes is multiplied by a factor.

    Log loss is convex in the factor, and with 0 that of the shares: where it is no higher with
    some factor, it is so with every smaller one.
    """
    return np.log(shares) + factor * (odds - np.log(shares))


def no_surer_than(loss, odds, head_odds, shares, say=0.5, weights=None) -> float:
    """Factor of the log odds of labelled rows that makes these less sure of their classes.

    A fit is surer of the rows that it learnt from than of others, all the more where classes
    overlap. Of probabilities that hold, the mean entropy is the mean log loss: the factor that
    brings it to the loss of labels left out is too small for the fit that knows them all, and
    its power `OF_LEFT_OUT` is taken.
    """

    def too_sure(factor):
        less = [less_sharp(values, factor, shares) for values in (odds, head_odds)]
        proba = with_head(less[0], less[1], say)
        return loss - np.average(entr(proba).sum(axis=1), weights=weights)

    least = LESS_SHARP[-1]
    if too_sure(1.0) <= 0:
        return 1.0
    factor = least if too_sure(least) >= 0 else brentq(too_sure, least, 1.0, rtol=1e-3)
    return float(factor**OF_LEFT_OUT)


def less_sure(head: ClassHead, Z, mean, outputs: Prediction, shares, weights):
    """The head with the factor of `no_surer_than`, and that factor.

    ``Z`` are coordinates of labelled rows, ``mean`` what the model predicts of their outputs.
    """
    odds = gaussian_log_odds(mean, outputs.covariance, contrasts(len(shares))) + np.log(shares)
    head_odds = Z @ head.coef + head.intercept
    factor = no_surer_than(outputs.left_out_loss, odds, head_odds, shares, head.say, weights)
    return blunted(head, factor, shares), factor


class Belief(NamedTuple):
    """What log odds are multiplied by to be believed, and whether they say anything at all."""

    sharpness: float = 1.0
    finds: bool = True


def believed(folds, shares, doubt, say=0.5) -> Belief:
    """How far a map that was fitted to few labels may be believed, by fits without some of them.

    The factor of least loss on hidden labels is too small for the fit that knows them all:
    half-way is taken, the best of its powers 1, .7 and .5 (log loss .95; 1.05 without a factor), or
    as far as hidden labels have no higher loss than by the shares of the classes alone.
    Nothing is found where they have that with no factor, and where the least one is best and the
    most frequent class is as often right.
    """
    if not folds:
        return Belief()
    odds = np.concatenate([fold.odds for fold in folds]), _hidden_head_odds(folds)
    labels = np.concatenate([fold.hidden_labels for fold in folds])
    weights = np.concatenate([fold.hidden_weights for fold in folds])
    rows = np.arange(len(labels))

    def chances(factor):
        return doubted(with_head(factor * odds[0], factor * odds[1], say), shares, doubt)

    def loss(factor):
        return -weights @ np.log(chances(factor)[rows, labels])

    best = min(LESS_SHARP, key=loss)
    hits = weights @ (chances(best).argmax(axis=1) == labels) / weights.sum()
    of_shares = -weights @ np.log(shares[labels])
    tried = np.sqrt(best), *LESS_SHARP[(LESS_SHARP < np.sqrt(best)) & (LESS_SHARP >= best)]
    factor = next((f for f in tried if loss(f) <= of_shares), None)
    finds = factor is not None and (best > LESS_SHARP[-1] or hits > shares.max())
    return Belief(float(factor or best), bool(finds))


class Telling(NamedTuple):
    """How classes are told on a map: its head and what it may be believed, the classes' shares."""

    head: ClassHead | None
    sharpness: float
    shares: np.ndarray
    doubt: float


@one_thread
def learn_telling(Z, taught, labels, weights, evidence, say=0.5) -> Telling:
    """The head of a map from the coordinates of the rows ``taught``, None where it finds nothing.

    ``evidence`` are fits without some labels, and whether x says anything of the classes at all;
    ``say`` is the share of the head in the probabilities.
    """
    held_out, says_something = evidence
    counted = class_shares(labels, weights, labels.max() + 1)
    sharpness, finds = believed(held_out, *counted, say)
    if not (finds and says_something):
        return Telling(None, sharpness, counted[0], NOTHING_FOUND)
    head = fit_head(Z, labels[taught], weights[taught])
    return Telling(head._replace(say=say), sharpness, *counted)


def told(telling: Telling, odds, Z) -> np.ndarray:
    """Probabilities of classes from the model's log odds and from the coordinates of rows."""
    head, factor = telling.head, telling.sharpness
    if head is None:
        proba = with_head(factor * odds, None)
    else:
        proba = with_head(factor * odds, factor * (Z @ head.coef + head.intercept), head.say)
    return doubted(proba, telling.shares, telling.doubt)


@one_thread
def says_something(X, labels, weights, by_column) -> bool:
    """Whether x says anything of the classes, as some labelled rows that are left out show."""
    rows = judging_rows(labels)
    if not len(rows):
        return True
    own = weights[rows]
    K = standardize(as_data(X).rows(rows), own, by_column=by_column).data
    numbers = np.unique(labels[rows], return_inverse=True)[1]
    Y = contrasts(numbers.max() + 1)[numbers]
    known = Outputs(Y, np.ones(Y.shape, dtype=bool), numbers)
    return finds_classes(K.dual_gram(), known, own)


def _hidden_head_odds(folds):
    """Log odds of hidden labels by heads that were taught by the others."""
    heads = (fit_head(fold.Z, fold.labels, fold.weights) for fold in folds)
    parts = zip(folds, heads, strict=True)
    return np.concatenate([fold.hidden_Z @ head.coef + head.intercept for fold, head in parts])


def class_shares(labels, weights, n_classes) -> tuple[np.ndarray, float]:
    """Shares of the classes among labelled rows, and that of these in what is said of a row."""
    known = labels >= 0
    counts = np.bincount(labels[known], None if weights is None else weights[known], n_classes)
    return counts / counts.sum(), share_of_shares(counts.sum())


def share_of_shares(weight) -> float:
    """How much of probabilities is the shares of the classes, where so many rows are labelled."""
    return float(WORTH_OF_SHARES / (WORTH_OF_SHARES + weight))


def doubted(proba, shares, doubt):
    """Probabilities that are those of the classes, whatever the row, for a share of ``doubt``."""
    return (1 - doubt) * proba + doubt * shares


def taught_rows(labels) -> np.ndarray:
    """Labelled rows for a head, evenly taken of each class where there are many."""
    rows = np.flatnonzero(labels >= 0)
    rows = rows[np.argsort(labels[rows], kind="stable")]
    place_in_class = np.arange(len(rows)) - np.searchsorted(labels[rows], labels[rows])
    return np.sort(rows[place_in_class % (1 + len(rows) // MOST_TAUGHT) == 0])
