"""What is labelled: rows of a table or of a matrix, with all that a person is shown of them."""

from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from gnomon.estimators import read_classes
from gnomon.exceptions import TableError
from gnomon.inference.checkpoint import fingerprint
from gnomon.tools.prepare import PreparedTable, Question, named_rows, prepare
from gnomon.tools.recipe import Feature, Recipe
from gnomon.tools.tables import Table, as_texts, one_batch

# What is served as an image; other files never are.
IMAGES = {
    ".png": "image/png",
    ".jpg": "image/jpeg",
    ".jpeg": "image/jpeg",
    ".gif": "image/gif",
    ".webp": "image/webp",
    ".avif": "image/avif",
    ".bmp": "image/bmp",
    ".svg": "image/svg+xml",
}


class Rows(NamedTuple):
    """Rows to label.

    ``classes`` are known from the start and ``given`` are labels that rows have; ``features`` say
    how columns of X came from values that people know. ``images`` are the names of files below
    ``image_folder``, ``texts`` what a row says; both None where there is nothing to show.
    ``path`` is the file of the table, None for a matrix of Python, and ``source`` what an export
    is made from: table, prepared table and question.
    """

    name: str
    target: str
    X: Any
    ids: list[str]
    classes: list[str]
    given: list
    features: list[Feature]
    images: list | None = None
    image_folder: Path | None = None
    texts: list | None = None
    path: Path | None = None
    source: Any = None

    @property
    def owner(self) -> dict:
        """By which a journal knows these rows again."""
        dense = isinstance(self.X, np.ndarray)
        parts = (self.X,) if dense else (self.X.data, self.X.indices, self.X.indptr)
        digest = fingerprint([*map(np.asarray, parts), self.ids])
        return {"target": self.target, "rows": len(self.ids), "content": digest[:16]}

    def image(self, row) -> Path | None:
        """The file of a row's image, None unless it is one and lies in the folder for images."""
        name = None if self.images is None else self.images[row]
        if name is None or self.image_folder is None:
            return None
        folder = self.image_folder.resolve()
        try:
            path = (folder / name).resolve(strict=True)
        except (OSError, ValueError, RuntimeError):
            return None
        inside = path.is_relative_to(folder) and path.is_file()
        return path if inside and path.suffix.lower() in IMAGES else None


def from_table(table: Table, asked: Question, note, **shown) -> Rows:
    """The rows of a table; ``shown`` are classes, image, image_folder and text as typed."""
    if len(asked.targets) != 1:
        raise TableError("one column is labelled; name it with --target")
    if table.streamed:
        raise TableError(f"{table.path} is too large to label; label a sample of its rows")
    image, text = shown.get("image"), shown.get("text")
    for name, role in ((image, "image column"), (text, "text column")):
        if name is not None:
            table.check(name, role)
    target, has_target = asked.targets[0], asked.targets[0] in table.names
    if not has_target:
        note(f"there is no column {target!r} yet: no row has a label")
        asked = asked._replace(target=None)
    hidden = tuple(name for name in (image, text) if name is not None)
    asked = named_rows(table, asked._replace(ignore=(*asked.ignore, *hidden)), note)
    ready = prepare(table, asked._replace(task="classes"), note)
    given = [None] * len(ready.ids) if ready.y is None else list(ready.y)
    if "-1" in given and not {*given} <= {"-1", "1", None}:
        raise TableError(f"{target!r} has cells -1; say --unlabelled=-1 if they mean no label")
    return Rows(
        name=table.path.stem,
        target=target,
        X=ready.X,
        ids=[str(name) for name in ready.ids],
        classes=_class_names(shown.get("classes") or ()),
        given=given,
        features=_features(ready.recipe),
        images=None if image is None else as_texts(table.cells(image)).tolist(),
        image_folder=Path(shown.get("image_folder") or table.path.resolve().parent),
        texts=None if text is None else as_texts(table.cells(text)).tolist(),
        path=table.path,
        source=(table, ready, asked._replace(target=target, task="classes")),
    )


def from_arrays(X, y=None, *, classes=None, ids=None, images=None, image_folder=None, texts=None):
    """The rows of a matrix or data frame, with labels that some have."""
    names = [str(name) for name in getattr(X, "columns", ())]
    X = X.tocsr() if hasattr(X, "tocsr") else np.asarray(X, dtype=float)
    if X.ndim != 2:
        raise ValueError(f"X has {X.ndim} dimensions; a table with rows and columns is wanted")
    n, d = X.shape
    for name, values in (("ids", ids), ("images", images), ("texts", texts)):
        if values is not None and len(values) != n:
            raise ValueError(f"{name} has {len(values)} entries; X has {n} rows")
    known = None if y is None else read_classes(y, n)
    given = [None] * n
    if known is not None:
        texts_of = [str(value) for value in known.names.tolist()]
        given = [None if code < 0 else texts_of[code] for code in known.labels]
    names = names or [f"x{j + 1}" for j in range(d)]
    rows = [str(i + 1) for i in range(n)] if ids is None else [str(name) for name in ids]
    recipe = Recipe([], names, None, None, {}, scaled=False)
    ready = PreparedTable(X, None, "classes", np.array(rows, object), None, None, recipe)
    table = one_batch(Path("X"), {}, X, names)
    return Rows(
        name="rows",
        target="label",
        X=X,
        ids=rows,
        classes=_class_names([] if classes is None else classes),
        given=given,
        features=_features(recipe),
        images=None if images is None else [None if p is None else str(p) for p in images],
        image_folder=Path(image_folder or Path.cwd()),
        texts=None if texts is None else [None if t is None else str(t) for t in texts],
        source=(table, ready, Question(target="label", task="classes")),
    )


def _class_names(names) -> list[str]:
    """Names of classes, stripped, each once."""
    texts = [" ".join(str(name).split()) for name in names]
    if "" in texts:
        raise TableError("a class without a name was given")
    return list(dict.fromkeys(texts))


def _features(recipe) -> list[Feature]:
    if not recipe.matrix_names:
        return recipe.features
    d = len(recipe.matrix_names)
    center = np.zeros(d) if recipe.matrix_scale is None else recipe.matrix_center
    scale = np.ones(d) if recipe.matrix_scale is None else recipe.matrix_scale
    center = np.zeros(d) if center is None else center
    return [
        Feature(name, "number", [], center[j : j + 1], scale[j : j + 1])
        for j, name in enumerate(recipe.matrix_names)
    ]
