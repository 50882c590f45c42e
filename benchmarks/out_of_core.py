"""Rows that are not in memory: how often each model reads them, what it holds, how long it takes.

    python benchmarks/out_of_core.py [--quick] [--only fits sparse growth] [--folder FOLDER]
                                     [--models WORD ...]

fits      a memory map of 1,000,000 x 200 in single precision, 1000 rows labelled and all, ten
          components: seconds over those of one pass (X'X of the map), memory of the process that
          is its own (RssAnon) above what it had before, and reads of rows that come in blocks;
          beside scikit-learn's IncrementalPCA
sparse    chunks on disk, 1,000,000 x 50,000 with 40 entries a row, SPPCA by likelihood, q = 20
growth    seconds of SPPCA by likelihood against rows and against columns, with slopes and a plot

Every figure is of a process of its own. ``--quick`` is small and writes no results; ``--models``
measures those whose names have one of the words, and keeps the lines of the others.
"""

import argparse
import json
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import IncrementalPCA

import gnomon

import measure

CLASSES, LABELS, BLOCK_ROWS = 10, 1000, 20_000
MODELS = {
    "PPCA": gnomon.PPCA(10),
    "SPPCA by likelihood": gnomon.SPPCA(10, supervision="likelihood"),
    "SPPCA": gnomon.SPPCA(10),
    "KernelSPPCA, 100 landmarks": gnomon.KernelSPPCA(10, n_landmarks=100),
    "DCAGM": gnomon.DCAGM(10),
    "BSDR": gnomon.BSDR(10, random_state=0),
    "IncrementalPCA": IncrementalPCA(10),
}
WITHOUT_LABELS = ("PPCA", "IncrementalPCA")


def make_dense(folder, n, d):
    """A memory map of rows in ten classes, and their labels."""
    path, rng = Path(folder) / f"X_{n}_{d}.npy", np.random.default_rng(0)
    if path.exists():
        return path
    y = rng.integers(0, CLASSES, n)
    k = min(12, d)
    centres, axes = 1.5 * rng.normal(size=(CLASSES, k)), rng.normal(size=(k, d))
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, d))
    for start in range(0, n, BLOCK_ROWS):
        own = y[start : start + BLOCK_ROWS]
        Z = centres[own] + rng.normal(size=(len(own), k))
        X[start : start + len(own)] = Z @ axes + 2 * rng.normal(size=(len(own), d))
    X.flush()
    np.save(path.with_suffix(".labels.npy"), y)
    return path


def labels_of(path, share):
    y = np.load(Path(path).with_suffix(".labels.npy"))
    if share == "all":
        return y
    known = np.random.default_rng(1).choice(len(y), min(LABELS, len(y) // 10), replace=False)
    few = np.full(len(y), -1)
    few[known] = y[known]
    return few


class Counted:
    """An array whose rows are counted as they are read."""

    def __init__(self, X):
        self.X, self.shape, self.rows = X, X.shape, 0

    def __getitem__(self, rows):
        found = np.asarray(self.X[rows])
        self.rows += len(found)
        return found


def fit_one(path, name, share, way):
    """Seconds, megabytes and reads of a fit in this process; of a pass for no name."""
    X = np.load(path, mmap_mode="r")
    if not name:
        start = time.perf_counter()
        np.asarray(X.T @ X)
        return {"seconds": time.perf_counter() - start}
    y = None if name in WITHOUT_LABELS else labels_of(path, share)
    counted = Counted(X)
    rows = gnomon.from_rows(counted, block_rows=BLOCK_ROWS) if way == "blocks" else X
    model = clone(MODELS[name])
    _warm_up(model)
    counted.rows, start = 0, time.perf_counter()
    megabytes = measure.anonymous_memory(lambda: model.fit(rows, y))
    found = {"seconds": time.perf_counter() - start, "megabytes": megabytes}
    return found | {"reads": counted.rows / len(X)}


def _warm_up(model):
    """A small fit before, so that imports are no part of what is measured."""
    X, y = np.random.default_rng(0).normal(size=(300, 20)), np.arange(300) % 3
    clone(model).fit(X) if isinstance(model, IncrementalPCA) else clone(model).fit(X, y)


def make_sparse(folder, n, d, per_row):
    """Chunks of sparse rows as .npz files, and the labels of a few rows."""
    folder, rng = Path(folder) / f"sparse_{n}_{d}", np.random.default_rng(0)
    if folder.exists():
        return folder
    folder.mkdir()
    y = rng.integers(0, CLASSES, n)
    for start in range(0, n, BLOCK_ROWS):
        own = y[start : start + BLOCK_ROWS]
        # Words are rare but for a few, and a tenth of them are those of the class.
        words = (d * rng.random((len(own), per_row)) ** 3).astype(np.int32)
        topic = (own * 50)[:, None] + rng.integers(0, 50, (len(own), per_row)).astype(np.int32)
        words = np.where(rng.random(words.shape) < 0.1, topic + d // 2, words)
        starts = np.arange(0, words.size + 1, per_row)
        entries = np.ones(words.size, dtype=np.float32), words.ravel(), starts
        X = sparse.csr_array(entries, shape=(len(own), d))
        X.sum_duplicates()
        sparse.save_npz(folder / f"{start:09d}.npz", X, compressed=False)
    np.save(folder / "labels.npy", y)
    return folder


def fit_sparse(folder, q):
    """Passes, seconds and megabytes of SPPCA by likelihood on the chunks."""
    reads, paths = [0], sorted(Path(folder).glob("0*.npz"))

    def load(path):
        reads[0] += 1
        return sparse.load_npz(path)

    X = gnomon.from_loaders([lambda path=path: load(path) for path in paths])
    y = np.load(Path(folder) / "labels.npy")
    y[np.random.default_rng(1).permutation(len(y))[LABELS:]] = -1
    model = gnomon.SPPCA(q, supervision="likelihood")
    _warm_up(clone(model).set_params(n_components=2))
    start, reads[0] = time.perf_counter(), 0
    [load(path).sum() for path in paths]
    one_pass, reads[0], start = time.perf_counter() - start, 0, time.perf_counter()
    megabytes = measure.anonymous_memory(lambda: model.fit(X, y))
    seconds = time.perf_counter() - start
    found = {"pass": one_pass, "seconds": seconds, "megabytes": megabytes}
    return found | {"reads": reads[0] / len(paths), "rounds": model.n_iter_}


def alone(function, *arguments):
    """The result of a function of this module in a new process."""
    call = [sys.executable, __file__, "--one", json.dumps([function, *map(_plain, arguments)])]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr)
    return json.loads(done.stdout.splitlines()[-1])


def _plain(value):
    return str(value) if isinstance(value, Path) else value


def write(quick, *record):
    """Results as a file, or on the screen for a small run."""
    if not quick:
        measure.write(*record)
        return
    _, title, header, rows, *_ = record
    print("\n".join([title, *(" | ".join(map(str, row)) for row in [header, *rows])]))


def fits(folder, quick, words=("",)):
    """The table of all models; lines of models whose names have none of the words are kept."""
    n, d = (100_000, 50) if quick else (1_000_000, 200)
    path = make_dense(folder, n, d)
    one_pass = min(alone("fit_one", path, "", "", "")["seconds"] for _ in range(3))
    before = [] if quick else json.loads((measure.RESULTS / "out_of_core.json").read_text())["rows"]
    found = []
    for name in MODELS:
        if not any(word in name for word in words):
            found += [row for row in before if row[0] == name]
            continue
        shares = ("all",) if name in WITHOUT_LABELS else ("few", "all")
        for share in shares:
            found.append(_row(path, name, share, one_pass))
            print(found[-1], flush=True)
    title = f"Rows that are not in memory: {n:,} x {d} in single precision, ten components"
    header = ["model", "labelled", "time over one pass", "MB above the baseline, memory map"]
    header += ["reads of rows in blocks", "MB above the baseline, blocks"]
    notes = [
        f"One pass, X'X of the memory map, took {one_pass:.2f} s. Blocks have {BLOCK_ROWS:,} rows, "
        f"{4 * BLOCK_ROWS * d / 2**20:.0f} MB. {LABELS:,} rows or all are labelled."
    ]
    write(quick, "out_of_core", title, header, found, notes)


def _row(path, name, share, one_pass):
    mapped = alone("fit_one", path, name, share, "map")
    cells = [name, {"few": f"{LABELS:,}", "all": "all"}[share]]
    cells[1] = "none" if name in WITHOUT_LABELS else cells[1]
    cells += [f"{mapped['seconds'] / one_pass:.1f}", f"{mapped['megabytes']:.0f}"]
    if name == "IncrementalPCA":
        return [*cells, "", ""]
    blocks = alone("fit_one", path, name, share, "blocks")
    return [*cells, f"{blocks['reads']:.1f}", f"{blocks['megabytes']:.0f}"]


def sparse_chunks(folder, quick, _words):
    """One line for the sparse chunks."""
    n, d, q = (40_000, 3_000, 5) if quick else (1_000_000, 50_000, 20)
    found = alone("fit_sparse", make_sparse(folder, n, d, 40), q)
    title = f"Sparse chunks on disk: {n:,} x {d:,}, 40 entries a row, SPPCA by likelihood, q = {q}"
    header = ["reads", "rounds", "seconds", "seconds of a plain read", "MB above the baseline"]
    cells = [f"{found['reads']:.1f}", str(found["rounds"]), f"{found['seconds']:.0f}"]
    cells += [f"{found['pass']:.1f}", f"{found['megabytes']:.0f}"]
    write(quick, "out_of_core_sparse", title, header, [cells])


def growth(folder, quick, _words):
    """Seconds against rows and columns, slopes, and the plot."""
    sizes = [(n, 200) for n in (100_000, 300_000, 1_000_000, 3_000_000)]
    widths = [(50_000, d) for d in (50, 150, 500, 1500, 5000)]
    if quick:
        sizes, widths = [(n, 20) for n in (20_000, 60_000)], [(5000, d) for d in (20, 60)]
    rows, curves = [], {}
    for kind, shapes in (("rows", sizes), ("columns", widths)):
        seconds = [_seconds(folder, *shape) for shape in shapes]
        x = [shape[0 if kind == "rows" else 1] for shape in shapes]
        slope = _slope(x, seconds)
        curves[kind] = x, seconds, slope
        shown = [f"{n:,} x {d:,}: {s:.2f} s" for (n, d), s in zip(shapes, seconds, strict=True)]
        rows.append([kind, f"{slope:.2f}", "; ".join(shown)])
    # So few rows, with as many labels, that what a fit costs at any size is nearly all.
    (n, d), *_ = sizes
    fixed = _seconds(folder, n // 10, d)
    x, seconds, _ = curves["rows"]
    grows = _slope(np.subtract(x, n // 10), np.subtract(seconds, fixed))
    rows.insert(
        1, ["rows, less the first size", f"{grows:.2f}", f"{n // 10:,} x {d}: {fixed:.3f} s"]
    )
    title = "Growth of a fit, SPPCA by likelihood with ten components on a memory map"
    write(quick, "out_of_core_growth", title, ["against", "slope", "seconds"], rows)
    if not quick:
        _plot(curves)


def _slope(x, seconds):
    """The power of x by which seconds grow."""
    return float(np.polyfit(np.log(x), np.log(seconds), 1)[0])


def _seconds(folder, n, d):
    """Least seconds of three fits; the file goes when it was measured."""
    path = make_dense(folder, n, d)
    found = [alone("fit_one", path, "SPPCA by likelihood", "few", "map") for _ in range(3)]
    path.unlink()
    return min(part["seconds"] for part in found)


def _plot(curves):
    import matplotlib

    matplotlib.use("svg")
    matplotlib.rcParams["svg.hashsalt"] = "growth"
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
    for axis, (kind, (x, seconds, slope)) in zip(axes, curves.items(), strict=True):
        axis.loglog(x, seconds, "o-")
        axis.set(xlabel=kind, ylabel="seconds", title=f"slope {slope:.2f}")
    place = Path(__file__).parents[1] / "docs" / "_static" / "growth.svg"
    figure.savefig(place, metadata={"Date": None})


PARTS = {"fits": fits, "sparse": sparse_chunks, "growth": growth}
ALONE = {"fit_one": fit_one, "fit_sparse": fit_sparse}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--folder")
    parser.add_argument("--models", nargs="+", default=[""])
    parser.add_argument("--one")
    options = parser.parse_args()
    if options.one:
        function, *arguments = json.loads(options.one)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            print(json.dumps(ALONE[function](*arguments)))
        return
    with tempfile.TemporaryDirectory() as scratch:
        for part in options.only:
            PARTS[part](options.folder or scratch, options.quick, options.models)


if __name__ == "__main__":
    main()
