"""A fitted linear model as an ONNX graph, which runs where Python does not.

Every model here is affine in x up to its probabilities, so that a matrix and an offset say what
`transform` does; they are found by asking the model itself, which therefore may stand after
affine steps in a pipeline. Probabilities are softmaxes of affine functions (SPPCA), shares of
Gaussians (DCAGM) or integrals of normal distribution functions (BSDR).
"""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_selection import VarianceThreshold
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import MaxAbsScaler, MinMaxScaler, RobustScaler, StandardScaler
from sklearn.utils.validation import check_is_fitted

from gnomon import __version__
from gnomon._lazy import import_extra
from gnomon.estimators import check_option, contrasts, odds_of_shares
from gnomon.estimators.bsdr import BSDR
from gnomon.estimators.bsdr_regressor import BSDRRegressor
from gnomon.estimators.dcagm import DCAGM
from gnomon.estimators.ppca import PPCA
from gnomon.estimators.prpca import PRPCA
from gnomon.estimators.sppca import SPPCA
from gnomon.linalg.solve import gaussian_log_odds, stacked_half_inverses

# What onnxruntime reads since 1.15; nothing newer is used.
OPSET, IR_VERSION = 18, 9
# Rows of the identity that a model is asked for at a time.
ROWS_AT_ONCE = 1000
# Points of the trapezoidal rule over a normal variable: with 121 from -8 to 8 it errs by less than
# 1e-9 of a probability, since the integrand is analytic and vanishes at both ends.
NODES = np.linspace(-8.0, 8.0, 121)
# A probability that has a logarithm.
LEAST_CHANCE = 1e-300

# Steps of a pipeline that are affine.
STEPS = (
    StandardScaler,
    MinMaxScaler,
    MaxAbsScaler,
    RobustScaler,
    VarianceThreshold,
    PCA,
    TruncatedSVD,
    PPCA,
)


class Affine(NamedTuple):
    """x -> x @ matrix + offset."""

    matrix: np.ndarray
    offset: np.ndarray


def to_onnx(model: Any, path: str | Path | None = None, *, dtype: str = "float64") -> Any:
    """A fitted linear model, or a pipeline of affine steps with one, as an ONNX graph.

    The graph takes rows ``X`` and gives ``coordinates``, what `transform` gives, and where the
    model predicts ``prediction`` and, for classes and labels, ``probabilities``. It computes in
    double precision. Rows must have no gaps: NaN in gives NaN out.

    Parameters
    ----------
    model : PPCA, SPPCA, PRPCA, DCAGM, BSDR or BSDRRegressor, or Pipeline
        Fitted. In a pipeline the steps before it are scalers, PCA, TruncatedSVD or PPCA. Links
        that a model uses, draws of Gibbs sampling and ``proba="integral"`` have no graph.
    path : str or Path, default=None
        Where to write the graph as well.
    dtype : {"float64", "float32"}, default="float64"
        Type of X and of the numbers that come out.

    Returns
    -------
    graph : onnx.ModelProto

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from gnomon import SPPCA, to_onnx
    >>> X, y = load_iris(return_X_y=True)
    >>> graph = to_onnx(SPPCA(2).fit(X, y))
    >>> [output.name for output in graph.graph.output]
    ['coordinates', 'probabilities', 'prediction']
    """
    onnx = import_extra("onnx", "onnx", "to_onnx")
    check_option("dtype", dtype, ("float64", "float32"))
    check_is_fitted(model)
    before, last = (model[:-1], model[-1]) if isinstance(model, Pipeline) else (None, model)
    writer = _writer_of(last)
    graph = Graph(onnx, model.n_features_in_, dtype)
    rows = graph.input
    if before is not None and len(before):
        _check_affine(before)
        rows = graph.affine(rows, _affine_of(before.transform, model.n_features_in_))
    on_the_map = _affine_of(last.transform, last.n_features_in_)
    places = graph.affine(rows, on_the_map)
    graph.output("coordinates", places, len(on_the_map.offset))
    writer(last, graph, rows, places)
    proto = graph.proto(type(last).__name__)
    onnx.checker.check_model(proto)
    if path is not None:
        Path(path).write_bytes(proto.SerializeToString())
    return proto


class Graph:
    """Nodes of a graph as they are added; every method returns the name of a value."""

    def __init__(self, onnx, n_features: int, dtype: str):
        self.onnx = onnx
        self.type = getattr(onnx.TensorProto, "DOUBLE" if dtype == "float64" else "FLOAT")
        self.nodes: list[Any] = []
        self.constants: list[Any] = []
        self.outputs: list[Any] = []
        tensor = onnx.helper.make_tensor_value_info
        self.inputs = [tensor("X", self.type, [None, n_features])]
        self.input = self.add("Cast", "X", to=onnx.TensorProto.DOUBLE)

    def add(self, operator, *inputs, **attributes) -> str:
        """A node; arrays among its inputs become constants."""
        names = [self.constant(v) if isinstance(v, np.ndarray) else v for v in inputs]
        name = f"{operator}_{len(self.nodes)}"
        self.nodes.append(self.onnx.helper.make_node(operator, names, [name], **attributes))
        return name

    def constant(self, array) -> str:
        """A constant of the graph."""
        name = f"constant_{len(self.constants)}"
        self.constants.append(self.onnx.numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def affine(self, rows, function: Affine) -> str:
        """Rows through an affine function."""
        return self.add("Add", self.add("MatMul", rows, function.matrix), function.offset)

    def softmax(self, odds) -> str:
        """Shares of every row that sum to one."""
        return self.add("Softmax", odds, axis=1)

    def mixed(self, own, other, share) -> str:
        """The sum of two values, of which the other has this share."""
        own = self.add("Mul", own, np.array(1.0 - share))
        part = (
            share * other
            if isinstance(other, np.ndarray)
            else self.add("Mul", other, np.array(share))
        )
        return self.add("Add", own, part)

    def normal_cdf(self, value) -> str:
        """The standard normal distribution function; onnxruntime has Erf in single precision."""
        types = self.onnx.TensorProto
        scaled = self.add("Cast", self.add("Mul", value, np.array(np.sqrt(0.5))), to=types.FLOAT)
        erf = self.add("Cast", self.add("Erf", scaled), to=types.DOUBLE)
        return self.add("Mul", self.add("Add", erf, np.array(1.0)), np.array(0.5))

    def output(self, name, value, width=None) -> None:
        """Declare a value an output in the type of X, a column where width is None."""
        self._declare(name, self.add("Cast", value, to=self.type), self.type, width)

    def classes(self, probabilities, names) -> None:
        """Declare probabilities, and the class that has the largest as the prediction."""
        self.output("probabilities", probabilities, len(names))
        best = self.add("ArgMax", probabilities, axis=1, keepdims=0)
        kind, dtype = self._kind_of(names)
        named = self.add("Gather", names.astype(dtype), best, axis=0)
        self._declare("prediction", named, kind, None)

    def _kind_of(self, names):
        """The type that class names have in ONNX, and in NumPy."""
        types, given = self.onnx.TensorProto, names.dtype.kind
        if all(isinstance(name, str) for name in names.tolist()):
            return types.STRING, object
        if given not in "biuf":
            raise ValueError(
                f"model has the classes {names.tolist()[:3]}; accepted are texts, numbers and "
                "booleans"
            )
        if given == "b":
            return types.BOOL, bool
        return (types.DOUBLE, "f8") if given == "f" else (types.INT64, "i8")

    def labels(self, probabilities, width) -> None:
        """Declare probabilities of several labels, and those above a half as the prediction."""
        self.output("probabilities", probabilities, width)
        above = self.add("Greater", probabilities, np.array(0.5))
        types = self.onnx.TensorProto
        present = self.add("Cast", above, to=types.INT64)
        self._declare("prediction", present, types.INT64, width)

    def proto(self, name):
        """The whole as ONNX keeps it."""
        helper = self.onnx.helper
        graph = helper.make_graph(self.nodes, name, self.inputs, self.outputs, self.constants)
        opset = [helper.make_opsetid("", OPSET)]
        named = {"producer_name": "gnomon", "producer_version": __version__}
        return helper.make_model(graph, opset_imports=opset, ir_version=IR_VERSION, **named)

    def _declare(self, name, value, kind, width):
        shape = [None] if width is None else [None, width]
        self.nodes.append(self.onnx.helper.make_node("Identity", [value], [name]))
        self.outputs.append(self.onnx.helper.make_tensor_value_info(name, kind, shape))


def _affine_of(function, n_features) -> Affine:
    """Matrix and offset of a function of rows that has such."""
    offset = _dense(function(np.zeros((1, n_features))))[0]
    blocks = range(0, n_features, ROWS_AT_ONCE)
    unit = (np.eye(min(ROWS_AT_ONCE, n_features - k), n_features, k) for k in blocks)
    return Affine(np.concatenate([_dense(function(rows)) for rows in unit]) - offset, offset)


def _check_affine(steps):
    for name, step in steps.steps:
        if not isinstance(step, STEPS) or getattr(step, "clip", False):
            names = ", ".join(kind.__name__ for kind in STEPS)
            raise ValueError(
                f"the step {name!r} of model is not known as affine; accepted: {names}"
            )


def _dense(values) -> np.ndarray:
    return np.asarray(values.toarray() if hasattr(values, "toarray") else values, dtype=float)


def _writer_of(model):
    for kinds, writer in WRITERS:
        if isinstance(model, kinds):
            return writer
    names = ", ".join(kind.__name__ for kinds, _ in WRITERS for kind in kinds)
    raise ValueError(f"model ends in {type(model).__name__}; accepted are {names}")


def _write_nothing(model, graph, rows, places):
    """A model that does not predict."""


def _write_sppca(model, graph, rows, places):
    """Numbers are affine; probabilities are softmaxes of affine log odds."""
    if getattr(model, "links_used_", False):
        raise ValueError("model uses links, which a graph of single rows cannot; fit without links")
    if getattr(model, "likelihood_", "gaussian") == "probit":
        raise ValueError(
            "model has a probit likelihood, whose probabilities a graph cannot hold; accepted is "
            "likelihood='gaussian'"
        )
    coding, d = model.target_coding_, model.n_features_in_
    if coding.kind == "classes":
        graph.classes(_sppca_chances(model, graph, rows), model.classes_)
    elif coding.kind == "multilabel":
        scores = _affine_of(lambda X: model.predict_distribution(X).mean, d)
        graph.labels(graph.affine(rows, scores), len(scores.offset))
    elif coding.kind == "numeric":
        _write_numbers(model, graph, rows, places)


def _sppca_chances(model, graph, rows):
    """The model's own probabilities, those of its head, and the shares of the classes."""
    odds = _affine_of(lambda X: _log_odds(model, X), model.n_features_in_)
    chances, head = graph.softmax(graph.affine(rows, odds)), model.class_head_
    if head is not None:
        offset = head.intercept - model.mean_ @ head.coef
        linear = graph.affine(rows, Affine(head.coef, offset))
        chances = graph.mixed(chances, graph.softmax(linear), head.say)
    shares = getattr(model, "class_shares_", None)
    return chances if shares is None else graph.mixed(chances, shares, model.class_doubt_)


def _log_odds(model, X):
    """Log odds (n, C) of the classes by the Gaussian prediction of their codes."""
    mean = model.target_mean_ + (X - model.mean_) @ model.coef_
    odds = gaussian_log_odds(mean, model.target_covariance_, contrasts(len(model.classes_)))
    return odds + odds_of_shares(model)


def _write_numbers(model, graph, rows, places):
    """Expected values of one or several numbers."""
    shape = model.predict(np.zeros((1, model.n_features_in_))).shape
    function = _affine_of(lambda X: model.predict(X).reshape(len(X), -1), model.n_features_in_)
    values = graph.affine(rows, function)
    if len(shape) == 1:
        graph.output("prediction", graph.add("Reshape", values, np.array([-1])))
    else:
        graph.output("prediction", values, len(function.offset))


def _write_dcagm(model, graph, rows, places):
    """Shares of the Gaussians of each class, averaged with the logistic regression on the map."""
    half, logdets = stacked_half_inverses(np.asarray(model.covariances_, dtype=float))
    n_gaussians, q = model.means_.shape
    own = np.asarray(model.gaussian_classes_)
    turned = np.concatenate([H.T for H in half], axis=1)
    centres = np.concatenate([H @ mean for H, mean in zip(half, model.means_, strict=True)])
    flat = graph.affine(places, Affine(turned, -centres))
    stacked = graph.add("Reshape", flat, np.array([-1, n_gaussians, q]))
    squares = graph.add("ReduceSumSquare", stacked, np.array([2]), keepdims=0)
    weights = np.log(model.class_weights_[own] * model.weights_) - 0.5 * logdets
    shares = graph.softmax(graph.add("Add", graph.add("Mul", squares, np.array(-0.5)), weights))
    chances = graph.add("MatMul", shares, np.eye(len(model.classes_))[own])
    shares = getattr(model, "class_shares_", model.class_weights_)
    graph.classes(_told(model, graph, chances, places, shares), model.classes_)


def _told(model, graph, chances, places, shares):
    """Chances as far as they are believed, averaged with the logistic regression on the map."""
    factor = getattr(model, "class_sharpness_", 1.0)
    if factor != 1:
        odds = graph.add("Log", graph.add("Max", chances, np.array(LEAST_CHANCE)))
        chances = graph.softmax(graph.add("Mul", odds, np.array(factor)))
    if model.class_head_ is not None:
        coef, intercept = factor * model.class_head_.coef, factor * model.class_head_.intercept
        head = graph.softmax(graph.affine(places, Affine(coef, intercept)))
        chances = graph.mixed(chances, head, model.class_head_.say)
    return graph.mixed(chances, shares, getattr(model, "class_doubt_", 0.0))


def _write_bsdr(model, graph, rows, places):
    """Probabilities of the largest of independent normal scores, or of the sign of each."""
    if model.inference != "variational" or model.proba == "integral":
        raise ValueError(
            f"model has inference={model.inference!r} and proba={model.proba!r}; accepted are "
            "'variational' with 'auto' or 'plug-in'"
        )
    means = graph.affine(places, Affine(model.weights_, model.bias_))
    sd = graph.add("Sqrt", _score_variances(model, graph, places))
    n_scores = model.weights_.shape[1]
    if n_scores > 1 and len(model.classes_) == n_scores and _are_classes(model):
        chances = _largest(graph, means, sd, n_scores)
    else:
        chances = graph.normal_cdf(graph.add("Div", means, sd))
        if n_scores > 1:
            graph.labels(chances, n_scores)
            return
        absent = graph.add("Sub", np.array(1.0), chances)
        chances = graph.add("Concat", absent, chances, axis=1)
    shares = getattr(model, "class_shares_", None) if model.proba == "auto" else None
    told = chances if shares is None else _told(model, graph, chances, places, shares)
    graph.classes(told, model.classes_)


def _are_classes(model) -> bool:
    """Whether rows have one class: predictions are then a column."""
    return model.predict(np.zeros((1, model.n_features_in_))).ndim == 1


def _score_variances(model, graph, places):
    """1 + [1, z]' C_c [1, z] for every score c, by the factors of C_c."""
    C = np.asarray(model.weights_covariance_, dtype=float)
    factors = np.linalg.cholesky(C)
    n_scores, width = C.shape[:2]
    flat = np.concatenate([L[1:] for L in factors], axis=1)
    lengths = graph.affine(places, Affine(flat, np.concatenate([L[0] for L in factors])))
    stacked = graph.add("Reshape", lengths, np.array([-1, n_scores, width]))
    squares = graph.add("ReduceSumSquare", stacked, np.array([2]), keepdims=0)
    return graph.add("Add", squares, np.array(1.0))


def _largest(graph, means, sd, c):
    """P(the largest is t_k) = E_u prod over j != k of Phi((u sd_k + m_k - m_j) / sd_j)."""
    weights = np.exp(-0.5 * NODES**2)
    columns = []
    for k in range(c):
        others = np.flatnonzero(np.arange(c) != k)
        own_mean, own_sd = (graph.add("Gather", v, np.array([k]), axis=1) for v in (means, sd))
        their_mean, their_sd = (graph.add("Gather", v, others, axis=1) for v in (means, sd))
        shift = graph.add("Div", graph.add("Sub", own_mean, their_mean), their_sd)
        slope = graph.add("Div", own_sd, their_sd)
        shift, slope = (graph.add("Unsqueeze", v, np.array([2])) for v in (shift, slope))
        below = graph.normal_cdf(graph.add("Add", shift, graph.add("Mul", slope, NODES)))
        together = graph.add("ReduceProd", below, np.array([1]), keepdims=0)
        column = (weights / weights.sum())[:, None]
        columns.append(graph.add("MatMul", together, column))
    chances = graph.add("Concat", *columns, axis=1)
    return graph.add("Div", chances, graph.add("ReduceSum", chances, np.array([1]), keepdims=1))


WRITERS = (
    ((PPCA, PRPCA), _write_nothing),
    ((SPPCA,), _write_sppca),
    ((DCAGM,), _write_dcagm),
    ((BSDR,), _write_bsdr),
    ((BSDRRegressor,), _write_numbers),
)
