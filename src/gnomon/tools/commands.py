"""What each command does: read, fit, write, say."""

import hashlib
import json
import shlex
import sys
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
from sklearn.base import clone
from threadpoolctl import threadpool_limits

import gnomon
from gnomon.estimators import NEIGHBOURS, count
from gnomon.estimators.neighbour_layout import NeighbourLayout
from gnomon.exceptions import TableError
from gnomon.tools import fillings, modelfile, prepare, write
from gnomon.tools.choose_model import LAID_OUT, MODELS, choose_model, extra_inputs
from gnomon.tools.compare.held_out import by_short_name, describe, held_out
from gnomon.tools.compare.scoring import Deadline
from gnomon.tools.compare.trials import INTERRUPTED
from gnomon.tools.prepare import fill_gaps
from gnomon.tools.recipe import apply
from gnomon.tools.report.page import Subject, write_report
from gnomon.tools.tables import open_table

# What of a score a model file keeps.
SCORE = ("of", "name", "value", "low", "high", "n_rows", "control", "baseline")
# What of a comparison goes to its table.
COMPARED = (
    *("model", "n_components", "score", "low", "high", "n_rows", "chosen", "mark"),
    *("own", "control", "seconds"),
)
# Seconds that a step gets where none are left: it ends at once, and says so.
MOMENT = 1e-3
# Of the time that a command has left, the share for choosing the number of dimensions: the fit
# itself comes after, and the scoring of it.
CHOOSING_SHARE = 1 / 3
# Entries of a table whose products take less time than starting threads for them.
SMALL = 1e6


def fit(console, *, path, out, reading, asked, time_limit=None):
    """Fit a model to a table; write embedding, predictions, model and report."""
    until, asked = _deadline(time_limit), prepare.read_question(asked)
    folder = write.place(path, out)
    write.check_folder_apart(folder, path, asked.links)
    table, ready, asked = _prepared(console, path, asked, **reading)
    model, X, choice = _fitted(console, asked, ready, until)
    earlier = write.earlier_results(folder)
    subject = _written(console, folder, model, table, ready, asked, X, until)
    subject.choice = choice
    report_path = _write_report(console, folder / write.REPORT, subject)
    # Not before: on a full disk what was there stays.
    write.remove(earlier, console.files)
    _conclude(console, subject, report_path)


def _deadline(time_limit):
    """When the command has to end, from now."""
    if time_limit is not None and not time_limit > 0:
        raise TableError(f"--time-limit {time_limit:g}; a number of seconds above 0 is wanted")
    return Deadline(time_limit)


def _prepared(console, path, asked, **reading):
    """The table, what the question makes of it, and the question with the names of the rows."""
    with console.stage(f"reading {path}"):
        table = open_table(path, note=console.note, **reading)
        asked = prepare.named_rows(table, asked, console.note)
        ready = prepare.prepare(table, asked, console.note)
    limit_threads(ready.X)
    return table, ready, asked


def _fitted(console, asked, ready, until):
    """The fitted model, X as it took it, and how its number of dimensions was chosen."""
    with console.warnings_as_notes():
        options = {"progress": "auto" if console.is_talking else False}
        if until.seconds is not None:
            options["time_limit"] = max(until.left, MOMENT) * CHOOSING_SHARE
        model, choice = choose_model(asked, ready, console.note, **options)
    linked = ready.links is not None
    X = fill_gaps(model, ready.X, ready.recipe, console.note)
    with console.stage(f"fitting {type(model).__name__}") as tell, console.warnings_as_notes():
        if "callback" in model.get_params():
            model.set_params(callback=lambda n_iter, *_: _watch(tell, n_iter, until))
        model.fit(X, ready.y, **extra_inputs(model, ready))
    if until():
        console.note(f"the time limit of {until.seconds:g} s ended the fit, or came before its end")
    if "callback" in model.get_params():
        model.set_params(callback=None)
    if hasattr(model, "size_reason_"):
        model.set_params(n_components=model.n_components_)
        taken = count(model.n_components_, "dimension was", "dimensions were")
        console.note(f"{taken} taken, by labels of rows held out: {model.size_reason_}")
    if linked and not getattr(model, "links_used_", True):
        console.note("the links do not help to find labels left out, and are not used")
    return model, X, choice


def _watch(tell, n_iter, until):
    """Say how far a fit is, and whether its time is over."""
    tell(f"iteration {n_iter}")
    return until()


def _written(console, folder, model, table, ready, asked, X, until):
    """Write model, embedding and predictions; the subject of the report, scored."""
    write.make_folder(folder)
    file, suffix = folder / write.MODEL, write.suffix_for(table.path)
    graph = _graph(ready)
    layout = _laid_out(console, asked.layout, model, X, graph, asked.seed)
    facts = _facts(table, ready)
    console.wrote(prepare.save_fit(model, file, ready, asked, facts, layout))
    more = {} if ready.y is None else prepare.target_columns(asked, ready.y)
    with console.stage("placing the rows"):
        batches = write.embedding_batches(model, X, ready.ids, more, graph, layout)
        console.wrote(write.write_batches(folder / f"embedding{suffix}", batches))
    _write_predictions(console, folder / f"predictions{suffix}", model, X, ready, asked)
    # The score takes longest and may be interrupted: the model is kept before, and with it after.
    score = _score(console, model, X, ready, asked, until)
    if score is not None:
        facts["score"] = {name: getattr(score, name) for name in SCORE}
    prepare.save_fit(model, file, ready, asked, facts, layout)
    subject = Subject.of(model, table, ready, asked, X, graph, note=console.note)
    subject.score, subject.layout = score, layout
    return subject


def _laid_out(console, wanted, model, X, graph, seed):
    """The layout of the rows by their neighbours, None where the axes were asked for."""
    if wanted != NEIGHBOURS:
        return None
    with console.stage("laying out the picture"):
        Z = write.coordinates(model, X, graph)
        if Z.shape[1] <= 2:
            console.note(
                "two axes show all of this map; a layout by neighbours is for more, say "
                f"--components {LAID_OUT}"
            )
        return NeighbourLayout(random_state=seed).fit(Z)


def _graph(ready):
    """The links of the rows of a fit, None where there are none."""
    if ready.links is None:
        return None
    return prepare.Graph(ready.links, np.arange(len(ready.ids)))


def _facts(table, ready) -> dict:
    """What the model file says of its fit."""
    facts: dict = {"table": table.path.name, "rows": len(ready.ids)}
    facts["fingerprint"] = _fingerprint(ready)
    facts["date"] = datetime.now(UTC).isoformat(timespec="seconds")
    if ready.y is not None:
        facts["labelled"] = int(ready.labelled.sum())
    if ready.kind == "classes":
        names, counts = np.unique(ready.y[ready.labelled].astype(str), return_counts=True)
        facts["classes"] = dict(zip(names.tolist(), counts.tolist(), strict=True))
    return facts


def _fingerprint(ready) -> str:
    """A text that another table does not have: a digest of what the model takes of this one."""
    X, digest = ready.X, hashlib.sha256()
    arrays = [X] if isinstance(X, np.ndarray) else [X.data, X.indices, X.indptr]
    if ready.y is not None:
        arrays.append(ready.y if ready.y.dtype != object else np.array(list(map(repr, ready.y))))
    for array in arrays:
        digest.update(np.ascontiguousarray(array).data)
    return digest.hexdigest()


def _write_predictions(console, path, model, X, ready, asked):
    """Predictions for the rows that lack a label, or one of several, if there are any."""
    if ready.y is None or not hasattr(model, "predict"):
        return
    rows = np.flatnonzero(~ready.labelled)
    if len(rows) == 0:
        return
    with console.stage("predicting"):
        what = {"kind": ready.kind, "names": asked.targets, "graph": _graph(ready)}
        batches = write.prediction_batches(model, X, ready.ids, rows, **what)
        console.wrote(write.write_batches(path, batches))


def _score(console, model, X, ready, asked, until):
    known = {"names": asked.targets} | extra_inputs(model, ready)
    if isinstance(model, gnomon.PPCA):
        # The number of dimensions that was chosen is scored, not the choice of it in every fold.
        model = clone(model).set_params(n_components=model.n_components_)
    with console.stage("scoring on held-out rows") as tell:
        score = held_out(model, X, ready.y, ready.kind, tell=tell, until=until, **known)
    if until.seconds is not None and (score is None or score.control is None):
        rows = "there is no score" if score is None else f"it rests on {count(score.n_rows, 'row')}"
        console.note(f"the time limit of {until.seconds:g} s ended the scoring: {rows}")
    elif score is None and ready.y is not None:
        console.note("there are too few labelled rows to hold some out, so there is no score")
    return score


def transform(console, *, model_path, path, out, reading, links=None):
    """Write the embedding of a table."""
    saved, _, X, ids = _opened(console, model_path, path, reading)
    graph = prepare.graph_of(saved, links, ids, console.note)
    out = _apart(out or write.named_after(path, "embedding"), model_path, path, links)
    batches = write.embedding_batches(saved.model, X, ids, graph=graph, layout=saved.layout)
    _write(console, out, batches, len(ids))


def predict(console, *, model_path, path, out, reading, links=None):
    """Write the predictions for a table."""
    saved, _, X, ids = _opened(console, model_path, path, reading)
    graph = prepare.graph_of(saved, links, ids, console.note)
    if not hasattr(saved.model, "predict"):
        raise TableError(
            f"{type(saved.model).__name__} predicts nothing; fit a model with --target"
        )
    out = _apart(out or write.named_after(path, "predictions"), model_path, path, links)
    what = {"kind": saved.asked.task, "names": saved.asked.targets, "graph": graph}
    _write(console, out, write.prediction_batches(saved.model, X, ids, **what), len(ids))


def impute(console, *, model_path, path, out, reading, beyond_range):
    """Write a table with its gaps filled."""
    saved, table, X, _ = _opened(console, model_path, path, reading)
    if not hasattr(saved.model, "impute"):
        raise TableError(f"{type(saved.model).__name__} fills no gaps; ppca and sppca do")
    if not isinstance(X, np.ndarray) or table.streamed:
        raise TableError(f"{path} is sparse or too large to fill; a dense table is wanted")
    out = _apart(out or write.named_after(path, "filled"), model_path, path)
    with console.stage("filling"):
        imputed = saved.model.impute(X, return_std=True)
        filled = fillings.fillings(saved.recipe, table, *imputed, within_range=not beyond_range)
    how = write.copying(table, out)
    columns = fillings.imputed_columns(saved.recipe, table, filled, to_text=bool(how))
    if table.reading.transpose and not saved.recipe.matrix_names:
        columns, how = _turned_back(table, columns, how)
    _write(console, out, [columns], len(X), **how)
    n_gaps = sum(filling.n_gaps for filling in filled.values())
    console.say(f"{count(n_gaps, 'gap')} filled")


def _turned_back(table, columns, how):
    """The columns of a turned table as its file has them, and how these are written."""
    from gnomon.tools.transpose import turned_back

    names = open_table(table.path, table.reading, transpose=False).names
    columns = turned_back(columns, names[0], to_text=bool(how))
    return columns, how | {"copied": frozenset(names)} if how else {}


def _opened(console, model_path, path, reading):
    """The model, the table, its matrix and the names of its rows."""
    saved = prepare.load_fit(model_path)
    with console.stage(f"reading {path}"):
        table = prepare.open_for(saved, path, console.note, **reading)
        X = apply(saved.recipe, table, console.note)
    X = fill_gaps(saved.model, X, saved.recipe, console.note)
    known = saved.asked.id if saved.asked.id in table.names else None
    return saved, table, X, prepare.row_names(table, known, X.shape[0])


def _apart(out, *inputs):
    """Where to write, if that can be done and is none of the files that are read."""
    write.check_place(out)
    write.check_apart(out, *inputs)
    return out


def _write(console, out, batches, n_rows, **how):
    with console.stage(f"writing {out}"):
        written = write.write_batches(out, batches, **how)
    if str(out) != "-":
        console.wrote(written)
        console.result({"rows": n_rows, "written": str(written)})


def compare(console, *, path, out, reading, asked, components, models, time_limit):
    """Compare projections on a table; say which one to use."""
    asked = prepare.read_question(asked)
    if asked.target is None:
        raise TableError("compare scores by the target; name its column with --target")
    sizes = [prepare.read_number("--components", part, int) for part in components.split(",")]
    until = _deadline(time_limit)
    if out is not None:
        write.check_folder_apart(write.place(path, out), path, asked.links)
    _, ready, asked = _prepared(console, path, asked, **reading)
    names = None if models is None else [name.strip() for name in models.split(",")]
    left = None if time_limit is None else max(until.left, MOMENT)
    result = _compared(console, ready, asked.seed, sizes, models=names, time_limit=left)
    if out is not None:
        columns = {name: [getattr(row, name) for row in result.rows] for name in COMPARED}
        console.wrote(write.write_batches(write.make_folder(out) / write.COMPARISON, [columns]))
    figures = dict(zip(("value", "low", "high"), result.expected, strict=True))
    plain = {"recommendation": result.recommendation, "expected": figures, "code": result.code}
    console.text(str(result), plain)
    if result.stopped == INTERRUPTED:
        raise KeyboardInterrupt


def _compared(console, ready, seed, sizes, **options):
    with console.warnings_as_notes():
        return gnomon.compare(
            ready.X,
            ready.y,
            **options,
            target=ready.kind,
            n_components=sizes,
            links=None if ready.links == NEIGHBOURS else ready.links,
            chunks=ready.chunks,
            random_state=seed,
            progress="auto" if console.is_talking else False,
        )


def report(console, *, model_path, path, out, reading, links=None, time_limit=None, layout=None):
    """Write the report of a model on a table."""
    until = _deadline(time_limit)
    prepare.check_layout(layout)
    out = _apart(out or Path(write.REPORT), model_path, path, links)
    saved = prepare.load_fit(model_path)
    with console.stage(f"reading {path}"):
        table = prepare.open_for(saved, path, console.note, **reading)
        ready, asked = prepare.prepare_again(saved, table, console.note)
    graph = prepare.graph_of(saved, links, ready.ids, console.note)
    X = fill_gaps(saved.model, ready.X, saved.recipe, console.note)
    if graph is not None:
        ready = ready._replace(links=graph.links.subset(graph.nodes))
    # Without its links a model is another one.
    scored = graph is not None or "nodes" not in saved.notes
    score = _score_again(console, saved, X, ready, asked, graph, until) if scored else None
    subject = Subject.of(saved.model, table, ready, asked, X, graph, note=console.note)
    subject.score, subject.model_path = score, model_path
    subject.layout, subject.layout_is_saved = saved.layout, saved.layout is not None
    if layout is not None and (layout != NEIGHBOURS or saved.layout is None):
        subject.layout = _laid_out(console, layout, saved.model, X, graph, asked.seed)
        subject.layout_is_saved = False
    _conclude(console, subject, _write_report(console, out, subject))


def _score_again(console, saved, X, ready, asked, graph, until):
    """The score by folds on the table of the fit, and on any other that of the model as it is."""
    if saved.notes.get("fit", {}).get("fingerprint") == _fingerprint(ready):
        return _score(console, saved.model, X, ready, asked, until)
    from gnomon.tools.compare.as_saved import as_saved

    if ready.kind == "classes" and (problem := prepare.strange_labels(saved.model, ready.y)):
        console.note(f"the target {asked.target!r}: {problem}")
    with console.stage("scoring the saved model"):
        known = {"names": asked.targets, "graph": graph}
        score = as_saved(saved.model, X, ready.y, ready.kind, **known)
    if score is not None:
        console.note(
            "the table is not the one of the fit, so the saved model was scored on it as it is; "
            "rows that are in both make it look better than it is"
        )
    elif ready.y is not None:
        console.note("the labelled rows are too few, or too alike, to score the model on")
    return score


def label(console, *, path, out, reading, asked, shown, model, seed, port, browser):
    """Open a page that takes labels for the rows of a table, until it is interrupted."""
    from gnomon.tools.label.run import open_session, require_extra, serve

    require_extra()
    from gnomon.tools.label.rows import from_table

    model = _labelling_model(model)
    folder = Path(f"{write.stem_of(path)}-labels") if out is None else out
    question = prepare.read_question(asked)
    with console.stage(f"reading {path}"):
        table = open_table(path, note=console.note, **reading)
        rows = from_table(table, question, console.note, **shown)
    limit_threads(rows.X)
    with console.stage("placing the rows"):
        session = open_session(rows, folder, model=model, random_state=seed)
    console.wrote(session.path)

    def tell(url):
        n = count(session.n_labels, "label")
        console.say(f"{n} in {folder}; the page is open until you press Ctrl-C:")
        print(json.dumps({"url": url}) if console.as_json else url, flush=True)

    serve(session, port, tell, open_browser=browser)
    pairs = {"labels": f"{session.n_labels:,} of {len(rows.ids):,} rows", "folder": str(folder)}
    pairs["go on with"] = shlex.join(["gnomon", *sys.argv[1:]])
    console.result(pairs, {"labelled": session.n_labels, "rows": len(rows.ids)})


def _labelling_model(name):
    """The model of a labelling page by its public name."""
    from gnomon.tools.label.learning import MODELS as LEARNERS

    accepted = {"auto": "auto"} | {k: public for k, public in MODELS.items() if public in LEARNERS}
    if name.lower() not in accepted:
        raise TableError(f"--model {name!r}; accepted are {', '.join(accepted)}")
    return accepted[name.lower()]


def demo(console, *, out):
    """Fit, compare and report on bundled data with few labels and some gaps."""
    from gnomon.tools.demo import ASKED, COMPARED_MODELS, OPTIONS, hidden_accuracy, write_wine

    folder = write.make_folder(out)
    path = console.wrote(write_wine(folder / "wine.csv"))
    console.say(f"{path}: 178 wines, 13 measurements, 15 labels, one cell in twenty empty")
    table, ready, _ = _prepared(console, path, ASKED)
    model, X, _ = _fitted(console, ASKED, ready, Deadline())
    subject = _written(console, folder, model, table, ready, ASKED, X, Deadline())
    result = _compared(console, ready, ASKED.seed, (2,), models=COMPARED_MODELS)
    console.say(result.recommendation)
    command = shlex.join(["gnomon", "fit", str(path), *OPTIONS, "--out", str(folder)])
    report_path = _write_report(
        console, folder / write.REPORT, subject, command=command, comparison=result
    )
    console.say(
        f"of the {178 - 15} labels that were hidden, {hidden_accuracy(subject):.1%} are found"
    )
    _conclude(console, subject, report_path.resolve())


def inspect(console, *, model_path, details):
    """Say what is in a model file."""
    from gnomon.tools.inspection import for_people, for_programs

    def said(file):
        if console.as_json:
            return for_programs(file, model_path)
        return for_people(file, model_path, describe=describe, details=details)

    console.result(modelfile.read(model_path, said))


def _write_report(console, path, subject, *, command=None, comparison=None):
    command = command or shlex.join(["gnomon", *sys.argv[1:]])
    with console.stage("writing the report"):
        written = write_report(
            path, subject, command=command, notes=console.notes, comparison=comparison
        )
    return console.wrote(written)


def _conclude(console, subject, report_path):
    n, d, q = subject.n_rows, subject.ready.X.shape[1], subject.Z.shape[1]
    name, labelled = type(subject.model).__name__, subject.labelled
    known = None if labelled is None else int(labelled.sum())
    rows = f"{n:,}" if known is None else f"{n:,}, {known:,} labelled"
    pairs = {"model": f"{name}, {count(q, 'dimension')}", "rows": rows, "features": f"{d:,}"}
    plain = {"model": name, "dimensions": q, "rows": n, "features": d, "labelled": known}
    figures = by_short_name(subject.score)
    pairs |= {key: describe(score) for key, score in figures.items()}
    plain |= {"held out": None} | {key: score.plain() for key, score in figures.items()}
    console.result(pairs | {"report": str(report_path)}, plain)


def limit_threads(X):
    """One thread for products with a small X, from now on: starting more takes longer."""
    if np.prod(X.shape) <= SMALL:
        threadpool_limits(1, user_api="blas")
