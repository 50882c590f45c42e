"""Whether the progress of a labelling session is told as it is.

    GNOMON_DATA=folder python benchmarks/labelling_progress.py

Labels are asked for as the labelling page does (`Learner`), in batches of a quarter of what there
is. At 20, 40, 80 and 160 labels the figures of `Learner.progress` stand beside the truth: the
accuracy on rows that were never in the session, and what all labels of the pool would add to it.
"""

import warnings

import numpy as np

from gnomon.tools.label.learning import Learner
from labelling import draw

import measure

SETS = "digits wine breast usps vowel ionosphere mfeat lung".split()
DRAWS, COUNTS = (200, 201), (20, 40, 80, 160)


def session(name, seed):
    """Progress and truth at each number of labels."""
    problem = draw(name, seed)
    classes = [str(c) for c in range(problem.y.max() + 1)]
    learner, labels = Learner(problem.X, classes), np.full(len(problem.y), -1)
    best = _accuracy(Learner(problem.X, classes), problem.y, problem)
    state = learner.update(labels)
    for count in COUNTS:
        if count > 0.8 * len(labels):
            break
        while (n := int(np.sum(labels >= 0))) < count:
            more = min(max(1, n // 4), count - n)
            rows = [suggestion.row for suggestion in state.queue[:more]]
            labels[rows] = problem.y[rows]
            state = learner.update(labels)
        truth = _accuracy(learner, labels, problem)
        yield count, learner.progress(labels), truth, best - truth


def _accuracy(learner, labels, problem):
    learner.update(labels)
    return float(np.mean(learner.fitted.predict(problem.X_test) == problem.y_test))


def main():
    if measure.data_folder() is None:
        return
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in SETS:
            for seed in DRAWS:
                for count, progress, truth, gain in session(name, seed):
                    found.append((count, progress, truth, gain))
                    print(name, seed, count, progress[1:8], truth, gain, flush=True)
    rows = []
    for count in COUNTS:
        own = [(p, truth, gain) for n, p, truth, gain in found if n == count]
        rows.append([count, len(own), *_summary(own)])
    header = [
        "labels",
        "sessions",
        "accuracy",
        "by cross-validation",
        "expected",
        "permuted labels",
        "said to be flat",
        "all labels would add",
        "where flat",
        "at most",
    ]
    notes = [
        "Means over sessions. 'accuracy' is the truth, on rows that were not in the session; "
        "cross-validation scores the rows that were asked for because they are hard; 'expected' is "
        "what the model expects of the rows without label.",
    ]
    measure.write(
        "labelling_progress", "What a labelling session says of itself", header, rows, notes
    )


def _summary(own):
    flat = [gain for p, _, gain in own if p.is_flat]
    return [
        f"{np.mean([truth for _, truth, _ in own]):.3f}",
        f"{np.mean([p.accuracy for p, _, _ in own]):.3f}",
        f"{np.mean([p.expected for p, _, _ in own]):.3f}",
        f"{np.mean([p.permuted for p, _, _ in own]):.3f}",
        len(flat),
        f"{np.mean([gain for _, _, gain in own]):.3f}",
        f"{np.mean(flat):.3f}" if flat else "",
        f"{np.max(flat):.3f}" if flat else "",
    ]


if __name__ == "__main__":
    main()
