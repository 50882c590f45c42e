"""How the files of this folder were made, once, by the first release; they must stay loadable.

    python tests/tools/golden/make.py

Only run it for a new format, into new names: the old files stay as they are.
"""

import json
from pathlib import Path

import numpy as np

import gnomon
from gnomon.tools import modelfile

FOLDER = Path(__file__).parent


def sample():
    """Rows that need no random numbers, with a gap."""
    i, j = np.mgrid[0:24, 0:5]
    X = np.sin(i * (j + 1) / 3.0) + (i % 3 == j) * 2.0
    X[4, 1] = np.nan
    return X, np.array(["a", "b", "c"], dtype=object)[np.arange(24) % 3]


def main():
    """A file and what its model answers."""
    X, y = sample()
    models = {
        "ppca": gnomon.PPCA(n_components=2, random_state=0).fit(X),
        "sppca": gnomon.SPPCA(n_components=2, supervision=0.5, random_state=0).fit(X, y),
    }
    for name, model in models.items():
        stem = f"{name}-format{modelfile.FORMAT}"
        gnomon.save(model, FOLDER / f"{stem}.gnomon", notes={"made by": "first release"})
        answers = {"transform": model.transform(X).tolist()}
        if hasattr(model, "predict"):
            answers["predict"] = model.predict(X).tolist()
        (FOLDER / f"{stem}.json").write_text(json.dumps(answers) + "\n")


if __name__ == "__main__":
    main()
