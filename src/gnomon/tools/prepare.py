"""From a table and a question to what a model takes, and the files that keep both."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import get_tags

import gnomon
from gnomon.estimators import count, kind_of, labelled_rows
from gnomon.exceptions import ModelFileError, TableError
from gnomon.linalg.data import has_gaps
from gnomon.tools import modelfile
from gnomon.tools.recipe import SCALES, Recipe, apply, plan
from gnomon.tools.tables import Table, as_numbers, as_texts, as_values, column_kind, open_table

TASKS = ("auto", "classes", "numeric")
# So many classes are usual; more in a column of numbers may be measurements, and it is said.
MANY_CLASSES = 20


class Question(NamedTuple):
    """What is asked of a table."""

    model: str = "auto"
    target: str | None = None
    task: str = "auto"
    components: int | str = "auto"
    unlabelled: str | None = None
    links: Path | str | None = None
    chunks: str | None = None
    id: str | None = None
    ignore: tuple[str, ...] = ()
    supervision: float | str | None = None
    scale: str = "auto"
    seed: int = 0


class PreparedTable(NamedTuple):
    """A table as models take it; `gnomon.read_table` says what the fields hold."""

    X: Any
    y: np.ndarray | None
    kind: str | None
    ids: np.ndarray
    chunks: np.ndarray | None
    links: Any
    recipe: Recipe

    @property
    def labelled(self) -> np.ndarray | None:
        """Mask of the rows with a label; None without a target."""
        return None if self.y is None else labelled_rows(self.y, self.kind)


class SavedModel(NamedTuple):
    """A model from a file, with the rule for its tables; `notes` are all that the file has."""

    model: Any
    recipe: Recipe
    asked: Question
    notes: dict


def open_for(saved: SavedModel, path, **options) -> Table:
    """The table at a path, read as that of the model was."""
    return open_table(path, **saved.notes.get("reading", {}) | options)


def read_question(asked) -> Question:
    """The options of a command as a `Question`, checked."""
    for name, options in (("task", TASKS), ("scale", SCALES)):
        if asked[name] not in options:
            raise TableError(f"--{name} {asked[name]!r}; accepted are {', '.join(options)}")
    question = Question(**asked)
    return question._replace(
        components=read_number("--components", question.components, int),
        supervision=read_number("--supervision", question.supervision, float),
    )


def read_number(option, value, kind):
    """A number from what was typed; None and auto stay."""
    if value is None or value == "auto":
        return value
    try:
        return kind(value)
    except ValueError:
        raise TableError(f"{option} {value!r}; a number or auto is wanted") from None


def prepare(table: Table, asked: Question, note) -> PreparedTable:
    """X, y and what else the question names, from the table."""
    for name, role in ((asked.target, "target"), (asked.id, "id"), (asked.chunks, "chunk column")):
        if name is not None:
            table.check(name, role)
    used = [name for name in (asked.target, asked.id, asked.chunks, *asked.ignore) if name]
    recipe = plan(table, ignore=used, scale=asked.scale, report=note)
    for name, reason in recipe.left_out.items():
        note(f"column {name!r} {reason}; left out")
    X = apply(recipe, table, note)
    ids = row_names(table, asked.id, X.shape[0])
    y, kind = _target(table, asked)
    if asked.target is not None:
        _check_variety(table, asked, y, kind, note)
    chunks = None if asked.chunks is None else _chunk_ids(table.column(asked.chunks))
    links = None if asked.links is None else _read_links(asked.links, ids)
    return PreparedTable(X, y, kind, ids, chunks, links, recipe)


def prepare_again(saved: SavedModel, table: Table, note) -> tuple[PreparedTable, Question]:
    """A table as a saved model takes it; the target where the table has it."""
    asked = saved.asked
    X = apply(saved.recipe, table, note)
    if asked.target not in table.names:
        asked = asked._replace(target=None)
    if asked.id not in table.names:
        asked = asked._replace(id=None)
    y, kind = _target(table, asked)
    if y is None:
        asked = asked._replace(target=None)
    ids = row_names(table, asked.id, X.shape[0])
    return PreparedTable(X, y, kind, ids, None, None, saved.recipe), asked


def row_names(table, name, n_rows) -> np.ndarray:
    """The names of the rows: the texts of a column, or numbers from 1."""
    if name is None:
        return np.arange(1, n_rows + 1)
    names = as_texts(table.column(name))
    return np.array(["" if value is None else value for value in names], dtype=object)


def without_gaps(X, recipe: Recipe):
    """X with column means of the fit in the gaps, for a model that takes none."""
    if not has_gaps(X):
        return X
    means = np.nanmean(X, axis=0) if recipe.means is None else recipe.means
    return np.where(np.isnan(X), means, X)


def fill_gaps(model, X, recipe, note):
    """X as the model takes it: one that takes no gaps gets column means of the fit, and a note."""
    if get_tags(model).input_tags.allow_nan or not has_gaps(X):
        return X
    filled = count(int(np.isnan(X).sum()), "was", "were")
    note(f"{type(model).__name__} takes no gaps; {filled} filled with column means")
    return without_gaps(X, recipe)


def save_fit(model, path, ready: PreparedTable, asked: Question, facts=None):
    """The model file with the rule for its tables, what the target was taken for, and facts."""
    links = None if asked.links is None else str(asked.links)
    question = asked._replace(links=links, task=ready.kind or asked.task)._asdict()
    notes = {"recipe": ready.recipe.to_notes(), "question": question}
    return modelfile.save(model, path, notes=notes | {"fit": facts or {}})


def load_fit(path) -> SavedModel:
    """What `save_fit` wrote."""
    model, notes = modelfile.read(path, lambda file: (file.model(), file.notes))
    if "recipe" not in notes:
        raise TableError(
            f"{path} was saved in Python, without a rule for tables; fit it with gnomon fit"
        )
    try:
        return saved_model(model, notes)
    except ModelFileError as error:
        raise ModelFileError(f"{path} {error}") from None


def saved_model(model, notes) -> SavedModel:
    """A model and the notes of its file, whose rule for tables is checked."""
    try:
        recipe, asked = Recipe.from_notes(notes["recipe"]), _question(notes["question"])
        if getattr(model, "n_features_in_", len(recipe.names)) != len(recipe.names):
            raise ValueError("the rule has another number of features than the model")
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ModelFileError("holds a rule for tables that cannot be read") from error
    return SavedModel(model, recipe, asked, notes)


def _question(notes) -> Question:
    """The question of a file; the first files called numeric targets numbers."""
    task = notes["task"]
    for value in notes.values():
        several = value if isinstance(value, tuple | list) else (value,)
        if not all(part is None or isinstance(part, str | int | float) for part in several):
            raise ValueError(f"a question has no {value!r}")
    return Question(**notes | {"task": "numeric" if task == "numbers" else task})


def _target(table, asked):
    """The target and what it holds; None for both where there is none."""
    if asked.target is None:
        return None, None
    column = table.column(asked.target)
    texts = as_texts(column)
    missing = np.array([text is None or text == asked.unlabelled for text in texts])
    if missing.all():
        return None, None
    kind = asked.task
    if kind == "auto":
        kind = kind_of(as_values(column.filter(~missing)))
    if kind == "classes":
        return np.where(missing, None, texts), kind
    pairs = zip(texts, missing, strict=True)
    try:
        values = np.array([np.nan if gap else float(t) for t, gap in pairs])
    except ValueError as error:
        raise TableError(f"the target {asked.target!r} is no number: {error}") from None
    return values, kind


def _check_variety(table, asked, y, kind, note):
    """Raise where no model could learn the target; say where it may be meant otherwise."""
    name = f"the target {asked.target!r}"
    if y is None:
        raise TableError(f"{name} of {table.path} has no value")
    known = y[labelled_rows(y, kind)]
    values = set(known)
    if len(values) == 1:
        raise TableError(
            f"{name} of {table.path} has only one value, {values.pop()!r}; two at least are wanted"
        )
    if kind != "classes":
        return
    many, hardly_repeat = len(values) > MANY_CLASSES, 2 * len(values) > len(known)
    if many and hardly_repeat:
        raise TableError(
            f"{name} of {table.path} has {len(values)} different values in {len(known)} rows; it "
            "looks like a name, not like classes; if they are numbers, say --task numeric"
        )
    are_numbers = column_kind(table.column(asked.target)) == "number"
    if (many or hardly_repeat) and are_numbers and asked.task == "auto":
        note(
            f"{name} has {len(values)} different whole numbers in {len(known)} rows, taken for "
            "classes; if they are measurements, say --task numeric"
        )


def _chunk_ids(column):
    texts = as_texts(column)
    present = sorted({text for text in texts if text is not None})
    numbers = {text: i for i, text in enumerate(present)}
    return np.array([numbers.get(text, -1) for text in texts])


def _read_links(path, ids):
    edges = open_table(path)
    if len(edges.names) < 2:
        raise TableError(f"{path} has one column; two with the names of linked rows are wanted")
    ends = [as_texts(edges.column(name)) for name in edges.names[:2]]
    ids = [str(name) for name in ids]
    known = set(ids)
    if len(known) < len(ids):
        raise TableError("links need a name of its own for every row; name one with --id")
    unknown = [end for end in np.concatenate(ends) if end not in known]
    if unknown:
        raise TableError(
            f"{path} links {unknown[0]!r}, which is no row of the table; "
            "rows are named by --id, or numbered from 1"
        )
    weights = _link_weights(edges) if len(edges.names) > 2 else None
    pairs = list(zip(*ends, strict=True))
    return gnomon.Links.from_edges(pairs, nodes=ids, weights=weights)


def _link_weights(edges):
    name = edges.names[2]
    column = edges.column(name)
    if column_kind(column) != "number":
        raise TableError(
            f"{edges.path}: column {name!r} holds {column.type}; weights of links are numbers"
        )
    return as_numbers(column)
