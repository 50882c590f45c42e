"""What the entries of a journal come to: the label of every row, since when and from where."""

import numpy as np

from gnomon.tools.label.journal import Entry

# Where a label comes from, by its number; the first is for rows without one.
ORIGINS = ("", "table", "person", "suggestion")
# What a person can take back.
UNDOABLE = ("label", "skip", "together")


class Record:
    """Labels, chunks and skipped rows as they are now.

    Parameters
    ----------
    classes : list of str
        Those that are known before any label is given.
    given : sequence of str or None
        The labels that the table has.

    Attributes
    ----------
    labels : numpy.ndarray of int
        Number of the class of each row, -1 for none.
    origins : numpy.ndarray of int
        Places in ``ORIGINS``.
    times : numpy.ndarray of str
        When a person gave the label.
    chunks : numpy.ndarray of int
        Rows with the same number belong together; -1 for none.
    skipped : numpy.ndarray of bool
        Rows that are not to be offered again.
    confirmed : numpy.ndarray of bool
        Rows whose label was given again, which is then no slip.
    n_done : int
        How many things a person did, what was undone and the undoing among them.
    """

    def __init__(self, classes, given):
        names = dict.fromkeys([*classes, *sorted({name for name in given if name is not None})])
        self._known = list(names)
        self._given = list(given)
        self._done: list[int] = []
        self._entries: list[Entry] = []
        self.n_done = 0
        self._clear()

    @property
    def last(self) -> int | None:
        """The number of the entry that an undo would take back."""
        return self._done[-1] if self._done else None

    def entry(self, number) -> Entry:
        """An entry by its number."""
        return self._entries[number]

    def add(self, entry: Entry) -> np.ndarray:
        """Take an entry in; the rows that are not as before."""
        if entry.do == "undo" and entry.of not in self._done:
            raise ValueError(f"entry {entry.of} cannot be undone, or was undone before")
        number = len(self._entries)
        self._entries.append(entry)
        self.n_done += entry.do != "progress"
        if entry.do == "undo":
            return self._undo(entry.of)
        if entry.do in UNDOABLE:
            self._done.append(number)
        return self._take(number, entry)

    def _clear(self):
        numbers = {name: code for code, name in enumerate(self._known)}
        self.classes = list(self._known)
        codes = [-1 if name is None else numbers[name] for name in self._given]
        self.labels = np.array(codes, dtype=int)
        self.origins = np.where(self.labels >= 0, ORIGINS.index("table"), 0)
        self.times = np.full(len(codes), "", dtype=object)
        self.chunks = np.full(len(codes), -1)
        self.skipped = np.zeros(len(codes), dtype=bool)
        self.confirmed = np.zeros(len(codes), dtype=bool)

    def _undo(self, number) -> np.ndarray:
        """All entries again but those undone: what was there before comes back."""
        self._done.remove(number)
        self._clear()
        for done in self._done:
            self._take(done, self._entries[done])
        return np.array(self._entries[number].rows, dtype=int)

    def _take(self, number, entry) -> np.ndarray:
        rows = np.array(entry.rows, dtype=int)
        if entry.do == "label":
            self._label(rows, entry)
        elif entry.do == "skip":
            self.skipped[rows] = True
        elif entry.do == "together":
            joined = set(self.chunks[rows].tolist()) - {-1}
            self.chunks[np.isin(self.chunks, list(joined))] = number
            self.chunks[rows] = number
        return rows

    def classes_among(self, rows) -> list[str]:
        """Classes that labels give to these rows or to those that belong together with them."""
        chunks = self.chunks[rows]
        joined = np.isin(self.chunks, chunks[chunks >= 0])
        joined[rows] = True
        codes = np.unique(self.labels[joined & (self.labels >= 0)])
        return [self.classes[code] for code in codes]

    def _leave_chunks(self, rows, code):
        """A label counts more: a row leaves a group of which others have another class."""
        for chunk in np.unique(self.chunks[rows]):
            of_chunk = self.labels[self.chunks == chunk]
            if chunk >= 0 and np.any((of_chunk >= 0) & (of_chunk != code)):
                self.chunks[rows[self.chunks[rows] == chunk]] = -1

    def _label(self, rows, entry):
        if entry.name is None:
            self.labels[rows], self.origins[rows], self.times[rows] = -1, 0, ""
            self.confirmed[rows] = False
            return
        if entry.name not in self.classes:
            self.classes.append(entry.name)
        code = self.classes.index(entry.name)
        self.confirmed[rows] = self.labels[rows] == code
        self.labels[rows] = code
        self._leave_chunks(rows, code)
        self.origins[rows] = ORIGINS.index(entry.origin or "person")
        self.times[rows] = entry.time
