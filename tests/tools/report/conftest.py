"""A small report subject that needs no file of its own."""

import numpy as np
import pytest

HOSTILE = [
    "<script>window.pwned=1</script>",
    "</script><script>window.pwned=2</script>",
    '"><img src=x onerror="window.pwned=3">',
    "{{7*7}}<!--",
    "javascript:window.pwned=4//\u2028'",
    "=cmd|'/c calc'!A1",
]


@pytest.fixture(scope="session")
def hostile():
    """Names that would run, if anything ran them."""
    return HOSTILE


@pytest.fixture(scope="session")
def make_subject(tmp_path_factory):
    """Rows in three classes with some labels and gaps; names as given."""
    pa = pytest.importorskip("pyarrow")
    pytest.importorskip("jinja2")
    from pyarrow import parquet

    from gnomon import SPPCA, NeighbourLayout
    from gnomon.tools.compare.held_out import Score
    from gnomon.tools.prepare import Question, prepare
    from gnomon.tools.report.page import Subject
    from gnomon.tools.tables import open_table

    def make(
        n=90,
        classes=("a", "b", "c"),
        names=("u", "v", "w"),
        ids=None,
        file="t",
        labelled=0.5,
        laid_out=False,
    ):
        rng = np.random.default_rng(0)
        codes = np.arange(n) % len(classes)
        X = rng.normal(size=(n, len(names))) + 3 * np.eye(len(names))[codes % len(names)]
        X[rng.random(X.shape) < 0.05] = np.nan
        labels = np.array(classes, dtype=object)[codes]
        labels[rng.random(n) < 1 - labelled] = None
        columns = dict(zip(names, X.T, strict=True))
        columns["kind"] = labels
        columns["name"] = ids or [f"row {i}" for i in range(n)]
        columns["site"] = rng.choice(["north", "south"], n)
        columns["day"] = np.datetime64("2024-02-28") + np.arange(n) % 400
        path = tmp_path_factory.mktemp("report") / f"{file}.parquet"
        arrays = {name: pa.array(values, from_pandas=True) for name, values in columns.items()}
        parquet.write_table(pa.table(arrays), path)
        table = open_table(path)
        asked = Question(target="kind", id="name", ignore=("site", "day"), components=2)
        ready = prepare(table, asked, lambda text: None)
        model = SPPCA(n_components=2, supervision=0.5, random_state=0).fit(ready.X, ready.y)
        subject = Subject(model, table, ready, asked, ready.X)
        subject.score = Score("accuracy", 0.9, 0.8, 0.95, 45, 0.3, 0.4)
        if laid_out:
            subject.layout = NeighbourLayout().fit(subject.Z)
        return subject

    return make


@pytest.fixture(scope="session")
def hostile_subject(make_subject):
    """A subject with such names everywhere."""
    ids = [f"{HOSTILE[i % len(HOSTILE)]} {i}" for i in range(90)]
    file = "<img src=x onerror=window.pwned=5>"
    return make_subject(classes=HOSTILE[:3], names=HOSTILE[3:], ids=ids, file=file)
