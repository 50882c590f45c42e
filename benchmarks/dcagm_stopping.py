"""When to stop DCA-GM: what labelled rows that were hidden say of each rule.

Run as ``python -m benchmarks.dcagm_stopping`` with GNOMON_DATA set; writes
results/dcagm_stopping.md. A fifth of the rows is labelled (2 splits); each fourth of these in turn
is hidden, the model is fitted for 60 iterations, and a rule picks the state with the best
objective among the iterations before it stops. The labels of the other rows are never used.
"""

from pathlib import Path

import numpy as np
from benchmarks.dcagm_accuracy import SETS, prepared
from benchmarks.machine import describe
from benchmarks.papers.data import MissingDataError
from sklearn.model_selection import StratifiedKFold, StratifiedShuffleSplit

from gnomon.inference.fixed_point import settled
from gnomon.inference.search import line_search
from gnomon.linalg.data import Matrix
from gnomon.models import dca_gm, dca_gm_problem
from gnomon.models.dca_gm_problem import Problem, owners
from gnomon.stats.mixture import log_joint, log_sum, split_classes

RESULTS = Path(__file__).parent / "results"
SEED, N_ITER, N_SPLITS = 100, 60, 2
LEAST_PROBABILITY = 1e-3
RULES = [("fixed", n) for n in (10, 20, 40, 60)]
RULES += [(tol, patience) for tol in (0.1, 0.03, 0.01, 0.001, 0.0001) for patience in (2, 3, 5)]


def trace(X, codes, hidden, q):
    """Per iteration: objective, log probability and accuracy of hidden rows and labels."""
    n = len(codes)
    owner = owners([2] * (codes.max() + 1))
    varying = np.count_nonzero(np.ptp(X, axis=0))
    problem = Problem(Matrix(X), codes, np.full(n, -1), np.ones(n), owner, q, varying)
    settings = dca_gm.Settings(0.1, 0.01, 0.3, 3.0, 1e-3, q + 2.0, 0.05)
    rows, out = problem.rows, []
    state = dca_gm_problem.start(problem, rows, settings)
    for _ in range(N_ITER):
        seen = judged(state, *hidden)
        state, value = dca_gm.step(state, problem.X, rows, settings, line_search)
        out.append((value, *seen))
    return np.array(out), problem.labelled


def judged(state, X, y):
    """Mean log probability of the labels, from below limited, and accuracy."""
    L, _ = split_classes(state.mixture, log_joint(state.mixture, X @ state.P))
    given = L[y, np.arange(len(y))] - log_sum(L)
    return np.maximum(given, np.log(LEAST_PROBABILITY)).mean(), np.mean(L.argmax(axis=0) == y)


def traces(name):
    """Fits with the other rows as unlabelled ones, and to the labelled rows alone."""
    X, y, q, _ = prepared(name)
    splits = StratifiedShuffleSplit(N_SPLITS, train_size=0.2, random_state=SEED).split(X, y)
    for number, (train, _) in enumerate(splits):
        folds = StratifiedKFold(4, shuffle=True, random_state=number).split(train, y[train])
        for kept, left in folds:
            kept, left = train[kept], train[left]
            codes = np.full(len(y), -1)
            codes[kept] = y[kept]
            yield trace(X, codes, (X[left], y[left]), q)
            yield trace(X[kept], y[kept], (X[left], y[left]), q)


def outcome(rule, values, labelled):
    """Iterations until the rule stops; log probability and accuracy of the state it keeps."""
    history, stop = values[:, 0], len(values)
    if rule[0] == "fixed":
        stop = rule[1]
    else:
        tol, patience = rule
        ends = (
            t for t in range(1, stop + 1) if settled(list(history[:t]), tol * labelled, patience)
        )
        stop = next(ends, stop)
    return stop, *values[np.argmax(history[:stop]), 1:]


def report(runs, names):
    """A line per rule, with its loss to the rule of best log probability."""
    table = {rule: np.array([outcome(rule, *run) for run in runs]) for rule in RULES}
    best = max(table, key=lambda rule: table[rule][:, 1].mean())
    lines = [
        "# When to stop DCA-GM",
        "",
        f"{describe()}; seed {SEED}; {', '.join(names)}; {len(runs)} fits, half of them with "
        "unlabelled rows. Scores are of hidden labels among the labelled rows.",
        "",
        "| rule | iterations | log probability | loss to the best (standard error) | accuracy |",
        "|---|---|---|---|---|",
    ]
    for rule, values in table.items():
        loss = table[best][:, 1] - values[:, 1]
        error = loss.std(ddof=1) / np.sqrt(len(loss))
        text = f"{rule[1]} iterations" if rule[0] == "fixed" else f"tol {rule[0]:g} in {rule[1]}"
        steps, score, right = values.mean(axis=0)
        lost = f"{loss.mean():.3f} ({error:.3f})"
        lines.append(f"| {text} | {steps:.1f} | {score:.3f} | {lost} | {right:.3f} |")
    lines += [
        "",
        "A rule ``tol t in p`` stops when the best objective has risen by less than t per",
    ]
    lines += ["labelled row in p iterations; the state with the best objective is kept."]
    return "\n".join(lines) + "\n"


def main():
    runs, names = [], []
    for name in SETS[:5]:
        try:
            runs += list(traces(name))
            names.append(name)
            print(name, len(runs), flush=True)
        except MissingDataError as error:
            print(f"{name} skipped: {error}")
    if runs:
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / "dcagm_stopping.md").write_text(report(runs, names))
        print(report(runs, names))


if __name__ == "__main__":
    main()
