"""Values of other programs, for test_references.py: `python tests/references/make.py`.

Needs R with pcaMethods (Debian: r-bioc-pcamethods) and ppca-py. The rows are planted, so that
anyone can make them again; they are stored with the values all the same.
"""

import json
import subprocess
import tempfile
from importlib.metadata import version
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def planted():
    """Rows with two latent variables, and the same with gaps."""
    rng = np.random.default_rng(7)
    Z = rng.normal(size=(60, 2))
    X = Z @ rng.normal(size=(2, 5)) + 0.4 * rng.normal(size=(60, 5)) + np.arange(5)
    return X, np.where(rng.random(X.shape) < 0.15, np.nan, X)


def of_pca_methods(complete, gaps):
    """Loadings, scores and filled rows of pcaMethods."""
    with tempfile.TemporaryDirectory() as folder:
        for name, rows in (("complete", complete), ("gaps", gaps)):
            lines = [",".join("" if np.isnan(v) else repr(float(v)) for v in row) for row in rows]
            Path(folder, f"{name}.csv").write_text("\n".join(lines) + "\n")
        command = ["Rscript", str(HERE / "make.R"), folder]
        told = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        found = {
            path.stem: np.loadtxt(path, delimiter=",").tolist()
            for path in sorted(Path(folder).glob("*_*.csv"))
        }
    return {"versions": told.split("\n")[:2], **found}


def of_ppca_py(complete, gaps):
    """Covariance and noise of ppca-py, and what it fills in."""
    import ppca

    exact = {"n_components": 2, "max_iter": 50000, "rtol": 1e-14, "random_state": 0}
    models = {"complete": ppca.PPCA(**exact), "gaps": ppca.PPCA(**exact)}
    for name, rows in (("complete", complete), ("gaps", gaps)):
        models[name].fit(rows)
    found = {
        f"{name}_{what}": np.asarray(value).tolist()
        for name, model in models.items()
        for what, value in (
            ("covariance", model.get_covariance()),
            ("noise", model.noise_variance_),
            ("mean", model.mean_),
        )
    }
    score = float(np.sum(models["gaps"].score_samples(gaps)))
    filled = np.asarray(models["gaps"].impute_missing(gaps)[0]).tolist()
    return {"version": version("ppca-py"), **found, "gaps_filled": filled, "gaps_score": score}


def main():
    """Write values.json."""
    complete, gaps = planted()
    record = {
        "complete": complete.tolist(),
        "missing": np.argwhere(np.isnan(gaps)).tolist(),
        "pcaMethods": of_pca_methods(complete, gaps),
        "ppca-py": of_ppca_py(complete, gaps),
    }
    (HERE / "values.json").write_text(json.dumps(record) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
