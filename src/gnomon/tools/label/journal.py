"""The journal of a labelling session: a line of JSON for everything that a person did.

A line is written and forced to the disk before anyone is told of it, and no line is ever changed:
what was undone stays, followed by the line that undoes it. A crash can only spoil the last line,
of which nobody was told; it is cut off when the journal is opened again.
"""

import json
import os
from collections.abc import Iterable
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple

from gnomon.exceptions import TableError
from gnomon.inference.checkpoint import write_atomically

# Number of the layout of the file; another one is refused.
FORMAT = 1
ACTIONS = ("label", "skip", "together", "undo", "progress")
ORIGINS = ("person", "suggestion")


class Entry(NamedTuple):
    """A line: what was done and when.

    ``name`` is the class that ``rows`` were given, None where their labels were taken away; a
    label without rows makes a class known. ``origin`` is suggestion where the row was offered,
    person where it was chosen. ``of`` is the number of the entry that an undo undoes, and
    ``values`` are the figures of a progress.
    """

    do: str
    time: str
    rows: tuple[int, ...] = ()
    name: str | None = None
    origin: str | None = None
    of: int | None = None
    values: tuple = ()


def now() -> str:
    """The time of an entry."""
    return datetime.now(UTC).isoformat(timespec="milliseconds")


class Journal:
    """A journal that is open, for this process alone where the system has locks.

    ``owner`` says what the rows are: a journal of other rows is refused. ``entries`` are those
    that the file held when it was opened and all that were appended since.
    """

    def __init__(self, path, owner: dict):
        self.path = Path(path)
        head = {"gnomon": "labels", "format": FORMAT} | owner
        if not self.path.exists():
            write_atomically(self.path, _line(head))
        self._handle = os.open(self.path, os.O_RDWR | os.O_APPEND | getattr(os, "O_BINARY", 0))
        try:
            _lock(self._handle, self.path)
            content = self.path.read_bytes()
            found, self.entries, self._size = _read(self.path, content, owner.get("rows", 0))
            _check_head(self.path, found, head)
            if self._size < len(content):
                os.ftruncate(self._handle, self._size)
        except BaseException:
            self.close()
            raise

    def append(self, entry: Entry) -> None:
        """Write an entry and wait until the disk has it; after an error there is nothing of it."""
        line = _line({key: value for key, value in entry._asdict().items() if value not in NOTHING})
        try:
            rest = line
            while rest:
                rest = rest[os.write(self._handle, rest) :]
            os.fsync(self._handle)
        except OSError:
            with suppress(OSError):
                os.ftruncate(self._handle, self._size)
            raise
        self._size += len(line)
        self.entries.append(entry)

    def close(self):
        """Let others open it."""
        with suppress(OSError):
            os.close(self._handle)


# Fields that a line leaves out.
NOTHING: tuple[Any, ...] = (None, ())


def _line(values) -> bytes:
    return (json.dumps(values, ensure_ascii=False, separators=(",", ":")) + "\n").encode(
        errors="surrogatepass"
    )


def _lock(handle, path):
    """Keep other processes out; where there are no such locks, as on Windows, nothing is done."""
    try:
        import fcntl
    except ImportError:
        return
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise TableError(
            f"{path} is in use: these rows are being labelled already, in another page of gnomon"
        ) from None


def _read(path, content, n_rows) -> tuple[dict, list[Entry], int]:
    """Head, entries and the number of bytes that are whole."""
    lines = content.splitlines(keepends=True)
    if not lines:
        raise TableError(f"{path} is empty; a journal of labels begins with a line of its own")
    size, values = 0, []
    for number, line in enumerate(lines, 1):
        read = _parsed(line)
        if read is None and number == len(lines) > 1:
            break
        if read is None:
            raise TableError(f"{path}, line {number}, cannot be read; it is no journal of labels")
        size += len(line)
        values.append(read)
    head, *rest = values
    return head, _entries(path, rest, n_rows), size


def _parsed(line):
    """The values of a line, None where it is torn."""
    if not line.endswith(b"\n"):
        return None
    try:
        values = json.loads(line.decode(errors="surrogatepass"))
    except ValueError:
        return None
    return values if isinstance(values, dict) else None


def _entries(path, lines: Iterable[dict], n_rows) -> list[Entry]:
    entries: list[Entry] = []
    for number, values in enumerate(lines, 2):
        try:
            entry = Entry(**values)
            entry = entry._replace(rows=tuple(entry.rows), values=tuple(entry.values))
            check(entry, n_rows, len(entries))
        except (TypeError, ValueError) as error:
            raise TableError(f"{path}, line {number}: {error}") from error
        entries.append(entry)
    return entries


def check(entry: Entry, n_rows, n_entries) -> None:
    """Raise where an entry is none that a session can have."""
    if entry.do not in ACTIONS:
        raise ValueError(f"do is {entry.do!r}; accepted are {', '.join(ACTIONS)}")
    whole = all(type(row) is int and 0 <= row < n_rows for row in entry.rows)
    if not whole:
        raise ValueError(f"rows are not all numbers from 0 to {n_rows - 1}")
    if not isinstance(entry.name, str | None) or entry.name == "":
        raise ValueError("the name of a class is not a text")
    if entry.origin not in (None, *ORIGINS):
        raise ValueError(f"origin is {entry.origin!r}; accepted are {', '.join(ORIGINS)}")
    if entry.do == "undo" and not (type(entry.of) is int and 0 <= entry.of < n_entries):
        raise ValueError(f"an undo of entry {entry.of!r}, which does not exist")


def _check_head(path, found, head):
    if (found.get("gnomon"), found.get("format")) != ("labels", FORMAT):
        raise TableError(f"{path} is no journal of labels that this version reads")
    other = [key for key in head if found.get(key) != head[key]]
    if other:
        raise TableError(
            f"{path} is the journal of other rows ({', '.join(other)} differ); "
            "name another folder with --out"
        )
