"""How wide the kernel of a strength is: as wide as the rows are apart, or wider.

    k(a, b)^f     the kernel that is 1/f as wide, in squared (rbf) or absolute (laplacian) distance

Few labels in many columns are told apart by what is nearly linear, as faces are: a narrow kernel
then knows little beyond the labelled rows themselves. Widths are judged by the kernel of the
labelled rows alone, each of them left out, and the usual one stays unless another is clearly
better.
"""

import numpy as np

from gnomon.models.strength.completion import Outputs
from gnomon.models.strength.left_out import clearly_best

# Kernels whose powers are the same kernel of another width.
OF_KERNELS = ("rbf", "laplacian")
# Powers of the kernel: from that as wide as the rows are apart to one that is nearly linear. On
# 22 tasks predictions have a log loss of .623 in the place of .742 (benchmarks/calibration.py).
POWERS = (1.0, 1 / 3, 1 / 10, 1 / 30)
# Labelled rows that judge: their kernel is decomposed for each width.
MOST_JUDGING = 500


def judging_rows(labels) -> np.ndarray:
    """Numbers of the labelled rows that judge; none where fewer than two classes have two."""
    rows = np.flatnonzero(labels >= 0)
    rows = rows[:: 1 + max(len(rows) - 1, 0) // MOST_JUDGING]
    return rows if np.sum(np.bincount(labels[rows], minlength=2) > 1) > 1 else rows[:0]


def best_power(K, known: Outputs, weights) -> float:
    """The power of the kernel K (m, m) of labelled rows that finds their classes best."""
    return POWERS[clearly_best([_coordinates(K**power) for power in POWERS], known, weights)]


def _coordinates(K):
    """Rows (m, m) whose products are the kernel."""
    values, U = np.linalg.eigh((K + K.T) / 2)
    return U * np.sqrt(np.maximum(values, 0.0))
