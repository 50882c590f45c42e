"""Does gnomon.compare keep what it promises? Optimism, regret and coverage on rows never shown.

Each comparison sees a small table with few labels. The model it recommends is fitted to the same
labels and scored on many other rows: that is the truth. Against it stand the figure that compare
prints, its interval, what KernelSPPCA always taken would have reached, the best in hindsight, and
the choice by the best score alone.

    python benchmarks/compare_honest.py --repeats 5

The sets of GNOMON_DATA take part where it is set, UMAP where it is installed.
"""

import argparse
import json
import time

import numpy as np
from sklearn import datasets

import gnomon
from gnomon.tools.compare.candidates import choose, make_pipeline_for
from gnomon.tools.compare.scoring import predict, read_problem

from measure import RESULTS, data_folder, machine

BUNDLED = ("iris", "wine", "breast_cancer", "digits")
OTHERS = ("usps", "vowel_vj", "ionosphere")
LABELS = (5, 15)
# Rows that a comparison sees, and those that stand for all others.
SHOWN, UNSEEN = 120, 600


def read(name):
    if name in BUNDLED:
        return getattr(datasets, f"load_{name}")(return_X_y=True)
    from load import load  # of the folder GNOMON_DATA

    found = load(name)
    return found["X"], found["y"]


def task(name, labels, seed):
    """A table with few labels, and other rows with their classes."""
    X, y = read(name)
    rng = np.random.default_rng(seed)
    rows = rng.permutation(len(y))
    X, y = X[rows], np.unique(y, return_inverse=True)[1][rows]
    known = np.concatenate([np.flatnonzero(y == c)[:labels] for c in range(y.max() + 1)])
    others = np.setdiff1d(np.arange(len(y)), known)
    filling = others[: max(0, SHOWN - len(known))]
    shown = np.concatenate([known, filling])
    kept = X[shown].std(axis=0) > 0
    given = np.concatenate([y[known], np.full(len(filling), -1)])
    return X[np.ix_(shown, kept)], given, X[np.ix_(others[:UNSEEN], kept)], y[others[:UNSEEN]]


def truth_of(problem, candidate, size, X_new, y_new):
    """Accuracy of the nearest labelled row on the map, on rows that were never shown."""
    pipeline = make_pipeline_for(candidate, problem, size, problem.labelled)
    nearest = {"model__links": "neighbours"} if candidate.by_neighbours else {}
    pipeline.fit(problem.X, problem.y if candidate.learns else None, **nearest)
    known = problem.labelled
    Z, Z_new = pipeline.transform(problem.X[known]), pipeline.transform(X_new)
    found = predict("nearest", "classes", np.asarray(Z), problem.y[known], np.asarray(Z_new))
    return float(np.mean(found == y_new))


def judge(name, labels, seed):
    X, y, X_new, y_new = task(name, labels, seed)
    start = time.process_time()
    result = gnomon.compare(X, y, random_state=seed, progress=False)
    seconds = time.process_time() - start
    problem = read_problem(X, y)
    candidates = {c.name: c for c in choose(problem, None)[0]}
    chosen = [row for row in result.rows if row.chosen]
    truth = {
        row.model: truth_of(problem, candidates[row.model], row.n_components, X_new, y_new)
        for row in chosen
    }
    value, low, high = result.expected
    best = max(chosen, key=lambda row: row.score)
    return {
        "set": name,
        "labels a class": labels,
        "seed": seed,
        "labelled rows": result.leader.n_rows,
        "leader": result.leader.model,
        "q": result.leader.n_components,
        "score": result.leader.score,
        "printed": value,
        "low": low,
        "high": high,
        "truth": truth[result.leader.model],
        "truth of KernelSPPCA": truth["KernelSPPCA"],
        "truth of the best score": truth[best.model],
        "truth of the best in hindsight": max(truth.values()),
        "marks": [row.mark for row in chosen[1:]],
        "seconds": seconds,
    }


def summary(found):
    def mean(of):
        return round(float(np.mean([of(r) for r in found])), 4)

    marks = [mark for r in found for mark in r["marks"]]
    return {
        "comparisons": len(found),
        "repeats": len({r["seed"] for r in found}),
        "truth of the recommended": mean(lambda r: r["truth"]),
        "truth of KernelSPPCA": mean(lambda r: r["truth of KernelSPPCA"]),
        "truth of the best score": mean(lambda r: r["truth of the best score"]),
        "truth of the best in hindsight": mean(lambda r: r["truth of the best in hindsight"]),
        "optimism of what is printed": mean(lambda r: r["printed"] - r["truth"]),
        "optimism of the score": mean(lambda r: r["score"] - r["truth"]),
        "coverage of the 95 % interval": mean(lambda r: r["low"] <= r["truth"] <= r["high"]),
        "truth below the interval": mean(lambda r: r["truth"] < r["low"]),
        "share of marks": {m: round(marks.count(m) / len(marks), 3) for m in sorted(set(marks))},
        "seconds of CPU a comparison": mean(lambda r: r["seconds"]),
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--first", type=int, default=10, help="seed of the first repeat")
    options = parser.parse_args()
    names = BUNDLED + (OTHERS if data_folder() else ())
    found = []
    for seed in range(options.first, options.first + options.repeats):
        for name in names:
            for labels in LABELS:
                found.append(judge(name, labels, seed))
                print({k: v for k, v in found[-1].items() if k != "marks"}, flush=True)
        # After each repeat, so that a run that is stopped has the others.
        record = {"machine": machine(), "summary": summary(found), "comparisons": found}
        (RESULTS / "compare_honest.json").write_text(json.dumps(record, indent=1) + "\n")
    print(record["summary"])


if __name__ == "__main__":
    main()
