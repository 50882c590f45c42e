"""The journal: nothing that was told of is lost, whatever happens to the process or the file."""

import json
import os
import random
import signal
import subprocess
import sys
import time

import pytest

from gnomon.exceptions import TableError
from gnomon.tools.label.journal import Entry, Journal, now

OWNER = {"target": "kind", "rows": 50, "content": "abc"}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "journal.jsonl"


def label(row, name="ant"):
    return Entry("label", now(), (row,), name, "person")


def reopened(path):
    journal = Journal(path, OWNER)
    journal.close()
    return journal.entries


def test_what_was_appended_is_there_when_it_is_opened_again(path):
    journal = Journal(path, OWNER)
    entries = [label(3, "é\u2028\n'\""), Entry("undo", now(), of=0), Entry("skip", now(), (1, 2))]
    for entry in entries:
        journal.append(entry)
    journal.close()
    assert reopened(path) == entries


def test_an_entry_is_in_the_file_before_append_returns(path):
    journal = Journal(path, OWNER)
    for row in range(3):
        journal.append(label(row))
        lines = path.read_bytes().splitlines()
        assert json.loads(lines[-1])["rows"] == [row]
    journal.close()


def test_an_entry_is_forced_to_the_disk(path, monkeypatch):
    journal = Journal(path, OWNER)
    sizes = []
    monkeypatch.setattr(os, "fsync", lambda handle: sizes.append(os.fstat(handle).st_size))
    journal.append(label(1))
    journal.close()
    assert sizes == [path.stat().st_size]


@pytest.mark.parametrize("cut", range(1, 60, 7))
def test_a_torn_last_line_is_cut_off_and_the_rest_is_kept(path, cut):
    journal = Journal(path, OWNER)
    for row in range(4):
        journal.append(label(row))
    journal.close()
    content = path.read_bytes()
    path.write_bytes(content[:-cut])
    assert [entry.rows for entry in reopened(path)] == [(0,), (1,), (2,)]
    journal = Journal(path, OWNER)
    journal.append(label(9))
    journal.close()
    assert [entry.rows for entry in reopened(path)] == [(0,), (1,), (2,), (9,)]


def test_a_last_line_of_which_only_the_place_reached_the_disk_is_cut_off(path):
    journal = Journal(path, OWNER)
    journal.append(label(0))
    journal.close()
    path.write_bytes(path.read_bytes() + b"\x00" * 40 + b"\n")
    assert [entry.rows for entry in reopened(path)] == [(0,)]


def test_a_spoilt_line_before_the_last_is_named(path):
    journal = Journal(path, OWNER)
    for row in range(3):
        journal.append(label(row))
    journal.close()
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join([lines[0], b"nonsense\n", *lines[2:]]))
    with pytest.raises(TableError, match="line 2"):
        Journal(path, OWNER)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ({"do": "delete", "time": ""}, "do is 'delete'"),
        ({"do": "label", "time": "", "rows": [50], "name": "a"}, "from 0 to 49"),
        ({"do": "label", "time": "", "rows": [1], "name": 7}, "not a text"),
        ({"do": "label", "time": "", "rows": [1], "name": "a", "origin": "x"}, "origin is 'x'"),
        ({"do": "undo", "time": "", "of": 3}, "does not exist"),
        ({"do": "label", "when": ""}, "unexpected keyword"),
    ],
)
def test_an_entry_that_no_session_makes_is_refused(path, line, said):
    Journal(path, OWNER).close()
    with path.open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n" + b'{"do":"skip","time":""}\n')
    with pytest.raises(TableError, match=said):
        Journal(path, OWNER)


def test_the_journal_of_other_rows_is_refused(path):
    Journal(path, OWNER).close()
    with pytest.raises(TableError, match="content differ"):
        Journal(path, OWNER | {"content": "xyz"})


def test_a_file_that_is_no_journal_is_refused_and_not_changed(path):
    path.write_text('{"a": 1}\n')
    with pytest.raises(TableError, match="no journal"):
        Journal(path, OWNER)
    assert path.read_text() == '{"a": 1}\n'


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such locks")
def test_a_journal_that_is_open_is_refused_to_others(path):
    journal = Journal(path, OWNER)
    with pytest.raises(TableError, match="in use"):
        Journal(path, OWNER)
    journal.close()
    Journal(path, OWNER).close()


def test_an_entry_that_the_disk_refuses_leaves_nothing(path, monkeypatch):
    journal = Journal(path, OWNER)
    journal.append(label(0))
    before = path.read_bytes()

    def full(handle):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(OSError, match="No space"):
            journal.append(label(1))
    assert path.read_bytes() == before
    journal.append(label(2))
    journal.close()
    assert [entry.rows for entry in reopened(path)] == [(0,), (2,)]


WRITER = """
import sys
from gnomon.tools.label.journal import Entry, Journal, now
journal = Journal(sys.argv[1], {"target": "kind", "rows": 10**6, "content": "abc"})
for row in range(10**6):
    journal.append(Entry("label", now(), (row,), "ant" * 20, "person"))
    print(row, flush=True)
"""


@pytest.mark.parametrize("seed", range(3))
def test_a_process_that_is_killed_loses_nothing_that_it_told_of(path, seed):
    command = [sys.executable, "-c", WRITER, str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as writer:
        writer.stdout.readline()
        time.sleep(random.Random(seed).uniform(0.02, 0.2))
        writer.send_signal(signal.SIGKILL)
        told = [int(line) for line in writer.stdout.read().split()]
    journal = Journal(path, {"target": "kind", "rows": 10**6, "content": "abc"})
    journal.close()
    kept = [entry.rows[0] for entry in journal.entries]
    assert kept == list(range(len(kept)))
    assert len(kept) > max(told, default=0)
