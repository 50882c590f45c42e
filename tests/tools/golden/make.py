"""How the files of this folder were made, once, by the first release; they must stay loadable.

    python tests/tools/golden/make.py

Only run it for a new format, into new names: the old files stay as they are.
"""

import json
import warnings
from pathlib import Path

import numpy as np

import gnomon
from gnomon.tools import modelfile

FOLDER = Path(__file__).parent


WITH_GAP = ("ppca", "sppca")


def sample(name):
    """Rows that need no random numbers, with a gap for the models that took one from the first."""
    i, j = np.mgrid[0:24, 0:5]
    X = np.sin(i * (j + 1) / 3.0) + (i % 3 == j) * 2.0
    if name in WITH_GAP:
        X[4, 1] = np.nan
    return X


def labels(some=False):
    """Classes in turn; those of the last rows hidden where only some are to be known."""
    y = np.array(["a", "b", "c"], dtype=object)[np.arange(24) % 3]
    y[20 if some else 24 :] = None
    return y


def fits():
    """A fitted model for each golden file."""
    X, full, y = sample("ppca"), sample(""), labels(some=True)
    numbers = full[:, 0] + 2 * full[:, 1] - np.cos(np.arange(24))
    links = gnomon.Links.from_edges([(k, k + 1) for k in range(23)])
    seed = {"random_state": 0}
    gibbs = {"inference": "gibbs", "n_chains": 2, "n_draws": 4, "n_warmup": 2}
    learnt = {"relation": "learnt", "own_components": 1}
    return {
        "ppca": gnomon.PPCA(2, **seed).fit(X),
        "sppca": gnomon.SPPCA(2, supervision=0.5, **seed).fit(X, labels()),
        "sppca_likelihood": gnomon.SPPCA(2, supervision="likelihood", **seed).fit(full, numbers),
        "kernel_sppca": gnomon.KernelSPPCA(2, supervision=0.5, **seed).fit(full, y),
        "prpca_paper": gnomon.PRPCA(2, relation="paper", **seed).fit(full, links=links),
        "prpca_learnt": gnomon.PRPCA(1, **learnt, **seed).fit(full, links=links),
        "dcagm": gnomon.DCAGM(2, **seed).fit(full, y),
        "bsdr": gnomon.BSDR(2, **seed).fit(full, y),
        "bsdr_gibbs": gnomon.BSDR(1, **gibbs, **seed).fit(full, y),
        "bsdr_regressor": gnomon.BSDRRegressor(2, **seed).fit(full, numbers),
        "probit": gnomon.MultinomialProbit().fit(full, y),
    }


def main():
    """A file and what its model answers, each."""
    warnings.simplefilter("ignore")
    for name, model in fits().items():
        stem = f"{name}-format{modelfile.FORMAT}"
        gnomon.save(model, FOLDER / f"{stem}.gnomon", notes={"made by": "first release"})
        methods = [method for method in ("transform", "predict") if hasattr(model, method)]
        answers = {method: getattr(model, method)(sample(name)).tolist() for method in methods}
        (FOLDER / f"{stem}.json").write_text(json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()
