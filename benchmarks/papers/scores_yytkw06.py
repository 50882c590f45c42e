"""How [YYTKW06] scores a projection: 1-NN error, or a linear SVM for each label."""

import numpy as np
from scipy import sparse
from scipy.stats import rankdata
from sklearn.neighbors import KNeighborsClassifier
from sklearn.svm import SVC


def neighbour_error(Z, given):
    known, classes = given.known, given.truth
    model = KNeighborsClassifier(1, algorithm="brute").fit(Z[known], classes[known])
    return {"error": float(np.mean(model.predict(Z[~known]) != classes[~known]))}


def svm_scores(Z, given, *, by_share=False, **settings):
    """F1 and AUC over labels, of a linear SVM on each label.

    The AUC is of the predicted signs, which the size of the paper's figures points to; that of
    the decision values is given as well. With `by_share` a label is given to as large a share of
    the test rows as have it among the rows shown.
    """
    Y, known = given.truth, given.known
    used = Y[known].any(axis=0) & ~Y[known].all(axis=0) & Y[~known].any(axis=0)
    shown, truth = Y[known][:, used], Y[~known][:, used] > 0
    decision = decisions(Z[known], shown, Z[~known], **settings)
    if by_share:
        pairs = zip(decision.T, shown.mean(axis=0), strict=True)
        decision = decision - np.array([np.quantile(d, 1 - share) for d, share in pairs])
    guess = decision > 0
    hits, said, are = (np.sum(part, axis=0) for part in (guess & truth, guess, truth))
    false = said - hits
    return {
        "F1 macro": float(np.mean(2 * hits / (said + are))),
        "F1 micro": float(2 * hits.sum() / (said + are).sum()),
        # The area under the two corners of a sign: the mean of both rates that are right.
        "AUC": float(np.mean(hits / are + 1 - false / (len(truth) - are)) / 2),
        "AUC of values": float(
            np.mean([ranked(d, t) for d, t in zip(decision.T, truth.T, strict=True)])
        ),
    }


def decisions(Z, Y, Z_test, *, C=100, class_weight=None):
    """Decision values of a linear SVM with hinge loss for each label, by its weights."""
    # A cap on the steps: a few labels have rows that no plane tells apart.
    settings = {"C": C, "class_weight": class_weight, "max_iter": 100_000}
    models = [SVC(kernel="linear", **settings).fit(Z, y) for y in Y.T]
    values = [Z_test @ model.coef_.T for model in models]
    columns = [v.toarray() if sparse.issparse(v) else v for v in values]
    return np.hstack(columns) + np.hstack([model.intercept_ for model in models])


def ranked(values, truth):
    """Area under the curve of one label, by ranks."""
    n = truth.sum()
    return (rankdata(values)[truth].sum() - n * (n + 1) / 2) / (n * (len(truth) - n))
