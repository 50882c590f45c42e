"""The server: what it answers, and to whom it answers nothing."""

import http.client
import json
import socket
import threading
from urllib.parse import urlsplit

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("starlette")
pytest.importorskip("uvicorn")
from gnomon import label


@pytest.fixture
def page(tmp_path):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 3
    X = rng.normal(size=(60, 4)) + 4 * np.eye(3, 4)[y]
    some = np.where(np.arange(60) < 9, y, -1)
    with label(X, some, out=tmp_path / "out", open_browser=False) as opened:
        yield opened


@pytest.fixture
def asks(page, client):
    return client(page.url)


def raw(url, method, path, headers, body=None):
    """Status of a request whose headers are these and no others."""
    place = urlsplit(url)
    connection = http.client.HTTPConnection(place.hostname, place.port, timeout=20)
    connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
    for name, value in headers:
        connection.putheader(name, value)
    if body is not None:
        connection.putheader("Content-Length", str(len(body)))
    connection.endheaders(body)
    status = connection.getresponse().status
    connection.close()
    return status


LABEL = json.dumps({"do": "label", "rows": [20], "name": "1"}).encode()
JSON = ("Content-Type", "application/json")


def test_a_label_is_kept_and_answered(asks, page):
    status, news = asks.post("act", {"do": "label", "rows": [20], "name": "1"})
    assert (status, news["rows"], news["labels"]) == (200, [20], [1])
    assert page.labels[20] == 1


def test_it_listens_on_the_loopback_address_alone(page):
    assert urlsplit(page.url).hostname == "127.0.0.1"
    assert page._server.socket.getsockname()[0] == "127.0.0.1"


def test_every_address_has_a_token_of_its_own(page, tmp_path):
    X = np.random.default_rng(0).normal(size=(10, 3))
    with label(X, out=tmp_path / "other", open_browser=False) as other:
        tokens = [urlsplit(one.url).path.strip("/") for one in (page, other)]
    assert tokens[0] != tokens[1]
    assert min(map(len, tokens)) >= 32


@pytest.mark.parametrize("path", ["", "state", "labels", "events", "row/1", "image/1", "progress"])
@pytest.mark.parametrize("token", ["", "wrong", "A" * 32])
def test_without_the_token_nothing_is_answered(page, path, token):
    host = urlsplit(page.url).netloc
    assert raw(page.url, "GET", f"/{token}/{path}", [("Host", host)]) == 403


def test_the_token_alone_without_a_slash_tells_nothing(page):
    place = urlsplit(page.url)
    assert raw(page.url, "GET", "/", [("Host", place.netloc)]) == 403
    assert raw(page.url, "GET", "//" + place.path.strip("/"), [("Host", place.netloc)]) == 403


@pytest.mark.parametrize(
    "host", ["evil.example", "evil.example:{port}", "127.0.0.1", "localhost:1", "[::1]:{port}", ""]
)
def test_a_foreign_host_is_refused(page, host):
    place = urlsplit(page.url)
    named = host.format(port=place.port)
    assert raw(page.url, "GET", place.path, [("Host", named)]) == 403


def test_two_hosts_or_none_are_refused(page):
    place = urlsplit(page.url)
    for headers in ([], [("Host", place.netloc), ("Host", "evil.example")]):
        assert raw(page.url, "GET", place.path, headers) in (400, 403)


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "https://127.0.0.1:{port}", "http://127.0.0.1", "file://"],
)
def test_a_label_from_another_site_is_refused(page, origin):
    place = urlsplit(page.url)
    headers = [("Host", place.netloc), JSON, ("Origin", origin.format(port=place.port))]
    assert raw(page.url, "POST", f"{place.path}act", headers, LABEL) == 403
    assert page.labels[20] == -1


def test_a_label_without_an_origin_is_refused(page):
    place = urlsplit(page.url)
    assert raw(page.url, "POST", f"{place.path}act", [("Host", place.netloc), JSON], LABEL) == 403
    assert page.labels[20] == -1


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_what_another_site_embeds_is_refused(page, site):
    place = urlsplit(page.url)
    headers = [("Host", place.netloc), ("Sec-Fetch-Site", site)]
    assert raw(page.url, "GET", f"{place.path}state", headers) == 403


def test_a_form_cannot_give_a_label(asks, page):
    for kind in ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data", None):
        status, _ = asks.post("act", LABEL, **{"Content-Type": kind})
        assert status == 400
    assert page.labels[20] == -1


@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "OPTIONS"])
def test_other_methods_do_nothing(page, method):
    place = urlsplit(page.url)
    headers = [("Host", place.netloc), JSON, ("Origin", f"http://{place.netloc}")]
    assert raw(page.url, method, f"{place.path}act", headers, LABEL) == 405
    assert page.labels[20] == -1


def test_no_answer_lets_another_site_read_it(asks):
    for path in ("", "state", "row/1", "nowhere"):
        _, headers, _ = asks.get(path, Origin=asks.origin)
        assert not [name for name in headers if name.lower().startswith("access-control")]
        assert headers["Cross-Origin-Resource-Policy"] == "same-origin"
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "no-referrer"
        assert headers["Cache-Control"] == "no-store"


def test_the_policy_lets_nothing_in_but_the_page_itself(asks):
    _, headers, text = asks.get()
    policy = dict(
        part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";")
    )
    assert policy["default-src"] == "'none'"
    assert policy["connect-src"] == "'self'"
    assert policy["img-src"] == "'self' data:"
    assert policy["script-src"].startswith("'sha256-")
    assert policy["frame-ancestors"] == "'none'"
    assert "http://" not in text.replace("http://www.w3.org/2000/svg", "")
    assert "https://" not in text


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"nonsense", b'{"do": "label"}', b'{"do": 7}', b'{"do":"undo"}']
)
def test_nonsense_is_an_error_that_says_why(asks, body):
    status, answer = asks.post("act", body)
    assert status == 400
    assert answer["error"]


def test_a_request_that_is_too_large_is_refused(asks):
    status, answer = asks.post("act", b'{"do":"' + b"a" * 2**21 + b'"}')
    assert (status, answer["error"]) == (400, "the request is too large")


def test_rows_that_do_not_exist_are_not_found(asks):
    assert asks.get("row/60")[0] == 404
    assert asks.get("image/60")[0] == 404
    assert asks.get("image/1")[0] == 404
    assert asks.get("row/-1")[0] == 404


def test_what_cannot_be_kept_is_said_not_to_be(asks, page, monkeypatch):
    def fails(entry):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(page._session._journal, "append", fails)
    status, answer = asks.post("act", {"do": "label", "rows": [20], "name": "1"})
    assert (status, answer["error"]) == (507, "not saved: No space left on device")


def test_texts_are_searched_in_either_case(tmp_path, client):
    X = np.random.default_rng(0).normal(size=(6, 3))
    texts = ["a Refund", None, "refunded?", "thanks", "", "REFUND & <b>"]
    with label(X, texts=texts, out=tmp_path / "out", open_browser=False) as page:
        asks = client(page.url)
        assert asks.json("search?text=refund")["rows"] == [0, 2, 5]
        assert asks.json("search?text=%26%20%3Cb%3E")["rows"] == [5]
        assert asks.json("search?text=")["rows"] == asks.json("search")["rows"] == []


class Stream(threading.Thread):
    """Reads the events of a page."""

    def __init__(self, url):
        super().__init__(daemon=True)
        place = urlsplit(url)
        self.connection = http.client.HTTPConnection(place.hostname, place.port, timeout=30)
        self.connection.request("GET", f"{place.path}events")
        self.answer = self.connection.getresponse()
        self.heard, self.changed = [], threading.Condition()
        self.start()

    def run(self):
        kind = ""
        for line in self.answer:
            name, _, value = line.decode().rstrip("\n").partition(": ")
            if name == "event":
                kind = value
            elif name == "data":
                with self.changed:
                    self.heard.append((kind, json.loads(value)))
                    self.changed.notify_all()

    def wait(self, kind):
        with self.changed:
            assert self.changed.wait_for(lambda: any(k == kind for k, _ in self.heard), 30)
        return next(news for k, news in self.heard if k == kind)


@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_all_pages_hear_of_a_label_and_of_the_new_map(asks, page):
    streams = [Stream(page.url) for _ in range(2)]
    for stream in streams:
        assert stream.wait("hello")["sequence"] == 0
    _, news = asks.post("act", {"do": "label", "rows": [20], "name": "1"})
    for stream in streams:
        assert stream.wait("labels") == news
        assert stream.wait("state")["version"] >= 2
    assert asks.json("state")["version"] >= 2


def test_a_port_that_is_taken_is_named(page, tmp_path):
    port = urlsplit(page.url).port
    X = np.random.default_rng(0).normal(size=(10, 3))
    with pytest.raises(OSError, match=f"port {port}"):
        label(X, out=tmp_path / "other", port=port, open_browser=False)
    # And the journal of the one that failed can be opened.
    label(X, out=tmp_path / "other", open_browser=False).close()


def test_after_closing_nobody_answers(tmp_path):
    X = np.random.default_rng(0).normal(size=(10, 3))
    page = label(X, out=tmp_path / "out", open_browser=False)
    page.close()
    place = urlsplit(page.url)
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection((place.hostname, place.port), timeout=5)


def test_labels_come_back_in_the_kind_that_they_were_given(tmp_path, client):
    X = np.random.default_rng(0).normal(size=(6, 3))
    for name, y, row, given in (
        ("integers", [0, 1, -1, -1, -1, -1], "1", [0, 1, -1, 1, -1, -1]),
        ("texts", ["a", "b", None, None, None, None], "b", ["a", "b", None, "b", None, None]),
        ("none", None, "new", [None, None, None, "new", None, None]),
    ):
        with label(X, y, out=tmp_path / name, open_browser=False) as page:
            client(page.url).post("act", {"do": "label", "rows": [3], "name": row})
            assert page.labels.tolist() == given
            client(page.url).post("act", {"do": "together", "rows": [4, 5]})
            assert page.chunks[4] == page.chunks[5] >= 0


def test_x_and_what_belongs_to_it_must_have_as_many_rows(tmp_path):
    X = np.zeros((4, 2))
    with pytest.raises(ValueError, match="texts has 3 entries; X has 4 rows"):
        label(X, texts=["a"] * 3, out=tmp_path)
    with pytest.raises(ValueError, match="X has 1 dimensions"):
        label(X[0], out=tmp_path)
