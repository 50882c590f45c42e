"""A labelling session: what was done is kept first, told to all pages, and learnt from behind them.

Two threads work behind the pages: one refits the map after each label, the other, when a person
pauses, finds how well labels that were left out are predicted.
"""

import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from gnomon.exceptions import TableError
from gnomon.tools.label.journal import Entry, Journal, check, now
from gnomon.tools.label.learning import Learner, Progress, State
from gnomon.tools.label.record import Record
from gnomon.tools.label.rows import Rows

# Seconds without a new label after which the progress is judged: quick labels are not slowed.
PAUSE = 0.5
# What a page may ask for.
ASKED = ("label", "skip", "together", "undo")
# A name longer than this is a slip of the clipboard.
LONGEST_NAME = 200


class Session:
    """Rows that are being labelled.

    Parameters
    ----------
    rows : Rows
        What is labelled.
    journal : Journal
        Where it is kept; what it holds is taken up.
    model : str, default="auto"
        The model of the map, as for `Learner`.
    random_state : int, default=0
        As for `Learner`.
    """

    def __init__(self, rows: Rows, journal: Journal, *, model="auto", random_state=0):
        self.rows, self._journal = rows, journal
        self.record = Record(rows.classes, rows.given)
        try:
            for entry in journal.entries:
                self.record.add(entry)
        except ValueError as error:
            raise TableError(f"{journal.path}: {error}") from error
        self.history = [e.values for e in journal.entries if e.do == "progress"]
        self.learner = Learner(rows.X, self.record.classes, model, random_state=random_state)
        self.progress: Progress | None = None
        self._listeners: list[Callable[[str, dict], Any]] = []
        self._changed = threading.Condition()
        self._threads: list[threading.Thread] = []
        self._is_open, self._stamp, self._learnt, self._judged = True, 0, 0, -1
        self.state: State = self.learner.update(*self._known()[1:])

    @property
    def sequence(self) -> int:
        """How many things were done: pages that know of as many agree."""
        return self.record.n_done

    @property
    def n_labels(self) -> int:
        """How many rows have a label."""
        return int(np.sum(self.record.labels >= 0))

    @property
    def path(self):
        """The file of the journal."""
        return self._journal.path

    @property
    def folder(self):
        """The folder of the journal, where results go."""
        return self.path.parent

    def listen(self, listener: Callable[[str, dict], Any]):
        """Call a function with (kind, news), from any thread, whenever something is new."""
        self._listeners.append(listener)

    def start(self):
        """Begin to learn from labels."""
        for work in (self._learn, self._judge):
            thread = threading.Thread(target=work, name=f"gnomon {work.__name__}", daemon=True)
            self._threads.append(thread)
            thread.start()
        return self

    def close(self):
        """End the threads, and let others open the journal."""
        with self._changed:
            self._is_open = False
            self._changed.notify_all()
        for thread in self._threads:
            thread.join()
        self._journal.close()

    def act(self, asked: Mapping) -> dict:
        """Do what a page asks; it is on the disk when this returns. What is then new."""
        with self._changed:
            entry = self._entry(asked)
            self._journal.append(entry)
            news = self._news(entry, self.record.add(entry))
            self._stamp += 1
            self._changed.notify_all()
        self._tell("labels", news)
        return news

    def everything(self) -> dict:
        """All labels, for a page that has missed some."""
        with self._changed:
            return self._summary() | {"labels": self.record.labels.copy()}

    def snapshot(self) -> Record:
        """The record as it is now, which no later action changes."""
        with self._changed:
            copy = Record(self.rows.classes, self.rows.given)
            for entry in self._journal.entries:
                copy.add(entry)
            return copy

    def _entry(self, asked) -> Entry:
        """What a page asks for as an entry, or a ValueError."""
        do, rows = asked.get("do"), asked.get("rows", [])
        if do not in ASKED or not isinstance(rows, list):
            raise ValueError(f"do is {do!r}; accepted are {', '.join(ASKED)}, with a list of rows")
        if do == "undo":
            return self._undo_entry()
        name = asked.get("name")
        name = " ".join(name.split()) if isinstance(name, str) else name
        entry = Entry(do, now(), tuple(rows), name, asked.get("origin"))
        check(entry, len(self.rows.ids), len(self._journal.entries))
        if name is not None and len(name) > LONGEST_NAME:
            raise ValueError(f"the name of a class has more than {LONGEST_NAME} characters")
        if name == "-1" and name not in self.record.classes:
            raise ValueError("the name -1 marks rows without a label; another is wanted")
        if not rows and (do != "label" or name is None):
            raise ValueError(f"there is no row to {do}")
        if do == "together":
            self._check_group(rows)
        return entry

    def _check_group(self, rows):
        names = self.record.classes_among(rows)
        if len(rows) < 2:
            raise ValueError("one row alone belongs together with none")
        if len(names) > 1:
            raise ValueError(f"rows of several classes cannot belong together: {', '.join(names)}")

    def _undo_entry(self):
        if self.record.last is None:
            raise ValueError("there is nothing to undo")
        return Entry("undo", now(), of=self.record.last)

    def _news(self, entry, rows) -> dict:
        labels = self.record.labels[rows].tolist()
        undone = self.record.entry(entry.of) if entry.of is not None else None
        what = entry if undone is None else undone
        done = {"do": entry.do, "what": what.do, "origin": what.origin, "count": len(what.rows)}
        return self._summary() | {"rows": rows.tolist(), "labels": labels, "done": done}

    def _summary(self) -> dict:
        counts = np.bincount(
            self.record.labels[self.record.labels >= 0], minlength=len(self.record.classes)
        )
        chunks = len(np.unique(self.record.chunks[self.record.chunks >= 0]))
        return {
            "sequence": self.sequence,
            "classes": list(self.record.classes),
            "counts": counts.tolist(),
            "chunks": chunks,
            "undoable": self.record.last is not None,
        }

    def _known(self):
        """What a refit starts from: stamp, labels, chunks, skipped rows; the learner's classes."""
        self.learner.classes = list(self.record.classes)
        arrays = (self.record.labels, self.record.chunks, self.record.skipped)
        return self._stamp, *(array.copy() for array in arrays)

    def _tell(self, kind, news):
        for listener in list(self._listeners):
            listener(kind, news)

    def _learn(self):
        """Refit whenever there is something new; several labels at once are one refit."""
        while True:
            with self._changed:
                self._changed.wait_for(lambda: not self._is_open or self._learnt < self._stamp)
                if not self._is_open:
                    return
                stamp, *known = self._known()
            try:
                state = self.learner.update(*known)
            # A fit that fails leaves the map as it was; labels are kept all the same.
            except Exception as error:
                self._tell("trouble", {"text": f"the map could not be refitted: {error}"})
                state = self.state
            with self._changed:
                self.state, self._learnt = state, stamp
                self._changed.notify_all()
            self._tell("state", {"version": state.version})

    def _judge(self):
        """Find the accuracy on labels left out when a person pauses."""
        while True:
            with self._changed:
                self._changed.wait_for(
                    lambda: not self._is_open or self._judged < self._learnt == self._stamp
                )
                if self._changed.wait_for(lambda: not self._is_open, PAUSE):
                    return
                if self._learnt < self._stamp:
                    continue
                stamp, labels, chunks, _ = self._known()
            try:
                self._judged_as(self.learner.progress(labels, chunks))
            except Exception as error:
                self._tell("trouble", {"text": f"the accuracy could not be found: {error}"})
            self._judged = stamp

    def _judged_as(self, progress: Progress):
        with self._changed:
            self.progress = progress
            figures = progress[:6]
            if np.isfinite(progress.accuracy):
                values = tuple(float(v) if np.isfinite(v) else None for v in figures)
                self._journal.append(Entry("progress", now(), values=values))
                self.record.add(self._journal.entries[-1])
                self.history.append(values)
        self._tell("progress", {"n_labels": progress.n_labels})
