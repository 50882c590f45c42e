"""Labelling in Python: a page of this machine beside the program that opened it."""

import os
import re
import threading
import time
import webbrowser
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Self

import numpy as np

from gnomon._lazy import import_extra
from gnomon.typing import OutputsLike, RowsLike

# Seconds that a server takes at most to begin.
PATIENCE = 10.0


def label(
    X: RowsLike,
    y: OutputsLike = None,
    *,
    classes: Sequence[str] | None = None,
    ids: Sequence[str] | None = None,
    images: Sequence[str | os.PathLike | None] | None = None,
    image_folder: str | os.PathLike | None = None,
    texts: Sequence[str | None] | None = None,
    out: str | os.PathLike = "labels",
    model: str = "auto",
    random_state: int = 0,
    port: int = 0,
    open_browser: bool = True,
) -> "LabellingPage":
    """Open a page on this machine that takes labels and learns from each.

    The page shows the map of the rows, offers those whose label would help most, refits after
    every label and says how well labels left out are found. Every label is kept in a journal
    before the page says so; opened again with the same rows and folder it goes on.

    Parameters
    ----------
    X : array-like, sparse matrix or data frame of shape (n_samples, n_features)
        The rows, as a model would take them; NaN marks gaps.
    y : array-like of shape (n_samples,), default=None
        Labels that some rows have; -1 or None marks rows without.
    classes : sequence of str, default=None
        Names of the classes, in the order of their keys; more can be added on the page.
    ids : sequence of str, default=None
        Names of the rows; numbers from 1 if None.
    images : sequence of str or path-like, default=None
        A file with an image for each row, below ``image_folder``; None for none.
    image_folder : str or path-like, default=None
        The only folder that images are served from; the working directory if None.
    texts : sequence of str, default=None
        A text for each row, shown on its card.
    out : str or path-like, default="labels"
        Folder for the journal and for what is written.
    model : str, default="auto"
        The model of the map: "SPPCA", which "auto" takes, "KernelSPPCA", "DCAGM" or "BSDR",
        which learns from labelled rows alone.
    random_state : int, default=0
        Start of the random numbers.
    port : int, default=0
        Port of the server; a free one if 0.
    open_browser : bool, default=True
        Whether the page is opened in the browser.

    Returns
    -------
    page : LabellingPage
        With ``url``, ``labels``, ``chunks``, ``export()`` and ``close()``; it is closed at the
        end of a ``with`` block.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_iris
    >>> from gnomon import label
    >>> X, y = load_iris(return_X_y=True)
    >>> y[5:] = -1
    >>> folder = tempfile.TemporaryDirectory()
    >>> with label(X, y, classes=["0", "1", "2"], out=folder.name, open_browser=False) as page:
    ...     page.labels[:7].tolist()
    [0, 0, 0, 0, 0, -1, -1]
    >>> folder.cleanup()
    """
    require_extra()
    from gnomon.tools.label.rows import from_arrays

    shown = {"images": images, "image_folder": image_folder, "texts": texts}
    rows = from_arrays(X, y, classes=classes, ids=ids, **shown)
    session = open_session(rows, out, model=model, random_state=random_state)
    return LabellingPage(session, port=port, open_browser=open_browser)


def require_extra():
    """Say what to install where the packages of the page are not there."""
    for package in ("pyarrow", "jinja2", "starlette", "uvicorn"):
        import_extra(package, "label", "the labelling page")


def open_session(rows, out, **options):
    """The session of some rows whose journal is in a folder, begun or gone on with."""
    from gnomon.tools.label.journal import Journal
    from gnomon.tools.label.session import Session
    from gnomon.tools.write import make_folder

    journal = Journal(make_folder(out) / "journal.jsonl", rows.owner)
    try:
        return Session(rows, journal, **options)
    except BaseException:
        journal.close()
        raise


def serve(session, port, tell, *, open_browser):
    """Serve a session until it is interrupted; ``tell`` gets the address first."""
    from gnomon.tools.label.server import Server

    try:
        server = Server(session.start(), port)
        tell(server.url)
        if open_browser:
            webbrowser.open(server.url)
        with suppress(KeyboardInterrupt):
            server.run()
    finally:
        session.close()


class LabellingPage:
    """A labelling page that is open: `label` makes it.

    Parameters
    ----------
    session : Session
        Rows, labels and what was learnt.
    port : int
        Port of the server; a free one if 0.
    open_browser : bool
        Whether the page is opened in the browser.

    Attributes
    ----------
    url : str
        The address of the page, with the token that opens it.
    """

    def __init__(self, session, *, port: int = 0, open_browser: bool = True) -> None:
        from gnomon.tools.label.server import Server

        self._session = session
        try:
            self._server = Server(session, port)
        except BaseException:
            session.close()
            raise
        self.url = self._server.url
        session.start()
        self._thread = threading.Thread(target=self._server.run, name="gnomon page", daemon=True)
        self._thread.start()
        end = time.monotonic() + PATIENCE
        while not self._server.is_running and time.monotonic() < end:
            time.sleep(0.01)
        if open_browser:
            webbrowser.open(self.url)

    @property
    def labels(self) -> np.ndarray:
        """The labels as models take them: numbers with -1 or texts with None for rows without."""
        record = self._session.snapshot()
        names = record.classes
        if all(_is_integer(name) for name in names):
            return np.array([*map(int, names), -1])[record.labels]
        return np.array([*names, None], dtype=object)[record.labels]

    @property
    def chunks(self) -> np.ndarray:
        """Numbers of groups that belong together, -1 for rows in none."""
        return self._session.snapshot().chunks

    def export(self) -> list[Path]:
        """Write labels, model and report into the folder of the session.

        Returns
        -------
        list of path
            The files.
        """
        from gnomon.tools.label.export import export

        return export(self._session)

    def close(self) -> None:
        """End the page; what was labelled is in the journal."""
        self._server.stop()
        self._thread.join()
        self._session.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def _is_integer(name):
    return re.fullmatch("0|-?[1-9][0-9]*", name) is not None and name != "-1"
