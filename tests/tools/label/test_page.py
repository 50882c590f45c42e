"""What a page is told: never what is done already, never a guess before there are classes."""

import base64
import json

import numpy as np
import pytest

pytest.importorskip("pyarrow")
pytest.importorskip("jinja2")
from gnomon.tools.label.learning import Progress, Surprise
from gnomon.tools.label.page import news_of_progress, news_of_state, payload, render
from gnomon.tools.label.rows import from_arrays
from gnomon.tools.label.run import open_session
from gnomon.tools.web.assets import NO_LEVEL


@pytest.fixture
def begin(tmp_path):
    opened = []

    def session(n_labels, **known):
        rng = np.random.default_rng(0)
        y = np.arange(40) % 2
        X = rng.normal(size=(40, 4)) + 3 * y[:, None]
        some = np.where(np.arange(40) < n_labels, y, -1)
        opened.append(open_session(from_arrays(X, some, **known), tmp_path / str(len(opened))))
        return opened[-1]

    yield session
    for one in opened:
        one.close()


def unpacked(text, dtype):
    return np.frombuffer(base64.b64decode(text), dtype)


def rows_of(session):
    return [item["row"] for item in news_of_state(session)["queue"]]


@pytest.mark.parametrize("do", ["label", "skip"])
def test_a_row_that_is_done_is_not_in_the_queue_of_the_fit_before(begin, do):
    session = begin(6)
    first, *others = rows_of(session)
    session.act({"do": do, "rows": [first], "name": "1" if do == "label" else None})
    assert rows_of(session) == others
    session.act({"do": "undo"})
    assert rows_of(session) == [first, *others]


def test_nothing_is_predicted_before_two_classes_have_labels(begin):
    news = news_of_state(begin(1))
    assert set(unpacked(news["predicted"], "<u2")) == {NO_LEVEL}
    assert np.isnan(unpacked(news["certainty"], "<f4")).all()


def test_the_map_is_that_of_the_last_fit(begin):
    session = begin(8)
    news, state = news_of_state(session), session.state
    for j in range(2):
        np.testing.assert_array_equal(unpacked(news["z"][j], "<f4"), state.coordinates[:, j])
    variances = unpacked(news["covariance"], "<f4").reshape(40, 3)
    np.testing.assert_allclose(variances[:, [0, 2]], state.sd**2, rtol=1e-5)
    np.testing.assert_array_equal(
        unpacked(news["predicted"], "<u2"), state.probabilities.argmax(axis=1)
    )


def test_a_slip_that_was_mended_or_confirmed_is_no_slip(begin):
    session = begin(8)
    slips = tuple(Surprise(row, row % 2, 1 - row % 2, 0.01) for row in range(4))
    session.progress = Progress(8, surprising=slips)
    assert [slip["row"] for slip in news_of_progress(session)["slips"]] == [0, 1, 2, 3]
    session.act({"do": "label", "rows": [0], "name": "1"})
    session.act({"do": "label", "rows": [1], "name": "1"})
    session.act({"do": "label", "rows": [2], "name": None})
    assert [slip["row"] for slip in news_of_progress(session)["slips"]] == [3]
    assert news_of_progress(session)["progress"]["accuracy"] is None


def test_the_page_holds_what_the_session_knows(begin):
    session = begin(8, classes=["9", "0"], ids=[f"r{i}" for i in range(40)])
    html, policy = render(session)
    text = html.partition('id="payload">')[2].partition("</script>")[0]
    values = json.loads(text)
    assert values == json.loads(json.dumps(payload(session)))
    assert values["session"]["classes"] == ["9", "0", "1"]
    assert values["session"]["counts"] == [0, 4, 4]
    assert unpacked(values["labels"], "<i4")[:3].tolist() == [1, 2, 1]
    assert "unsafe" not in policy
