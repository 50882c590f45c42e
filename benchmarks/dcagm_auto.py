"""Weights that DCAGM chooses itself against every fixed weight: accuracy, and what it costs.

Run as ``python -m benchmarks.dcagm_auto [minutes]`` with GNOMON_DATA set, again until all is
done; adds to results/dcagm_auto.json and writes the .md. Posterior accuracy on the unlabelled
rows; the weight of unlabelled rows by the protocol of [PGK07], a fifth labelled; that of chunks
with a tenth labelled, chunks of four on half of the rest, tested on the other half.
"""

import json
import time

import numpy as np
from benchmarks.dcagm_accuracy import SETS, chunks_of_four
from benchmarks.dcagm_defaults import go_on, shortened
from benchmarks.measure import RESULTS, describe
from benchmarks.papers.data import MissingDataError
from sklearn.model_selection import StratifiedShuffleSplit

from gnomon import DCAGM
from gnomon.models.dcagm.weights import GRIDS

PATH = RESULTS / "dcagm_auto.json"
SEED = 3000
N_SPLITS = dict.fromkeys(SETS, 5) | {"isolet": 1}
SHARES = {"unlabelled_weight": 0.2, "chunk_weight": 0.1}


def trial(name, case, split):
    """Of one split: for each value of the weight, and "auto", the accuracy and the CPU seconds."""
    X, y, q, options = case
    rng = np.random.default_rng((SEED, split))
    splitter = StratifiedShuffleSplit(1, train_size=SHARES[name], random_state=SEED + split)
    train, tested = next(splitter.split(X, y))
    labels, chunks = np.full(len(y), -1), None
    labels[train] = y[train]
    if name == "chunk_weight":
        inside, tested = np.array_split(rng.permutation(tested), 2)
        chunks = chunks_of_four(y, inside)
    out = {}
    for value in (*GRIDS[name], "auto"):
        start = time.process_time()
        model = DCAGM(q, **options, **{name: value}, random_state=0).fit(X, labels, chunks=chunks)
        seconds = time.process_time() - start
        accuracy = 100 * model.score(X[tested], y[tested])
        out[str(value)] = (accuracy, seconds, getattr(model, name + "_"))
    return out


def run(stored, deadline):
    """Do what is missing until the deadline; whether all is done."""
    for name in GRIDS:
        for key in SETS[: 5 if name == "chunk_weight" else 6]:
            try:
                case = shortened(key)
            except MissingDataError as error:
                print(f"{key} skipped: {error}")
                continue
            done = stored.setdefault(f"{name} | {key}", [])
            while len(done) < N_SPLITS[key]:
                if time.monotonic() > deadline:
                    return False
                done.append(trial(name, case, len(done)))
                PATH.write_text(json.dumps(stored) + "\n")
            print(name, key, flush=True)
    return True


def report(stored):
    """The page of results."""
    lines = ["# Weights of DCAGM chosen by cross-validation", "", f"{describe()}; seed {SEED}.", ""]
    for name, grid in GRIDS.items():
        values = [*map(str, grid), "auto"]
        lines += [f"### {name}", ""]
        lines += ["| set | " + " | ".join(values) + " | chosen | CPU time, fits |"]
        lines += ["|---" * (len(values) + 3) + "|"]
        for key, done in stored.items():
            if not key.startswith(name):
                continue
            means = [np.mean([split[v][0] for split in done]) for v in values]
            chosen = ", ".join(f"{split['auto'][2]:g}" for split in done)
            costs = [
                split["auto"][1] / np.mean([split[v][1] for v in values[:-1]]) for split in done
            ]
            cells = " | ".join(f"{mean:.1f}" for mean in means)
            lines.append(f"| {key.split(' | ')[1]} | {cells} | {chosen} | {np.mean(costs):.0f} |")
        lines.append("")
    lines += [
        "Posterior accuracy in per cent on rows without label, five splits (isolet: 1000 rows, one "
        'split). Chosen: the weight "auto" took in each split. CPU time: that of a fit with '
        '"auto" over the mean of the fits with fixed weights.',
        "",
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    go_on(PATH, run, report)
