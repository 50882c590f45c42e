"""What each command does: read, fit, write, say."""

import shlex
import sys
from pathlib import Path

import numpy as np

from gnomon.exceptions import TableError
from gnomon.tools import results, workflow
from gnomon.tools.evaluation import held_out, is_labelled
from gnomon.tools.recipe import SCALES, apply
from gnomon.tools.report import Subject, write_report
from gnomon.tools.tables import read_table

TASKS = ("auto", "classes", "numbers")


def fit(console, *, path, out, reading, asked):
    """Fit a model to a table; write embedding, predictions, model and report."""
    asked = _question(asked)
    with console.stage(f"reading {path}"):
        table = read_table(path, **reading._asdict())
        ready = workflow.prepare(table, asked, console.note)
    model, X = _fitted(console, asked, ready)
    folder = _folder(out)
    roles = {"id": asked.id, "target": asked.target, "kind": ready.kind}
    console.wrote(workflow.save_fit(model, folder / "model.gnomon", ready.recipe, roles))
    Z, covariance = _embedding(console, model, X)
    _write_embedding(console, folder / "embedding.csv", ready, Z, covariance)
    _write_predictions(console, folder / "predictions.csv", model, X, ready)
    with console.stage("scoring on held-out rows") as tell:
        score = _score(model, X, ready, tell)
    subject = Subject(model, table, ready._replace(X=X), asked, Z, covariance, score=score)
    _write_report(console, folder / "report.html", subject)
    pairs = _summary(model, ready, score) | {"report": str(folder / "report.html")}
    console.result(pairs, {"score": score and score._asdict()})


def _fitted(console, asked, ready):
    """The fitted model, and X as it took it."""
    model = workflow.build(asked, ready)
    X = workflow.fill_gaps(model, ready.X, console.note)
    with console.stage(f"fitting {type(model).__name__}") as tell, console.warnings_as_notes():
        if "callback" in model.get_params():
            model.set_params(callback=_teller(tell))
        model.fit(X, ready.y, **workflow.extra_inputs(model, ready))
    if "callback" in model.get_params():
        model.set_params(callback=None)
    return model, X


def _teller(tell):
    def callback(n_iter, state, objective):
        tell(f"iteration {n_iter}")

    return callback


def transform(console, *, model_path, path, out, reading):
    """Write the embedding of a table."""
    fitted, _, X, ids = _opened(console, model_path, path, reading)
    Z, covariance = _embedding(console, fitted.model, X)
    deviations = None if covariance is None else workflow.standard_deviations(covariance)
    out = out or Path(f"{path.stem}-embedding.csv")
    _write(console, out, results.embedding_columns(ids, Z, deviations))


def predict(console, *, model_path, path, out, reading):
    """Write the predictions for a table."""
    fitted, _, X, ids = _opened(console, model_path, path, reading)
    if not hasattr(fitted.model, "predict"):
        raise TableError(
            f"{type(fitted.model).__name__} predicts nothing; fit a model with --target"
        )
    out = out or Path(f"{path.stem}-predictions.csv")
    _write(console, out, results.prediction_columns(fitted.model, X, ids))


def impute(console, *, model_path, path, out, reading):
    """Write a table with its gaps filled."""
    fitted, table, X, _ = _opened(console, model_path, path, reading)
    if not hasattr(fitted.model, "impute"):
        raise TableError(f"{type(fitted.model).__name__} fills no gaps; ppca and sppca do")
    if not isinstance(X, np.ndarray) or table.streamed:
        raise TableError(f"{path} is sparse or too large to fill; a dense table is wanted")
    with console.stage("filling"):
        filled, deviations = fitted.model.impute(X, return_std=True)
    console.say(f"{int(np.isnan(X).sum())} gaps filled")
    out = out or Path(f"{path.stem}-filled.csv")
    _write(console, out, results.imputed_columns(fitted.recipe, table, filled, deviations))


def inspect(console, *, model_path):
    """Say what is in a model file."""
    from gnomon.tools import modelfile

    file = modelfile.read(model_path)
    model = file.document["model"]
    roles = file.notes.get("roles", {})
    pairs = {
        "model": model["estimator"],
        "format": file.document["format"],
        "parameters": ", ".join(f"{k}={v}" for k, v in model["params"].items() if v is not None),
        "target": roles.get("target"),
        "attributes": ", ".join(model["attributes"]),
        "versions": ", ".join(f"{k} {v}" for k, v in file.document["versions"].items()),
        "arrays": f"{len(file.arrays)}, {sum(a.nbytes for a in file.arrays.values())} bytes",
        "checksum": "right",
    }
    console.result({name: value for name, value in pairs.items() if value is not None})


def _question(asked):
    """The options of a command as a `Question`, checked."""
    for name, value, options in (
        ("--task", asked["task"], TASKS),
        ("--scale", asked["scale"], SCALES),
    ):
        if value not in options:
            raise TableError(f"{name} {value!r}; accepted are {', '.join(options)}")
    asked = workflow.Question(**asked)
    return asked._replace(
        components=_number("--components", asked.components, int),
        supervision=_number("--supervision", asked.supervision, float),
    )


def _number(option, value, kind):
    if value is None or value == "auto":
        return value
    try:
        return kind(value)
    except ValueError:
        raise TableError(f"{option} {value!r}; a number or auto is wanted") from None


def _opened(console, model_path, path, reading):
    """The model, the table, its matrix and the names of its rows."""
    fitted = workflow.load_fit(model_path)
    with console.stage(f"reading {path}"):
        table = read_table(path, **reading._asdict())
        X = apply(fitted.recipe, table, console.note)
    X = workflow.fill_gaps(fitted.model, X, console.note)
    id_column = fitted.roles["id"]
    known = id_column if id_column in table.names else None
    return fitted, table, X, workflow.row_names(table, known, X.shape[0])


def _folder(out):
    folder = Path(out)
    if folder.exists() and not folder.is_dir():
        raise TableError(f"--out {out} is a file; a folder is wanted")
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _embedding(console, model, X):
    with console.stage("placing the rows"):
        return workflow.latent(model, X)


def _write(console, out, columns):
    written = results.write_rows(out, columns)
    if str(out) != "-":
        console.wrote(written)
        console.result({"rows": len(next(iter(columns.values()))), "written": str(written)})


def _write_embedding(console, path, ready, Z, covariance):
    deviations = None if covariance is None else workflow.standard_deviations(covariance)
    more = {} if ready.y is None else {"target": ready.y}
    columns = results.embedding_columns(ready.ids, Z, deviations, more)
    return console.wrote(results.write_rows(path, columns))


def _write_predictions(console, path, model, X, ready):
    """Predictions for the rows without a label, if there are any."""
    if ready.y is None or not hasattr(model, "predict"):
        return None
    rows = np.flatnonzero(~is_labelled(ready.y))
    if len(rows) == 0:
        return None
    columns = results.prediction_columns(model, X[rows], ready.ids[rows])
    return console.wrote(results.write_rows(path, columns))


def _write_report(console, path, subject, comparison=None):
    with console.stage("writing the report"):
        written = write_report(
            path, subject, command=command_line(), notes=console.notes, comparison=comparison
        )
    return console.wrote(written)


def _score(model, X, ready, tell):
    chunks = ready.chunks if type(model).__name__ == "DCAGM" else None
    return held_out(model, X, ready.y, ready.kind, chunks=chunks, tell=tell)


def _summary(model, ready, score):
    n, d = ready.X.shape
    labelled = workflow.count_labelled(ready.y)
    pairs = {
        "model": f"{type(model).__name__}, {model.transform(ready.X[:1]).shape[1]} components",
        "rows": f"{n}, {labelled} labelled" if ready.y is not None else f"{n}",
        "features": f"{d}",
    }
    if score is not None:
        pairs["held out"] = describe(score)
    return pairs


def describe(score) -> str:
    """A score as a sentence."""
    text = f"{score.name} {score.value:.3f} ({score.low:.3f} to {score.high:.3f})"
    if score.control is not None:
        text += f"; with permuted labels {score.control:.3f}"
    return text


def command_line() -> str:
    """The command as it was typed."""
    return shlex.join(["gnomon", *sys.argv[1:]])
