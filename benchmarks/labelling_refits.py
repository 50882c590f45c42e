"""How long a label takes to move the map, and how many rows it moves.

    python benchmarks/labelling_refits.py

Times are those of `Learner.update`: refit, places with their uncertainty, probabilities, the next
rows; of several updates, each with one more label, on one thread. CPU time is what a core that has
nothing else to do would take; the clock's time is that of the machine as it was. Rows are of six
classes, about as far apart as their own spread. A row has moved where it lies, once the map is
turned to fit the last one, farther from where it was than its own uncertainty (the root of the sum
of its variances).
"""

import os
import time

import numpy as np
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.preprocessing import StandardScaler

from gnomon.tools.label.learning import Learner

import measure

SIZES = [(2000, 60, 100), (50_000, 100, 2000)]
LABELS, REPEATS, SESSION = (12, 60, 200), 9, 60


def planted(n, d, n_classes=6, seed=0):
    rng = np.random.default_rng(seed)
    means, y = 0.8 * rng.standard_normal((n_classes, d)), rng.integers(n_classes, size=n)
    mix = rng.standard_normal((d, d)) / np.sqrt(d)
    return means[y] + rng.standard_normal((n, d)) @ mix, y


def times(n, d):
    """Milliseconds of an update with so many labels: of the CPU, least and median; of the clock."""
    X, y = planted(n, d)
    order, learner = np.random.default_rng(1).permutation(n), Learner(X, list("abcdef"))
    for count in LABELS:
        taken = []
        for more in range(REPEATS):
            rows = order[: count + more]
            labels = np.full(n, -1)
            labels[rows] = y[rows]
            start = time.process_time(), time.perf_counter()
            learner.update(labels)
            taken.append((time.process_time() - start[0], time.perf_counter() - start[1]))
        cpu, clock = 1000 * np.array(taken).T
        yield count, cpu.min(), np.median(cpu), clock.min()


def moved(X, y, warm):
    """Mean share of the rows that a label moves: of the first, the second, the third twenty."""
    learner = Learner(X, [str(c) for c in np.unique(y)])
    labels, shares = np.full(len(y), -1), []
    for _ in range(SESSION):
        if not warm and learner.fitted is not None and hasattr(learner.fitted, "warm_start"):
            learner.fitted.set_params(warm_start=False)
        state = learner.update(labels)
        shares.append(state.n_moved)
        row = state.queue[0].row
        labels[row] = y[row]
    right = state.probabilities.argmax(axis=1)[labels < 0] == y[labels < 0]
    return [float(np.mean(part)) for part in np.split(np.array(shares), 3)], float(right.mean())


def main():
    rows = [
        [f"{n:,} x {d}", count, *(f"{value:.0f}" for value in taken), asked]
        for n, d, asked in SIZES
        for count, *taken in times(n, d)
    ]
    header = ["rows x columns", "labels", "least CPU ms", "median CPU ms", "least ms", "asked ms"]
    title = "Milliseconds from a label to the next map"
    busy = f"While it ran, {os.getloadavg()[0]:.0f} processes wanted the machine's cores."
    measure.write("labelling_refits", title, header, rows, [busy])
    rows = []
    for load in (load_digits, load_wine, load_breast_cancer):
        X, y = load(return_X_y=True)
        X = StandardScaler().fit_transform(X)[:800]
        y = y[:800]
        for warm in (True, False):
            shares, accuracy = moved(X, y, warm)
            name = load.__name__.removeprefix("load_")
            start = "kept" if warm else "chosen anew"
            rows.append([name, start, *(f"{share:.2f}" for share in shares), f"{accuracy:.3f}"])
    header = ["set", "strength", "labels 1-20", "21-40", "41-60", "accuracy of the others"]
    title = "Share of the rows that a label moves by more than their own uncertainty"
    measure.write("labelling_moves", title, header, rows)


if __name__ == "__main__":
    main()
