"""The models that are compared, as data: to add one, add a line to `CANDIDATES`."""

from collections.abc import Mapping
from importlib import import_module
from importlib.util import find_spec
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from scipy import sparse
from sklearn.base import clone
from sklearn.decomposition import PCA, KernelPCA, TruncatedSVD
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from gnomon.estimators.labelled import LabelledOnly
from gnomon.linalg.data import as_data, has_gaps
from gnomon.linalg.standardize import are_components, column_statistics
from gnomon.tools.compare.scoring import Problem

# A model that works with d x d matrices or dense rows gets this many leading components instead.
REDUCED = 100


class Candidate(NamedTuple):
    """A model and what it can take.

    ``learns`` holds the kinds of y that shape its map (c classes, n numbers, m multilabel);
    ``unlabelled`` says that rows without label take part; ``nested``, that the leading columns
    of a large fit are the small fit; ``picture``, that a fit is so slow that only the smallest
    number of components is tried; ``by_neighbours``, that the graph of nearest rows takes the
    place of links; ``widest`` and ``most_rows`` bound what it can bear.
    """

    name: str
    home: str
    parameters: Mapping = MappingProxyType({})
    learns: str = ""
    kinds: str = "cnm"
    unlabelled: bool = False
    gaps: bool = False
    sparse: bool = False
    nested: bool = False
    needs_links: bool = False
    by_neighbours: bool = False
    takes_chunks: bool = False
    below_classes: bool = False
    picture: bool = False
    widest: int | None = None
    most_rows: int | None = None
    estimator: Any = None

    def make(self, n_components):
        """A fresh estimator with n_components."""
        if self.estimator is not None:
            estimator = clone(self.estimator)
            if "n_components" in estimator.get_params(deep=False):
                estimator.set_params(n_components=n_components)
            return estimator
        module, name = self.home.rsplit(".", 1)
        return getattr(import_module(module), name)(n_components=n_components, **self.parameters)


PEERS = (
    Candidate("PCA", "sklearn.decomposition.PCA", nested=True, sparse=True),
    Candidate(
        "whitened PCA", "sklearn.decomposition.PCA", {"whiten": True}, nested=True, sparse=True
    ),
    Candidate(
        "LDA",
        "sklearn.discriminant_analysis.LinearDiscriminantAnalysis",
        {"solver": "eigen", "shrinkage": 0.1},
        learns="c",
        kinds="c",
        nested=True,
        below_classes=True,
        widest=500,
    ),
    Candidate("PLS", "gnomon.peers.PLSDiscriminant", learns="c", kinds="c", nested=True),
    Candidate(
        "PLS", "sklearn.cross_decomposition.PLSRegression", learns="nm", kinds="nm", nested=True
    ),
    Candidate(
        "kernel PCA",
        "sklearn.decomposition.KernelPCA",
        {"kernel": "rbf", "eigen_solver": "arpack", "random_state": 0},
        nested=True,
        most_rows=4000,
    ),
    Candidate(
        "NCA",
        "sklearn.neighbors.NeighborhoodComponentsAnalysis",
        {"max_iter": 20, "random_state": 0},
        learns="c",
        kinds="c",
        widest=200,
        most_rows=2500,
    ),
    Candidate(
        "UMAP",
        "umap.UMAP",
        {"random_state": 0, "n_jobs": 1},
        learns="c",
        unlabelled=True,
        picture=True,
    ),
)

# One start and few sweeps: near enough to rank models; the snippet refits with the same.
BSDR_SETTINGS = {"n_init": 1, "max_iter": 50, "tol": 1e-3, "random_state": 0}

# A score near that of a settled fit, in half its time.
DCAGM_SETTINGS = {"max_iter": 20, "random_state": 0}

SEEDED = {"random_state": 0}
PAPER_SETTINGS = {"relation": "paper", "projection": "smoothed"}
FILTER_SETTINGS = {"relation": "filter"}
# Content of single rows is trusted less where the embedding feeds a predictor.
LEARNT_SETTINGS = {"relation": "learnt", "temper": 10.0, "random_state": 0}

# What SPPCA can take, with whatever graph.
SUPERVISED: dict[str, Any] = {
    "learns": "cnm",
    "unlabelled": True,
    "gaps": True,
    "sparse": True,
    "takes_chunks": True,
}

GNOMON = (
    Candidate("PPCA", "gnomon.PPCA", gaps=True, sparse=True),
    Candidate("SPPCA", "gnomon.SPPCA", SEEDED, **SUPERVISED),
    Candidate("SPPCA neighbours", "gnomon.SPPCA", SEEDED, by_neighbours=True, **SUPERVISED),
    Candidate(
        "KernelSPPCA",
        "gnomon.KernelSPPCA",
        learns="cnm",
        unlabelled=True,
        gaps=True,
        takes_chunks=True,
        most_rows=2500,
    ),
    Candidate("SPPCA with links", "gnomon.SPPCA", SEEDED, needs_links=True, **SUPERVISED),
    Candidate("PRPCA", "gnomon.PRPCA", PAPER_SETTINGS, needs_links=True, sparse=True),
    Candidate("PRPCA filter", "gnomon.PRPCA", FILTER_SETTINGS, needs_links=True, sparse=True),
    Candidate("PRPCA learnt", "gnomon.PRPCA", LEARNT_SETTINGS, needs_links=True, sparse=True),
    Candidate(
        "DCAGM",
        "gnomon.DCAGM",
        DCAGM_SETTINGS,
        learns="c",
        kinds="c",
        unlabelled=True,
        gaps=True,
        takes_chunks=True,
        widest=200,
    ),
    Candidate("BSDR", "gnomon.BSDR", BSDR_SETTINGS, "cm", "cm", gaps=True, widest=300),
    Candidate("BSDR", "gnomon.BSDRRegressor", SEEDED, "n", "n", gaps=True, widest=300),
)

CANDIDATES = PEERS + GNOMON


def choose(problem: Problem, models) -> tuple[list[Candidate], dict[str, str]]:
    """The candidates that apply to the problem, and why the others do not."""
    chosen, skipped = [], {}
    for candidate in _wanted(models, problem.kind):
        reason = _obstacle(candidate, problem)
        if reason:
            skipped[candidate.name] = reason
        else:
            chosen.append(candidate)
    if not chosen:
        reasons = ", ".join(f"{name} ({reason})" for name, reason in skipped.items())
        raise ValueError(f"models: none applies here: {reasons}")
    return chosen, skipped


def names_with_sizes(kind) -> list[str]:
    """The known models of which several numbers of components are tried."""
    return [c.name for c in CANDIDATES if kind[0] in c.kinds and not c.picture]


def sizes_for(candidate, problem, n_components, n_train) -> list[int]:
    """The numbers of components that the candidate can have, each once."""
    limit = min(problem.X.shape[1], n_train - 1)
    if candidate.below_classes:
        limit = min(limit, problem.n_classes - 1)
    sizes = sorted({min(q, limit) for q in n_components})
    return sizes[:1] if candidate.picture else sizes


def make_pipeline_for(candidate, problem, n_components, known) -> Pipeline:
    """Preparation and candidate as one pipeline; the candidate's step is called "model".

    ``known`` masks the rows that are fitted with a label.
    """
    model = candidate.make(n_components)
    if problem.told and candidate.estimator is None and "target" in model.get_params():
        model.set_params(target=problem.kind)
    components = _holds_components(problem.X)
    steps = _preparation(candidate, problem, len(known), components)
    if components or "reduce" in dict(steps):
        # Units of their own would give the least components the weight of the first.
        _keep_units(model, problem.X if components else None)
    if candidate.learns and not candidate.unlabelled and not np.all(known):
        model = LabelledOnly(model)
    return Pipeline([*steps, ("model", model)])


def _holds_components(X) -> bool:
    """Whether the columns are principal components already, whose variances mean something."""
    if sparse.issparse(X) or has_gaps(X):
        return False
    found = column_statistics(as_data(X))
    unit = np.where(found.varying, found.sd, 1.0)
    return are_components(found.centered, unit, found.varying, np.ones(len(X)))


def _keep_units(model, X):
    """No units of their own for columns; of X as it is, a kernel of scikit-learn as wide as ever.

    Its width is made for columns of unit variance: their number is their total variance.
    """
    parameters = model.get_params()
    if "standardize" in parameters:
        model.set_params(standardize=False)
    if X is not None and isinstance(model, KernelPCA) and parameters["gamma"] is None:
        model.set_params(gamma=1 / float(np.var(X, axis=0).sum()))


def _preparation(candidate, problem, n_train, components):
    steps: list = []
    d = problem.X.shape[1]
    is_sparse = sparse.issparse(problem.X)
    reduced = candidate.widest is not None and d > candidate.widest and not is_sparse
    if has_gaps(problem.X) and (reduced or not candidate.gaps):
        steps.append(("impute", SimpleImputer(keep_empty_features=True)))
    if not is_sparse and not components:
        steps.append(("scale", StandardScaler()))
    width = min(REDUCED, d - 1, n_train - 1)
    if is_sparse and not candidate.sparse:
        steps.append(("reduce", TruncatedSVD(width, random_state=0)))
    elif reduced:
        steps.append(("reduce", PCA(width, random_state=0)))
    return steps


def _wanted(models, kind):
    table = [c for c in CANDIDATES if kind[0] in c.kinds]
    if models is None:
        return table
    if isinstance(models, dict):
        models = list(models.items())
    return [_one(model, table) for model in models]


def _one(model, table):
    if isinstance(model, str):
        names = {c.name: c for c in table}
        if model not in names:
            raise ValueError(f"models has {model!r}; known are {', '.join(sorted(names))}")
        return names[model]
    name, estimator = model if isinstance(model, tuple) else (type(model).__name__, model)
    if not hasattr(estimator, "transform"):
        raise TypeError(f"models has {estimator!r}, which has no transform")
    return Candidate(name, "", estimator=estimator, learns="cnm", unlabelled=True)


def _obstacle(candidate, problem):
    package = candidate.home.split(".")[0]
    if package and find_spec(package) is None:
        return f"{package} is not installed"
    if candidate.needs_links and problem.links is None:
        return "needs links"
    if candidate.most_rows and problem.X.shape[0] > candidate.most_rows:
        return f"more than {candidate.most_rows} rows"
    return ""
