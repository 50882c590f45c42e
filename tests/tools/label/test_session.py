"""A session: kept first, then told, then learnt from; a new session goes on."""

import threading

import numpy as np
import pytest

pytest.importorskip("pyarrow")
from gnomon.exceptions import TableError
from gnomon.tools.label.run import open_session


@pytest.fixture
def table(write_table, tmp_path):
    return write_table(tmp_path)


@pytest.fixture
def begin(table, open_rows, tmp_path):
    """Open a session of the table; it is closed in the end."""
    opened = []

    def session(**shown):
        opened.append(open_session(open_rows(table[0], **shown), tmp_path / "out"))
        return opened[-1]

    yield session
    for one in opened:
        one.close()


class Listener:
    def __init__(self, session):
        self.heard, self.changed = [], threading.Condition()
        session.listen(self)

    def __call__(self, kind, news):
        with self.changed:
            self.heard.append((kind, news))
            self.changed.notify_all()

    def wait(self, kind):
        with self.changed:
            assert self.changed.wait_for(lambda: any(k == kind for k, _ in self.heard), 60)
        return next(news for k, news in self.heard if k == kind)


def label(session, row, name, origin="person"):
    return session.act({"do": "label", "rows": [row], "name": name, "origin": origin})


def test_it_begins_with_the_labels_of_the_table(begin, table):
    session = begin()
    assert session.n_labels == 3
    assert session.record.classes == ["ant", "bee", "cow"]
    assert session.state.coordinates.shape == (90, 2)


def test_a_label_is_in_the_journal_before_anyone_is_told(begin, tmp_path):
    session, journals = begin(), []
    path = tmp_path / "out" / "journal.jsonl"
    session.listen(lambda kind, news: journals.append(path.read_text()))
    label(session, 20, "cow")
    assert '"rows":[20],"name":"cow"' in journals[0]


def test_a_label_that_cannot_be_kept_is_not_given(begin, monkeypatch):
    session = begin()
    listener = Listener(session)

    def fails(entry):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(session._journal, "append", fails)
    with pytest.raises(OSError, match="No space"):
        label(session, 20, "cow")
    assert session.record.labels[20] == -1
    assert listener.heard == []


def test_a_new_session_goes_on_where_the_last_one_stopped(begin):
    first = begin()
    label(first, 20, "cow", "suggestion")
    label(first, 21, "dog")
    first.act({"do": "skip", "rows": [30]})
    first.act({"do": "together", "rows": [40, 41]})
    label(first, 22, "bee")
    first.act({"do": "undo"})
    before = first.record
    first.close()
    after = begin().record
    for name in ("labels", "origins", "times", "chunks", "skipped", "classes"):
        assert list(getattr(after, name)) == list(getattr(before, name))
    assert after.last == before.last


def test_the_table_is_never_written(begin, table):
    path = table[0]
    before = (path.read_bytes(), path.stat().st_mtime_ns)
    session = begin()
    label(session, 20, "cow")
    assert (path.read_bytes(), path.stat().st_mtime_ns) == before


def test_another_table_is_refused_and_its_journal_left_alone(begin, table, tmp_path):
    begin().close()
    path = tmp_path / "out" / "journal.jsonl"
    before = path.read_bytes()
    text = table[0].read_text()
    table[0].write_text(text.replace("row 5,", "row 5b,", 1).replace('"row 5"', '"row 5b"', 1))
    with pytest.raises(TableError, match="other rows"):
        begin()
    assert path.read_bytes() == before


def test_labels_are_learnt_from_behind(begin, table):
    session = begin().start()
    listener = Listener(session)
    for row in range(20, 30):
        label(session, row, str(table[1][row]))
    listener.wait("progress")
    progress = session.progress
    assert progress.n_labels == 13
    assert session.state.version > 1
    found = np.array(session.record.classes)[session.state.probabilities.argmax(axis=1)]
    assert np.mean(found == table[1]) > 0.8
    assert session.history[-1][0] == 13


def test_the_history_of_the_progress_is_there_again(begin, table):
    first = begin().start()
    listener = Listener(first)
    for row in range(20, 30):
        label(first, row, str(table[1][row]))
    listener.wait("progress")
    history = list(first.history)
    first.close()
    assert begin().history == history


def test_a_fit_that_fails_keeps_the_label_and_says_so(begin, monkeypatch):
    session = begin()
    listener = Listener(session)

    def fails(*known):
        raise ArithmeticError("no map")

    monkeypatch.setattr(session.learner, "update", fails)
    session.start()
    label(session, 20, "cow")
    assert "no map" in listener.wait("trouble")["text"]
    listener.wait("state")
    assert session.record.classes[session.record.labels[20]] == "cow"


def test_labels_of_many_threads_are_all_kept_and_in_one_order(begin, tmp_path):
    session = begin()
    listener = Listener(session)
    rows = np.arange(10, 50).reshape(8, 5)
    threads = [
        threading.Thread(target=lambda part=part: [label(session, int(r), "ant") for r in part])
        for part in rows
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (session.record.labels[10:50] == 0).all()
    assert sorted(news["sequence"] for _, news in listener.heard) == list(range(1, 41))
    session.close()
    assert (begin().record.labels[10:50] == 0).all()


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ({"do": "progress"}, "do is 'progress'"),
        ({"do": "label", "rows": "1", "name": "a"}, "list of rows"),
        ({"do": "label", "rows": [90], "name": "a"}, "from 0 to 89"),
        ({"do": "label", "rows": [True], "name": "a"}, "from 0 to 89"),
        ({"do": "label", "rows": [1], "name": " "}, "not a text"),
        ({"do": "label", "rows": [1], "name": "a" * 201}, "200 characters"),
        ({"do": "label", "rows": []}, "no row to label"),
        ({"do": "skip", "rows": []}, "no row to skip"),
        ({"do": "undo"}, "nothing to undo"),
        ({"do": "label", "rows": [1], "name": " -1 "}, "rows without a label"),
        ({"do": "together", "rows": [5]}, "one row alone"),
        ({"do": "together", "rows": [0, 1, 5]}, "cannot belong together: ant, bee"),
    ],
)
def test_what_cannot_be_done_is_refused_and_not_kept(begin, asked, said):
    session = begin()
    with pytest.raises(ValueError, match=said):
        session.act(asked)
    assert session.sequence == 0


def test_a_class_can_be_named_before_it_has_a_row(begin):
    session = begin()
    news = session.act({"do": "label", "rows": [], "name": "  dog\tand cat "})
    assert news["classes"][-1] == "dog and cat"


def test_a_target_that_the_table_has_not_begins_without_labels(table, tmp_path):
    from gnomon.tools.label.rows import from_table
    from gnomon.tools.prepare import Question
    from gnomon.tools.tables import open_table

    notes = []
    asked = Question(target="colour", task="classes", ignore=("kind",))
    rows = from_table(open_table(table[0]), asked, notes.append, classes=["red", "blue"])
    assert rows.given == [None] * 90
    assert any("no column 'colour'" in note for note in notes)
    session = open_session(rows, tmp_path / "colours")
    label(session, 3, "blue")
    assert session.record.classes == ["red", "blue"]
    session.close()
