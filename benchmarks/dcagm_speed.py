"""Time and memory of DCAGM against NCA and LDA, each fit in a process of its own.

Run as ``python -m benchmarks.dcagm_speed [rows for NCA]``; writes results/dcagm_speed.md. NCA is
given five iterations, DCAGM a whole fit. The rows for NCA are 20,000 unless said otherwise;
it needs about 13 GB there, so a machine with less must take fewer.
"""

import json
import resource
import subprocess
import sys
import time
import warnings
from pathlib import Path

import numpy as np
from benchmarks.measure import describe
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.exceptions import ConvergenceWarning
from sklearn.neighbors import NeighborhoodComponentsAnalysis

from gnomon import DCAGM

RESULTS = Path(__file__).parent / "results"
SEED, FEATURES, CLASSES = 0, 50, 5
METHODS = {
    "NCA": lambda: NeighborhoodComponentsAnalysis(2, max_iter=5, random_state=0),
    "LDA": lambda: LinearDiscriminantAnalysis(),
    "DCAGM": lambda: DCAGM(2),
    "DCAGM batches": lambda: DCAGM(2, batch_size=10_000, random_state=0),
}


def sample(n):
    """Two clusters per class in four of fifty directions."""
    rng = np.random.default_rng(SEED)
    y = rng.integers(CLASSES, size=n)
    X = rng.standard_normal((n, FEATURES))
    X[:, :4] += 2.5 * rng.standard_normal((2, CLASSES, 4))[rng.integers(2, size=n), y]
    return X, y


def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(method, n):
    """Fit in this process; CPU and wall seconds, and the peak of memory above the data."""
    warnings.simplefilter("ignore", ConvergenceWarning)
    X, y = sample(n)
    model, before = METHODS[method](), peak()
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    return {"cpu": cpu, "wall": wall, "extra": peak() - before, "peak": peak()}


def in_process(method, n):
    command = [sys.executable, "-m", "benchmarks.dcagm_speed", "--one", method, str(n)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    result = json.loads(done.stdout.splitlines()[-1])
    print(method, n, {key: round(value, 2) for key, value in result.items()}, flush=True)
    return result


def report(rows, nca_rows):
    by_key = {(method, n): r for method, n, r in rows}
    ours, nca = by_key["DCAGM", nca_rows], by_key["NCA", nca_rows]
    small, large = by_key["DCAGM", 20_000], by_key["DCAGM", 160_000]
    million, lda = by_key["DCAGM", 1_000_000], by_key["LDA", 1_000_000]
    batches = by_key["DCAGM batches", 1_000_000]
    lines = ["# Time and memory of DCAGM", "", f"{describe()}; seed {SEED}.", ""]
    lines += [f"{FEATURES} features, {CLASSES} classes, q = 2; each fit in its own process.", ""]
    lines += ["| method | rows | CPU s | wall s | memory above the data, MB | peak, MB |"]
    lines += ["|---|---|---|---|---|---|"]
    for method, n, r in rows:
        cells = f"{r['cpu']:.2f} | {r['wall']:.2f} | {r['extra']:.0f} | {r['peak']:.0f}"
        lines.append(f"| {method} | {n:,} | {cells} |")
    lines += [
        "",
        f"- Five iterations of NCA against a whole fit, {nca_rows:,} rows: "
        f"{nca['cpu'] / ours['cpu']:.0f} times the CPU time, "
        f"{nca['extra'] / max(ours['extra'], 1):.0f} times the memory above the data.",
        f"- From 20,000 to 160,000 rows: {large['cpu'] / small['cpu']:.1f} times the CPU time.",
        f"- A million rows: {million['cpu'] / lda['cpu']:.1f} times LDA in CPU time, in batches "
        f"{batches['cpu'] / lda['cpu']:.1f} times; peak {million['peak']:.0f} MB with the data.",
    ]
    return "\n".join(lines) + "\n"


def main():
    if sys.argv[1:2] == ["--one"]:
        print(json.dumps(measure(sys.argv[2], int(sys.argv[3]))))
        return
    nca_rows = int(sys.argv[1]) if len(sys.argv) > 1 else 20_000
    plan = [("DCAGM", n) for n in sorted({nca_rows, 20_000, 160_000, 1_000_000})]
    plan += [("LDA", 1_000_000), ("DCAGM batches", 1_000_000), ("NCA", nca_rows)]
    text = report([(method, n, in_process(method, n)) for method, n in plan], nca_rows)
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / "dcagm_speed.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
