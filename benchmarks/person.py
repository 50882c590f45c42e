"""What a person waits for: whole commands and first fits, beside scikit-learn's nearest.

    python benchmarks/person.py [src folder of an earlier version]

Every task runs in processes of its own with the threads that BLAS takes by default: this
version, the earlier one where its folder is named, and the peer, in turn. Of a command the whole
process counts, of a fit what follows the imports.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pandas as pd

import measure

HERE = Path(__file__).resolve().parent.parent / "src"
# Before an earlier version is given up.
LIMIT = 900

COMMAND = "import sys; from gnomon.tools.cli import main; sys.argv[0] = 'gnomon'; main()"
TIMED = """
import time, warnings
warnings.simplefilter("ignore")
{imports}
wall, cpu = time.perf_counter(), time.process_time()
{work}
print(time.perf_counter() - wall, time.process_time() - cpu)
"""
# What stands for a command: read, fill, reduce, cross-validate over sizes, fit, place all rows.
PEER = """
import pandas as pd
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
table = pd.read_csv({path!r})
y = table.pop({target!r})
seen = y.notna()
model = make_pipeline(SimpleImputer(), StandardScaler(), PCA(2), LinearDiscriminantAnalysis())
search = GridSearchCV(model, {{"pca__n_components": {sizes}}}).fit(table[seen], y[seen])
print(cross_val_score(search.best_estimator_, table[seen], y[seen]).mean())
embedding = search.best_estimator_[:-1].transform(table)
pd.DataFrame(embedding).to_csv({path!r} + ".embedding.csv")
"""
DIGITS = """
import numpy as np
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
some = np.where(np.random.default_rng(0).random(len(y)) < 0.2, y, -1)
"""
VOWELS = """
import numpy as np
rng = np.random.default_rng(0)
y = np.repeat(np.arange(11), 40)
X = 1.2 * rng.standard_normal((11, 10))[y]
X = X + 0.6 * rng.standard_normal((440, 10)) @ rng.standard_normal((10, 10))
"""
CANCER = """
import numpy as np
from sklearn.datasets import load_breast_cancer
X = load_breast_cancer().data
X = (X - X.mean(axis=0)) / X.std(axis=0)
X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
"""
LDA = "from sklearn.discriminant_analysis import LinearDiscriminantAnalysis"
PCA_CV = """
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
"""
SEARCH = (
    "GridSearchCV(make_pipeline(SimpleImputer(), PCA()), "
    "{'pca__n_components': range(1, 30)}).fit(X)"
)
KERNEL = "from sklearn.decomposition import KernelPCA"


class Task(NamedTuple):
    """Words of a command, or code of a fit with its imports; the same for the peer."""

    command: list[str] | None
    fit: tuple[str, str] | None
    peer: str


class Spent(NamedTuple):
    """Seconds of a process, or of what it printed."""

    wall: float
    cpu: float


def main(earlier=None):
    with tempfile.TemporaryDirectory() as folder:
        rows = [_row(name, task, earlier, folder) for name, task in tasks(Path(folder)).items()]
    measure.write(
        "person",
        "What a person waits for: seconds of wall time and of all processors",
        ["task", "before", "now", "peer", "now / before, CPU", "now / peer, CPU"],
        rows,
        [
            "Each entry is wall / CPU. Peers: SimpleImputer, PCA and LDA with cross-validation "
            "over sizes; LDA, KernelPCA and PCA alone for fits.",
            "One run of each, beside other work: with default threads the same fit of the earlier "
            "version took from one to twenty times as long in three runs (KernelSPPCA 0.9, 4.9 and "
            "18 s of wall time); on one thread BSDR and DCAGM take what they took before.",
            "Before and now differ by all that was changed between, not by speed alone, and a peer "
            "does less: it tries fewer sizes, has no control and writes no report.",
        ],
    )


def tasks(folder) -> dict[str, Task]:
    """The tasks by name; their tables are written to the folder."""
    small, large, wine = (str(folder / f"{name}.csv") for name in ("small", "large", "wine"))
    write_table(small, 1200, 41, missing=1 / 3, unlabelled=0.0, noise=1.5)
    write_table(large, 300_000, 30, missing=0.02, unlabelled=0.5, noise=1.0)
    write_wine(wine)
    return {
        "gnomon fit, 1,200 x 41, a third missing": _command("fit", small, "group", [2, 3, 5, 8]),
        "gnomon fit, 300,000 x 30": _command("fit", large, "group", [10]),
        "gnomon compare, 178 x 13": _command("compare", wine, "class", [2, 3, 5]),
        "PPCA of any size, 569 x 30 with gaps": Task(
            None,
            (f"from gnomon import PPCA\n{CANCER}", "PPCA('auto', random_state=0).fit(X)"),
            _timed(PCA_CV + CANCER, SEARCH),
        ),
        "BSDR, 440 x 10, 11 classes": Task(
            None,
            (f"from gnomon import BSDR\n{VOWELS}", "BSDR(random_state=0).fit(X, y)"),
            _timed(LDA + VOWELS, "LinearDiscriminantAnalysis().fit(X, y)"),
        ),
        "BSDR, digits": _digits("BSDR", "BSDR(5, random_state=0).fit(X, some)"),
        "DCAGM, digits": _digits("DCAGM", "DCAGM(5).fit(X, some)"),
        "KernelSPPCA, digits": _digits(
            "KernelSPPCA",
            "KernelSPPCA(5).fit(X, some)",
            _timed(KERNEL + DIGITS, "KernelPCA(5, kernel='rbf').fit(X)"),
        ),
    }


def _command(name, path, target, sizes):
    words = [name, path, "--target", target]
    if name == "fit":
        words += ["--out", f"{path}.out"]
    return Task(words, None, PEER.format(path=path, target=target, sizes=sizes))


def _digits(name, work, peer=None):
    seen = "LinearDiscriminantAnalysis().fit(X[some >= 0], y[some >= 0])"
    imports = f"from gnomon import {name}\n{DIGITS}"
    return Task(None, (imports, work), peer or _timed(LDA + DIGITS, seen))


def _timed(imports, work):
    return TIMED.format(imports=imports, work=work)


def write_table(path, n, d, *, missing, unlabelled, noise):
    """Rows around four groups in five dimensions, in different units, with gaps."""
    rng = np.random.default_rng(0)
    group = rng.integers(0, 4, n)
    Z = rng.standard_normal((n, 5)) + 1.2 * rng.standard_normal((4, 5))[group]
    X = Z @ rng.standard_normal((5, d)) + noise * rng.standard_normal((n, d))
    X *= np.exp(rng.standard_normal(d))
    X[rng.random(X.shape) < missing] = np.nan
    table = pd.DataFrame(X.round(4), columns=[f"m{j}" for j in range(d)])
    table["group"] = np.array(list("abcd"))[group]
    table.loc[rng.random(n) < unlabelled, "group"] = None
    table.to_csv(path, index=False)


def write_wine(path):
    """The wines of scikit-learn."""
    from sklearn.datasets import load_wine

    table = load_wine(as_frame=True).frame
    names = np.array(["first", "second", "third"])
    table.assign(**{"class": names[table.pop("target")]}).to_csv(path, index=False)


def _row(name, task, earlier, folder):
    now = _spent(task, HERE, folder)
    before = None if earlier is None else _spent(task, earlier, folder)
    peer = _peer_spent(task, folder)
    row = [name, _shown(before), _shown(now), _shown(peer), _ratio(now, before), _ratio(now, peer)]
    print(" | ".join(row), flush=True)
    return row


def _spent(task, source, folder) -> Spent | None:
    """What this version of gnomon takes; None where it takes longer than the limit."""
    if task.command is not None:
        return _run([sys.executable, "-c", COMMAND, *task.command], source, folder, whole=True)
    return _run([sys.executable, "-c", _timed(*task.fit)], source, folder, whole=False)


def _peer_spent(task, folder) -> Spent | None:
    command = [sys.executable, "-c", task.peer]
    return _run(command, HERE, folder, whole=task.command is not None)


def _run(command, source, folder, *, whole) -> Spent | None:
    start, before = time.perf_counter(), os.times()
    environment = os.environ | {"PYTHONPATH": str(source)}
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=LIMIT,
        )
    except subprocess.TimeoutExpired:
        return None
    if not whole:
        return Spent(*map(float, done.stdout.split()[-2:]))
    after = os.times()
    cpu = after.children_user + after.children_system
    cpu -= before.children_user + before.children_system
    return Spent(time.perf_counter() - start, cpu)


def _shown(spent):
    return "-" if spent is None else f"{spent.wall:.2f} / {spent.cpu:.2f}"


def _ratio(one, other):
    return "-" if one is None or other is None else f"{one.cpu / other.cpu:.2f}"


if __name__ == "__main__":
    main(*sys.argv[1:2])
