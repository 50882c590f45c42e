"""Do fits that take most steps on a sample of the rows end as high as fits to all rows?

    python benchmarks/sampled_rounds.py

DCAGM and BSDR of more rows than are kept in memory take steps on a sample that is held to all
rows. The same models with nothing sampled, until they settle or for as many iterations as they
take by default, are the other column. Both objectives are of all rows. With few labels 1000 rows
have one.
"""

import argparse
import tempfile
import time
import warnings

import numpy as np

from gnomon import BSDR, DCAGM
from gnomon.models.bsdr import sampled as bsdr_sampled
from gnomon.models.dcagm import sampled as dcagm_sampled
from out_of_core import labels_of, make_dense

import measure

CASES = {
    "DCAGM": [(100_000, 200), (400_000, 60)],
    "BSDR": [(100_000, 200)],
}
MODELS = {"DCAGM": lambda: DCAGM(10), "BSDR": lambda: BSDR(10, random_state=0)}
MODULES = dcagm_sampled, bsdr_sampled


def fitted(model, X, y, sampled):
    """The best objective of a fit and its seconds of the processor."""
    before = [module.KEPT_ENTRIES for module in MODULES]
    if not sampled:
        for module in MODULES:
            module.KEPT_ENTRIES = X.size
    start = time.process_time()
    model.fit(X, y)
    seconds = time.process_time() - start
    for module, entries in zip(MODULES, before, strict=True):
        module.KEPT_ENTRIES = entries
    return max(model.objective_), seconds


def row(name, path, share):
    X, y = np.load(path), labels_of(path, share)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        high, quick = fitted(MODELS[name](), X, y, sampled=True)
        other, slow = fitted(MODELS[name](), X, y, sampled=False)
    shape = f"{len(X):,} x {X.shape[1]}"
    labelled = "all" if share == "all" else f"{np.sum(y >= 0):,}"
    gain = f"{(high - other) / abs(other):+.1e}"
    return [name, shape, labelled, f"{high:.3f}", f"{other:.3f}", gain, f"{slow / quick:.1f}"]


def main():
    argparse.ArgumentParser(description=__doc__.splitlines()[0]).parse_args()
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        for name, shapes in CASES.items():
            for shape in shapes:
                for share in ("few", "all"):
                    rows.append(row(name, make_dense(folder, *shape), share))
                    print(rows[-1], flush=True)
    header = ["model", "rows", "labelled", "sampled", "all rows", "gain, relative"]
    header += ["times the CPU of the sampled"]
    measure.write(
        "sampled_rounds",
        "Objective over all rows: fits by a sample held to all rows, and by all rows",
        header,
        rows,
        ["Objective of DCAGM and lower bound of BSDR, ten components, single precision."],
    )


if __name__ == "__main__":
    main()
