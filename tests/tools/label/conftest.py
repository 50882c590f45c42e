"""Small tables to label, sessions and pages of them."""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import numpy as np
import pytest

HOSTILE = [
    "<script>window.pwned=1</script>",
    '"><img src=x onerror="window.pwned=3">',
    "</script><script>window.pwned=2</script>",
    "{{7*7}}<!--",
    "javascript:window.pwned=4//\u2028'",
]


@pytest.fixture(scope="session")
def hostile():
    """Names that would run, if anything ran them."""
    return HOSTILE


def cells(text):
    return '"' + text.replace('"', '""') + '"'


@pytest.fixture(scope="session")
def write_table():
    """Rows of three kinds in a csv file, few of them labelled; the file and the truth."""

    def write(folder, n=90, classes=("ant", "bee", "cow"), names=("u", "v", "w"), **columns):
        rng = np.random.default_rng(0)
        kinds = np.arange(n) % len(classes)
        X = rng.normal(size=(n, len(names))) + 4 * np.eye(len(names))[kinds % len(names)]
        X[rng.random(X.shape) < 0.03] = np.nan
        labels = [classes[k] if i < 3 else "" for i, k in enumerate(kinds)]
        more = {"name": [f"row {i}" for i in range(n)]} | columns
        heads = [cells(name) for name in (*more, *names, "kind")]
        lines = [",".join(heads)]
        for i in range(n):
            numbers = ["" if np.isnan(v) else f"{v:.4f}" for v in X[i]]
            texts = [cells(values[i]) for values in more.values()]
            lines.append(",".join([*texts, *numbers, cells(labels[i]) if labels[i] else ""]))
        path = folder / "table.csv"
        path.write_text("\n".join(lines) + "\n", encoding="utf-8")
        return path, np.array(classes, dtype=object)[kinds]

    return write


@pytest.fixture(scope="session")
def open_rows():
    """The rows of a table as a session takes them."""
    pytest.importorskip("pyarrow")
    from gnomon.tools.label.rows import from_table
    from gnomon.tools.prepare import Question
    from gnomon.tools.tables import open_table

    def rows(path, **shown):
        asked = Question(target="kind", id="name", task="classes")
        return from_table(open_table(path), asked, lambda text: None, **shown)

    return rows


class Client:
    """Asks a page as its own script does, unless told otherwise."""

    def __init__(self, url):
        self.url = url
        self.origin = url[: url.index("/", len("http://"))]

    def get(self, path="", **headers):
        """Status, headers and text of an answer."""
        return self._send(Request(self.url + path, headers=headers))

    def post(self, path, values, **headers):
        """Status and values of an answer."""
        own = {"Content-Type": "application/json", "Origin": self.origin} | headers
        own = {name: value for name, value in own.items() if value is not None}
        body = values if isinstance(values, bytes) else json.dumps(values).encode()
        status, _, text = self._send(Request(self.url + path, data=body, headers=own))
        return status, json.loads(text) if text.startswith("{") else text

    def json(self, path):
        """The values of an answer."""
        return json.loads(self.get(path)[2])

    def _send(self, request):
        try:
            with urlopen(request, timeout=20) as answer:
                return answer.status, answer.headers, answer.read().decode()
        except HTTPError as error:
            with error:
                return error.code, error.headers, error.read().decode()


@pytest.fixture(scope="session")
def client():
    """Makes a client of an address."""
    return Client
