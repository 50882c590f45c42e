"""Labels needed to reach 95 % of the accuracy with all labels, by the rule that asks for them.

    GNOMON_DATA=folder python benchmarks/labelling.py [--others] [--only NAME ...] [--repeats 20]

A set is split at random into a pool of at most 300 rows, which can be labelled, and at most 600
rows on which accuracy is measured. Every contestant starts without labels and asks for them in
batches that grow with what it has (a sixth more, at least one). The bar is 95 % of the accuracy
that SPPCA has with all labels of the pool, the same for all contestants; it is reached where two
evaluations after each other reach it, or at the end of the pool. The curve of a logistic
regression goes on until it has reached 95 % of its own accuracy with all labels too.

The rule and its constants were chosen on other draws (0 to 11) and partly on other sets; these
are draws 100 and after. Results are kept run by run, so that a run that was stopped goes on.
"""

import argparse
import itertools
import json
import warnings
from collections import defaultdict
from typing import NamedTuple

import numpy as np
from scipy import sparse
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.linear_model import LogisticRegression

from gnomon import SPPCA, suggest

import measure

SETS = "digits wine breast usps mfeat isolet tdt2 lung ionosphere pie10".split()
POOL, TEST, SHARE, FIRST_DRAW = 300, 600, 0.95, 100
# Wider rows are seen through so many principal components, by all contestants.
WIDEST = 60
RUNS = measure.RESULTS / "labelling_runs.json"


class Problem(NamedTuple):
    """Rows that can be labelled and rows to measure on."""

    X: np.ndarray
    y: np.ndarray
    X_test: np.ndarray
    y_test: np.ndarray


def draw(name, seed) -> Problem:
    from supervision_sets import read

    X, y, _ = read(name)
    order = np.random.default_rng(seed).permutation(len(y))
    n = min(POOL, int(0.6 * len(y)))
    pool, test = order[:n], order[n : n + TEST]
    A, B = X[pool], X[test]
    if X.shape[1] > WIDEST:
        reduce = TruncatedSVD if sparse.issparse(X) else PCA
        reduce = reduce(WIDEST, random_state=0).fit(A)
        A, B = reduce.transform(A), reduce.transform(B)
    center = A.mean(axis=0)
    length = np.sqrt(np.mean(np.sum((A - center) ** 2, axis=1)))
    return Problem((A - center) / length, y[pool], (B - center) / length, y[test])


class Ours:
    """SPPCA, and the rows that a rule of `gnomon.suggest` takes."""

    def __init__(self, rule):
        self.rule = rule

    def model(self):
        return SPPCA(target="classes", random_state=0)

    def fit(self, problem, labels):
        return self.model().fit(problem.X, labels)

    def ask(self, problem, labels, fitted, n, rng):
        if fitted is None and self.rule in ("margin", "entropy", "density"):
            return rng.choice(np.flatnonzero(labels < 0), n, replace=False)
        fitted = SPPCA(random_state=0).fit(problem.X) if fitted is None else fitted
        found = suggest(fitted, problem.X, labels, n=n, rule=self.rule, random_state=rng)
        return [suggestion.row for suggestion in found]


class Logistic:
    """Logistic regression on the labelled rows, and the rows of smallest margin or at random."""

    def __init__(self, rule="margin"):
        self.rule = rule

    def model(self):
        # On rows of unit length; 1, 10 and 1000 have accuracies of .751, .818 and .834 where 100
        # has .831, on eight sets with 30 and 100 labels of other draws.
        return LogisticRegression(C=100, max_iter=500)

    def fit(self, problem, labels):
        return self.model().fit(problem.X[labels >= 0], labels[labels >= 0])

    def ask(self, problem, labels, fitted, n, rng):
        rows = np.flatnonzero(labels < 0)
        if fitted is None or self.rule == "random":
            return rng.choice(rows, n, replace=False)
        top = np.sort(fitted.predict_proba(problem.X[rows]), axis=1)
        return rows[np.argsort(top[:, -1] - top[:, -2], kind="stable")[:n]]


class ActiveML(Logistic):
    """Logistic regression, and the rows that a strategy of scikit-activeml takes."""

    needs_classes = ("Falcun", "Badge")

    def ask(self, problem, labels, fitted, n, rng):
        import skactiveml.pool
        from skactiveml.classifier import SklearnClassifier

        if fitted is None and self.rule in self.needs_classes:
            return rng.choice(np.flatnonzero(labels < 0), n, replace=False)
        y = np.where(labels < 0, np.nan, labels)
        strategy = getattr(skactiveml.pool, self.rule)(random_state=int(rng.integers(2**31)))
        more = {}
        if self.rule in self.needs_classes:
            more["clf"] = SklearnClassifier(self.model(), classes=fitted.classes_)
        return strategy.query(X=problem.X, y=y, batch_size=n, **more)


MAIN = {
    "representative": Ours("representative"),
    "random": Ours("random"),
    "logistic regression, margin": Logistic("margin"),
    "scikit-activeml TypiClust": ActiveML("TypiClust"),
    "scikit-activeml Falcun": ActiveML("Falcun"),
}
OTHERS = {
    **{rule: Ours(rule) for rule in ("margin", "entropy", "density", "coverage")},
    "logistic regression, random": Logistic("random"),
}


def curve(problem, contestant, bars, rng):
    """Pairs of a number of labels and an accuracy, until all bars are reached."""
    labels, fitted, found = np.full(len(problem.y), -1), None, []
    while (n := int(np.sum(labels >= 0))) < len(labels):
        more = min(max(1, n // 6), len(labels) - n)
        rows = np.asarray(contestant.ask(problem, labels, fitted, more, rng))
        labels[rows] = problem.y[rows]
        if len(np.unique(labels[labels >= 0])) > 1:
            fitted = contestant.fit(problem, labels)
            right = fitted.predict(problem.X_test) == problem.y_test
            found.append((int(np.sum(labels >= 0)), float(right.mean())))
        if len(found) > 1 and min(found[-2][1], found[-1][1]) >= max(bars):
            break
    return found


def needed(found, bar, n) -> int:
    """The first number of labels from which two accuracies after each other reach the bar."""
    for (count, accuracy), (_, after) in itertools.pairwise(found):
        if min(accuracy, after) >= bar:
            return count
    return n


def run(name, seed, contestant, who):
    """What a contestant needs on one draw of a set."""
    problem = draw(name, seed)
    with_all = [
        float(np.mean(judge.fit(problem, problem.y).predict(problem.X_test) == problem.y_test))
        for judge in (Ours("random"), Logistic())
    ]
    own = with_all[isinstance(contestant, Logistic)]
    bars = [SHARE * with_all[0], SHARE * own]
    found = curve(problem, contestant, bars, np.random.default_rng(seed))
    return {
        "set": name,
        "draw": seed,
        "who": who,
        "needed": needed(found, bars[0], len(problem.y)),
        "needed for its own bar": needed(found, bars[1], len(problem.y)),
        "with all labels": round(own, 4),
        "pool": len(problem.y),
    }


def read_runs(path=RUNS):
    return json.loads(path.read_text()) if path.exists() else []


def run_all(contestants, sets, repeats, path=RUNS):
    """Runs that are not in the file yet, draw by draw; the file is written after each."""
    done = {(r["set"], r["draw"], r["who"]) for r in read_runs(path)}
    for seed in range(FIRST_DRAW, FIRST_DRAW + repeats):
        for name in sets:
            for who, contestant in contestants.items():
                if (name, seed, who) not in done:
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        found = run(name, seed, contestant, who)
                    runs = [*read_runs(path), found]
                    lines = ",\n".join(json.dumps(r) for r in runs)
                    path.write_text(f"[\n{lines}\n]\n")


def means(runs, key="needed", draws=None):
    """Mean labels and number of draws by contestant and set, over all draws or those given."""
    found = defaultdict(lambda: defaultdict(list))
    for r in runs:
        if draws is None or (r["set"], r["draw"]) in draws:
            found[r["who"]][r["set"]].append(r[key])
    return {
        who: {name: (np.mean(v), len(v)) for name, v in of.items()} for who, of in found.items()
    }


def report(runs):
    """A table of mean labels by contestant and set, and shares of what random needs."""
    found, own = means(runs), means(runs, "needed for its own bar")
    sets = [name for name in SETS if name in found["random"]]
    rows = []
    for who in (*MAIN, *OTHERS):
        of = found.get(who, {})
        both = [name for name in sets if name in of]
        if not both:
            continue
        # Random rows on the draws that this contestant has ended.
        draws = {(r["set"], r["draw"]) for r in runs if r["who"] == who}
        base = means(runs, draws=draws)["random"]
        ratio = _share(of, base, both)
        rows.append(
            [
                who,
                min(of[name][1] for name in both),
                *(f"{of[name][0]:.1f}" if name in of else "" for name in sets),
                f"{ratio:.2f}",
                f"{_share(own[who], base, both):.2f}",
                f"{max(of[name][0] / base[name][0] for name in both):.2f}",
            ]
        )
    header = ["asked by", "draws", *sets, "of random", "own bar", "worst set"]
    notes = [
        "Mean labels to reach 95 % of the accuracy that SPPCA has with all labels of the pool. "
        "'of random': the mean over sets, as a share of that of random rows with SPPCA; 'own bar': "
        "the same to 95 % of the own accuracy with all labels; 'worst set': the largest share in "
        "a set. Rules with a plain name ask for labels of SPPCA.",
    ]
    measure.write("labelling", "Labels needed, by who asks for them", header, rows, notes)


def _share(of, base, names):
    return sum(of[name][0] for name in names) / sum(base[name][0] for name in names)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--repeats", type=int, default=20)
    parser.add_argument("--others", action="store_true", help="the other rules too")
    parser.add_argument("--only", nargs="*", help="these contestants alone")
    parser.add_argument("--runs", default=RUNS, type=type(RUNS), help="where runs are kept")
    parser.add_argument("--report", action="store_true", help="only write the table")
    chosen = parser.parse_args()
    contestants = MAIN | (OTHERS if chosen.others else {})
    if chosen.only:
        contestants = {who: (MAIN | OTHERS)[who] for who in chosen.only}
    if measure.data_folder() is None:
        return
    if not chosen.report:
        run_all(contestants, SETS, chosen.repeats, chosen.runs)
    report(read_runs(chosen.runs))


if __name__ == "__main__":
    main()
