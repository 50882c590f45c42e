"""From a table and a question to what a model takes, and the files that keep both."""

import re
from collections import Counter
from collections.abc import Mapping
from decimal import Decimal
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np
from sklearn.utils import get_tags

import gnomon
from gnomon.estimators import NEIGHBOURS, count, kind_of, labelled_rows
from gnomon.estimators.neighbour_layout import LAYOUTS, NeighbourLayout
from gnomon.exceptions import ModelFileError, TableError
from gnomon.linalg.data import has_gaps
from gnomon.tools import modelfile
from gnomon.tools.recipe import SCALES, Recipe, apply, gap_counts, left_out_text, plan
from gnomon.tools.tables import (
    NO_VALUE,
    Reading,
    Table,
    as_numbers,
    as_texts,
    as_values,
    column_kind,
    open_table,
)

TASKS = ("auto", "classes", "numeric", "multilabel")
# Words for a label that a row has or has not, in lower case.
WORDS = {"yes": 1.0, "no": 0.0, "true": 1.0, "false": 0.0, "1": 1.0, "0": 0.0}
# Labels that have a value, which other texts have too: 1 is 1.0, and a day its midnight. A number
# that begins with 0 is a code: 01 is not 1.
NUMERIC = re.compile(r"-?(0|[1-9]\d*)(\.\d*)?([eE][-+]?\d{1,3})?")
MIDNIGHT = re.compile(r"^(\d{4}-\d\d-\d\d)[ T]00:00(:00(\.0+)?)?$")
# So many classes are usual; more in a column of numbers may be measurements, and it is said.
MANY_CLASSES = 20
# Labels and classes that are named where they do not fit.
MOST_NAMED = 5
# With fewer rows, texts that differ everywhere may be categories.
NAMED_ROWS = 10
# What a column without a name is called: of a text file, by pandas, and in its parquet files.
INDICES = ("column 1", "Unnamed: 0", "__index_level_0__")


class Question(NamedTuple):
    """What is asked of a table."""

    model: str = "auto"
    target: str | tuple[str, ...] | None = None
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
    layout: str = LAYOUTS[0]

    @property
    def targets(self) -> tuple[str, ...]:
        """The columns to explain: none, one or several."""
        if self.target is None:
            return ()
        return (self.target,) if isinstance(self.target, str) else tuple(self.target)


class PreparedTable(NamedTuple):
    """A table as models take it; `gnomon.read_table` says what the fields hold."""

    X: Any
    y: np.ndarray | None
    kind: str | None
    ids: np.ndarray
    chunks: np.ndarray | None
    links: Any
    recipe: Recipe
    gaps: Mapping[str, int] = MappingProxyType({})
    reading: Reading = Reading()

    @property
    def labelled(self) -> np.ndarray | None:
        """Mask of the rows with a label; None without a target."""
        return None if self.y is None else labelled_rows(self.y, self.kind)


class Graph(NamedTuple):
    """Links, and the node of every row of a table."""

    links: Any
    nodes: np.ndarray

    def of(self, rows) -> dict:
        """The links of some rows, as models take them."""
        return {"links": self.links, "sample_index": self.nodes[rows]}


class SavedModel(NamedTuple):
    """A model from a file, with the rule for its tables; `notes` are all that the file has."""

    model: Any
    recipe: Recipe
    asked: Question
    reading: Reading = Reading()
    notes: Mapping = MappingProxyType({})
    layout: NeighbourLayout | None = None

    @property
    def kinds(self) -> dict[str, str]:
        """Of the columns of its tables, whether they hold number, date or text."""
        features = self.recipe.features
        return {f.column: "text" if f.kind == "category" else f.kind for f in features}


def check_layout(layout):
    """Refuse a layout that there is not; None is none asked for."""
    if layout is not None and layout not in LAYOUTS:
        raise TableError(f"--layout {layout!r}; accepted are {', '.join(LAYOUTS)}")


def read_question(asked) -> Question:
    """The options of a command as a `Question`, checked."""
    check_layout(asked.get("layout"))
    for name, options in (("task", TASKS), ("scale", SCALES)):
        if asked[name] not in options:
            raise TableError(f"--{name} {asked[name]!r}; accepted are {', '.join(options)}")
    question = Question(**asked)
    return question._replace(
        target=_one_or_several(question.target),
        links=NEIGHBOURS if str(question.links) == NEIGHBOURS else question.links,
        components=read_number("--components", question.components, int),
        supervision=read_number("--supervision", question.supervision, float),
    )


def _one_or_several(names):
    """The target as a question has it, from what was typed: None, a name or names."""
    if names is None or isinstance(names, str):
        return names
    twice = {name for name in names if list(names).count(name) > 1}
    if twice:
        raise TableError(f"--target {min(twice)!r} is given more than once; once is enough")
    return tuple(names) if len(names) > 1 else next(iter(names), None)


def read_number(option, value, kind):
    """A number from what was typed; None and auto stay."""
    if value is None or value == "auto":
        return value
    try:
        return kind(value)
    except ValueError:
        raise TableError(f"{option} {value!r}; a number or auto is wanted") from None


def open_for(saved: SavedModel, path, note, **options) -> Table:
    """A table read as the model's own was; options that are given come first, and are its own."""
    table = open_table(path, saved.reading, kinds=saved.kinds, note=note, **options)
    return table._replace(options=options)


def named_rows(table: Table, asked: Question, note) -> Question:
    """The question with the names of the rows, and without an index that a program wrote.

    Names are the first column of texts that all differ, else the index. A column that is asked for
    is taken; links name rows by number where none is.
    """
    if table.features:
        return asked
    name, indices = asked.id, _indices(table, asked)
    if name is None and asked.links in (None, NEIGHBOURS) and not table.streamed:
        name = _different_texts(table, asked) or next(iter(indices), None)
        if name is not None:
            note(f"{name!r} was taken for the names of the rows; say --id for another")
    for index in indices:
        note(
            f"{index!r} is an index, as pandas and R write it, no feature; if it is one, rename it"
        )
    ignored = (index for index in indices if index != name)
    return asked._replace(id=name, ignore=(*asked.ignore, *ignored))


def _indices(table, asked):
    """Columns without a name of their own that have another whole number in every row."""
    used = {*asked.targets, asked.id, asked.chunks, *asked.ignore}
    names = [name for name in table.names if name in INDICES and name not in used]
    if not names:
        return []
    columns = next(iter(table.batches())).columns
    values = {name: as_values(columns[name]) for name in names}
    n_rows = len(columns[names[0]])
    return [n for n, v in values.items() if v.dtype.kind in "iu" and len(np.unique(v)) == n_rows]


def _different_texts(table, asked):
    """The first column of texts that all differ, None where there is none."""
    used = {*asked.targets, asked.chunks, *asked.ignore}
    for name in table.names:
        column = table.column(name)
        if name in used or column_kind(column) != "text" or len(column) < NAMED_ROWS:
            continue
        if column.null_count == 0 and len(column.unique()) == len(column):
            return name
    return None


def prepare(table: Table, asked: Question, note) -> PreparedTable:
    """X, y and what else the question names, from the table."""
    for name, role in ((asked.id, "id"), (asked.chunks, "chunk column")):
        if name is not None:
            table.check(name, role)
    for name in asked.targets:
        table.check(name, "target")
    used = [name for name in (*asked.targets, asked.id, asked.chunks, *asked.ignore) if name]
    recipe = plan(table, ignore=used, scale=asked.scale, report=note)
    if recipe.left_out:
        note(left_out_text(recipe.left_out))
    X = apply(recipe, table, note)
    ids = row_names(table, asked.id, X.shape[0])
    y, kind = _target(table, asked)
    _tell_unlabelled(table, asked, note)
    for name, values in target_columns(asked, y).items():
        _check_variety(table, asked, name, values, kind, note)
    chunks = None if asked.chunks is None else _chunk_ids(table, asked.chunks)
    links = None if asked.links is None else _read_links(asked.links, ids, note)
    gaps = gap_counts(recipe, X)
    return PreparedTable(X, y, kind, ids, chunks, links, recipe, gaps, table.reading)


def prepare_again(saved: SavedModel, table: Table, note) -> tuple[PreparedTable, Question]:
    """A table as a saved model takes it; the target where the table has it."""
    asked = saved.asked
    X = apply(saved.recipe, table, note)
    if not set(asked.targets) <= set(table.names):
        asked = asked._replace(target=None)
    if asked.id not in table.names:
        asked = asked._replace(id=None)
    y, kind = _target(table, asked)
    if y is None:
        asked = asked._replace(target=None)
    elif kind == "classes":
        y = _as_classes(getattr(saved.model, "classes_", ()), y)
    ids = row_names(table, asked.id, X.shape[0])
    gaps = gap_counts(saved.recipe, X)
    links = NEIGHBOURS if asked.links == NEIGHBOURS else None
    again = PreparedTable(X, y, kind, ids, None, links, saved.recipe, gaps, table.reading)
    return again, asked


def _as_classes(classes, labels):
    """Labels as the classes of a model are written, where they have the value of one alone."""
    known, counts = {str(name) for name in classes}, Counter(map(_value, classes))
    names = {_value(name): name for name in classes if counts[_value(name)] == 1}
    words = {t: t if t in known else names.get(_value(t), t) for t in {*labels} - {None}}
    return np.array([words.get(text) for text in labels], dtype=object)


def _value(label):
    """What a label stands for: a number, a day, true or false, or the text that it is."""
    text = str(label)
    if NUMERIC.fullmatch(text):
        return Decimal(text)
    return text.lower() if text.lower() in ("true", "false") else MIDNIGHT.sub(r"\1", text)


def strange_labels(model, y) -> str | None:
    """What is wrong where no label is a class of the model, None where one is or there is none."""
    classes = [str(name) for name in getattr(model, "classes_", ())]
    labels = dict.fromkeys(label for label in y if label is not None)
    if not classes or not labels or labels.keys() & set(classes):
        return None
    some, known = (", ".join(map(repr, [*names][:MOST_NAMED])) for names in (labels, classes))
    return f"none of the labels ({some}) is a class of the model ({known})"


def row_names(table, name, n_rows) -> np.ndarray:
    """The names of the rows: the texts of a column, or numbers from 1."""
    if name is None:
        return np.arange(1, n_rows + 1)
    return np.array(["" if text is None else text for text in table.labels(name)], dtype=object)


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
    filled = count(sum(gap_counts(recipe, X).values()), "was", "were")
    note(f"{type(model).__name__} takes no gaps; {filled} filled with column means")
    return without_gaps(X, recipe)


def graph_of(saved: SavedModel, path, ids, note) -> Graph | None:
    """The links of new rows, to each other and to those of the fit, from a file that names both."""
    nodes = saved.notes.get("nodes")
    if path is None:
        if nodes is not None:
            note(
                "the model was fitted with links; say --links to place these rows by theirs too, "
                "and for a report to score it"
            )
        return None
    if nodes is None:
        raise TableError(f"--links {path}: the model was fitted without links")
    ids = [str(name) for name in ids]
    known = {name: place for place, name in enumerate(nodes)}
    every = [*nodes, *(name for name in ids if name not in known)]
    links = _read_links(path, every, note)
    known = {name: place for place, name in enumerate(every)}
    return Graph(links, np.array([known[name] for name in ids]))


def save_fit(model, path, ready: PreparedTable, asked: Question, facts=None, layout=None):
    """The model file with the rule for its tables, what the target was taken for, and facts.

    The picture of the fit, on which other rows are placed, is kept where it is a `layout`.
    """
    links = None if asked.links is None else str(asked.links)
    question = asked._replace(links=links, task=ready.kind or asked.task)._asdict()
    notes: dict = {"recipe": ready.recipe.to_notes(), "question": question}
    notes |= {"reading": ready.reading.lasting(), "fit": facts or {}}
    if isinstance(ready.links, gnomon.Links):
        notes["nodes"] = [str(name) for name in ready.ids]
    if layout is not None:
        notes["layout"] = layout
    return modelfile.save(model, path, notes=notes)


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
        reading, layout = _reading(notes.get("reading", {})), _layout(notes.get("layout"))
        if getattr(model, "n_features_in_", len(recipe.names)) != len(recipe.names):
            raise ValueError("the rule has another number of features than the model")
    except (TypeError, KeyError, AttributeError, ValueError) as error:
        raise ModelFileError("holds a rule for tables that cannot be read") from error
    return SavedModel(model, recipe, asked, reading, notes, layout)


def _layout(layout):
    """The layout of a file, checked; most have none."""
    if layout is None:
        return None
    rows, positions = layout.rows_, layout.positions_
    arrays = isinstance(layout, NeighbourLayout) and isinstance(rows, np.ndarray)
    if not arrays or rows.ndim != 2 or np.shape(positions) != (len(rows), 2):
        raise ValueError("a layout has rows without positions")
    return layout


def _question(notes) -> Question:
    """The question of a file; the first files called numeric targets numbers."""
    task = notes["task"]
    asked = Question(**notes | {"task": "numeric" if task == "numbers" else task})
    texts = (*asked.targets, *asked.ignore, asked.id, asked.chunks, asked.unlabelled, asked.task)
    several = [isinstance(part, str | tuple | list | None) for part in (asked.target, asked.ignore)]
    if not all(several) or not all(text is None or isinstance(text, str) for text in texts):
        raise ValueError("a question has names that are no texts")
    return asked


def _reading(notes) -> Reading:
    """The reading of a file, checked; the first files have none."""
    reading = Reading(**notes | {"na": tuple(notes.get("na", ()))})
    if reading.lasting() != reading.changed():
        raise ValueError("a reading decides how much memory tables may take")
    kinds = Reading.__annotations__ | {"na": tuple}
    right = [isinstance(getattr(reading, name), kind) for name, kind in kinds.items()]
    if not all(right) or not all(isinstance(word, str) for word in reading.na):
        raise TypeError("a reading has fields of another kind")
    return reading


def target_columns(asked: Question, y) -> dict:
    """The values of every target by its name, None for those of a target without any."""
    if y is None or y.ndim == 1:
        return dict.fromkeys(asked.targets, y)
    return dict(zip(asked.targets, y.T, strict=True))


def _target(table, asked):
    """The target, a column for each of several, and what it holds; None for both where none is."""
    columns = {name: table.cells(name) for name in asked.targets}
    texts = {name: _labels(as_texts(column), asked) for name, column in columns.items()}
    if all(text is None for values in texts.values() for text in values):
        return None, None
    if len(texts) > 1:
        return _several(texts, asked.task)
    ((name, values),) = texts.items()
    if asked.task == "multilabel":
        raise TableError(f"--task multilabel is for several targets; {name!r} is one")
    known = np.array([text is not None for text in values])
    kind = asked.task
    if kind == "auto":
        kind = kind_of(as_values(columns[name].filter(known)))
    if kind == "classes":
        return _labels(table.labels(name), asked), kind
    return _numbers(name, values), kind


def _labels(texts, asked):
    """Texts of a target, None where it is empty or says that there is no label."""
    return np.where(texts == asked.unlabelled, None, texts)


def _tell_unlabelled(table, asked, note):
    """Say that no cell of the targets is the word for no label; cells of blanks are none anyway."""
    word = asked.unlabelled
    if not asked.targets or word is None or not word.strip():
        return
    columns = [table.column(name) for name in asked.targets]
    columns += table.as_written(asked.targets).values()
    if not any((as_texts(column) == word).any() for column in columns):
        note(
            f"--unlabelled {word}: the target has no such cell, so that no label is left out by it"
        )


def _several(texts, task):
    """A column of numbers, or of 0 and 1, for each target, and which of the two they are."""
    if task == "auto":
        kinds = {name: _kind_beside_others(values) for name, values in texts.items()}
        task = _common_kind({name: kind for name, kind in kinds.items() if kind})
    if task == "classes":
        raise TableError(
            "--task classes is for one target; several are numbers, or columns of yes and no"
        )
    read = _yes_or_no if task == "multilabel" else _numbers
    return np.column_stack([read(name, values) for name, values in texts.items()]), task


def _kind_beside_others(values):
    """What one of several targets holds; None where it is empty."""
    known = [text.lower() for text in values if text is not None]
    if not known:
        return None
    if all(text in WORDS for text in known):
        return "multilabel"
    return "numeric" if all(map(_is_number, known)) else "classes"


def _is_number(text):
    try:
        return np.isfinite(float(text))
    except ValueError:
        return False


def _common_kind(kinds):
    """The one kind of several targets, or an error that names two that differ."""
    hold = {"multilabel": "yes and no", "numeric": "numbers", "classes": "classes"}
    first: dict[str, str] = {}
    for name, kind in kinds.items():
        first.setdefault(kind, name)
    if "classes" in first:
        raise TableError(
            f"the target {first['classes']!r} holds classes; several targets are all numbers, or "
            "all yes and no (0 and 1, true and false); fit one model for each column of classes"
        )
    if len(first) > 1:
        each = ", ".join(f"{name!r} holds {hold[kind]}" for kind, name in first.items())
        raise TableError(
            f"the targets are of different kinds: {each}; name those of one kind, or say "
            "--task numeric to take 0 and 1 for numbers"
        )
    return next(iter(first))


def _numbers(name, texts):
    try:
        return np.array([np.nan if text is None else float(text) for text in texts])
    except ValueError as error:
        raise TableError(f"the target {name!r} is no number: {error}") from None


def _yes_or_no(name, texts):
    try:
        return np.array([np.nan if text is None else WORDS[text.lower()] for text in texts])
    except KeyError as error:
        raise TableError(
            f"the target {name!r} has {error}; for --task multilabel its cells are yes and no, "
            "true and false, or 1 and 0"
        ) from None


def _check_variety(table, asked, name, y, kind, note):
    """Raise where no model could learn a target; say where it may be meant otherwise."""
    column, name = name, f"the target {name!r}"
    known = () if y is None else y[labelled_rows(y, kind)]
    if not len(known):
        raise TableError(f"{name} of {table.path} has no value")
    values = set(known)
    if len(values) == 1:
        raise TableError(
            f"{name} of {table.path} has only one value, {values.pop()!r}; two at least are wanted"
        )
    if kind != "classes":
        return
    for word in sorted(values & set(NO_VALUE)):
        cells = count(int(np.sum(known == word)), "cell")
        note(f"{name} has {cells} {word!r}, a class; if it means no label, say --unlabelled {word}")
    many, hardly_repeat = len(values) > MANY_CLASSES, 2 * len(values) > len(known)
    if many and hardly_repeat:
        raise TableError(
            f"{name} of {table.path} has {len(values)} different values in {len(known)} rows; it "
            "looks like a name, not like classes; if they are numbers, say --task numeric"
        )
    are_numbers = column_kind(table.column(column)) == "number"
    if (many or hardly_repeat) and are_numbers and asked.task == "auto":
        note(
            f"{name} has {len(values)} different whole numbers in {len(known)} rows, taken for "
            "classes; if they are measurements, say --task numeric"
        )


def _chunk_ids(table, name):
    # A word for no value is no group: its rows would all be taken for one class.
    texts = [None if text in NO_VALUE else text for text in table.labels(name)]
    present = sorted({text for text in texts if text is not None})
    numbers = {text: i for i, text in enumerate(present)}
    return np.array([numbers.get(text, -1) for text in texts])


def _read_links(path, ids, note):
    if path == NEIGHBOURS:
        return NEIGHBOURS
    edges = open_table(path)
    if len(edges.names) < 2:
        raise TableError(f"{path} has one column; two with the names of linked rows are wanted")
    ends = [edges.labels(name) for name in edges.names[:2]]
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
    pairs = [pair for pair in zip(*ends, strict=True) if pair[0] != pair[1]]
    if len(pairs) < len(ends[0]):
        own = len(ends[0]) - len(pairs)
        note(f"{count(own, 'link')} of a row with itself in {path} left out")
        weights = None if weights is None else weights[np.not_equal(*map(np.asarray, ends))]
    return gnomon.Links.from_edges(pairs, nodes=ids, weights=weights)


def _link_weights(edges):
    name = edges.names[2]
    column = edges.column(name)
    if column_kind(column) != "number":
        raise TableError(
            f"{edges.path}: column {name!r} holds {column.type}; weights of links are numbers"
        )
    return as_numbers(column)
