"""Pure noise with random labels: what the automatic choice of supervision makes of it.

Held-out rows must find their class by chance, and the picture of the labelled rows must not draw
the classes apart.

    python benchmarks/supervision_noise.py
"""

import numpy as np

from gnomon import SPPCA
from supervision import draw_labels, error

import measure

CASES = [(20, 2, 5), (20, 5, 5), (20, 10, 2), (300, 2, 20), (300, 5, 5), (300, 10, 5)]
REPEATS = 25


def main():
    measure.write(
        "supervision_noise",
        'Random labels on pure noise, supervision="auto", five components',
        [
            "columns",
            "classes",
            "labels a class",
            "fits with s > 0",
            "held-out accuracy",
            "two standard errors",
            "accuracy among labelled rows",
            "the same with s = 0.9",
            "chance",
        ],
        [row(*case) for case in CASES],
        [
            f"200 rows, {REPEATS} repeats; accuracy of the nearest labelled row, and among "
            "labelled rows of the nearest other one."
        ],
    )


def row(d, n_classes, per_class):
    found = np.array([one(d, n_classes, per_class, seed) for seed in range(REPEATS)])
    mean, spread = found.mean(axis=0), 2 * found.std(axis=0) / np.sqrt(REPEATS)
    values = [f"{mean[0]:.2f}", f"{mean[1]:.3f}", f"{spread[1]:.3f}", f"{mean[2]:.3f}"]
    print(d, n_classes, per_class, *values, flush=True)
    head = [str(d), str(n_classes), str(per_class)]
    return head + values + [f"{mean[3]:.3f}", f"{1 / n_classes:.3f}"]


def one(d, n_classes, per_class, seed):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((200, d)) * np.linspace(3, 1, d)
    y = rng.permutation(np.arange(200) % n_classes)
    labelled = draw_labels(y, per_class, rng)
    codes = np.where(labelled, y, -1)
    auto, strong = SPPCA(5).fit(X, codes), SPPCA(5, supervision=0.9).fit(X, codes)
    T = auto.transform(X)
    near = [among(model.transform(X)[labelled], y[labelled]) for model in (auto, strong)]
    return [auto.supervision_ > 0, 1 - error(T, y, labelled), *near]


def among(T, y):
    D = np.linalg.norm(T[:, None] - T[None], axis=2)
    np.fill_diagonal(D, np.inf)
    return np.mean(y[np.argmin(D, axis=1)] == y)


if __name__ == "__main__":
    main()
