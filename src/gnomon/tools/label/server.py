"""The labelling server: pages ask, the session does, and every page is told."""

import asyncio
import json
import secrets
import socket
from contextlib import asynccontextmanager
from itertools import islice

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.responses import FileResponse, HTMLResponse, Response, StreamingResponse
from starlette.routing import Mount, Route

from gnomon.tools.label.details import details, typical
from gnomon.tools.label.export import export
from gnomon.tools.label.guard import Guard
from gnomon.tools.label.page import news_of_progress, news_of_state, render
from gnomon.tools.label.rows import IMAGES
from gnomon.tools.label.session import Session
from gnomon.tools.web.assets import as_json, pack

# Only this machine can reach it.
LOOPBACK = "127.0.0.1"
# Seconds after which a silent stream says that it is there, so that a page notices its end.
HEARTBEAT = 10.0
# Bytes of a request; a lasso round a hundred thousand rows is smaller.
LARGEST_REQUEST = 2**21
# Rows that a search gives, as many as the page rings.
MOST_FOUND = 500
# Seconds that open streams get when the server ends.
FAREWELL = 1


class Hub:
    """Open streams of news; a page that does not listen is let go."""

    def __init__(self):
        self.queues: set[asyncio.Queue] = set()
        self.loop: asyncio.AbstractEventLoop | None = None

    def publish(self, kind, news):
        """Tell all pages, from any thread."""
        if self.loop is not None and not self.loop.is_closed():
            self.loop.call_soon_threadsafe(self._put, message(kind, news))

    def _put(self, text):
        for queue in self.queues:
            queue.put_nowait(text)

    async def stream(self, first):
        """What one page is told, the first message at once."""
        queue: asyncio.Queue = asyncio.Queue()
        self.queues.add(queue)
        try:
            yield first
            while True:
                try:
                    text = await asyncio.wait_for(queue.get(), HEARTBEAT)
                except TimeoutError:
                    text = ": still here\n\n"
                if text is None:
                    return
                yield text
        finally:
            self.queues.discard(queue)

    def close(self):
        """End all streams."""
        self._put(None)


def message(kind, news) -> str:
    """An event of a stream."""
    return f"event: {kind}\ndata: {as_json(news)}\n\n"


class Views:
    """What a session answers, by address."""

    def __init__(self, session: Session, hub: Hub):
        self.session, self.hub = session, hub
        self._typical: tuple = (None, None)

    def routes(self):
        """The addresses below the token."""
        return [
            Route("/", self.page),
            Route("/events", self.events),
            Route("/labels", self.labels),
            Route("/state", self.state),
            Route("/progress", self.progress),
            Route("/row/{row:int}", self.row),
            Route("/image/{row:int}", self.image),
            Route("/search", self.search),
            Route("/act", self.act, methods=["POST"]),
            Route("/export", self.export, methods=["POST"]),
        ]

    def page(self, request):
        """The page itself."""
        html, policy = render(self.session)
        return HTMLResponse(html, headers={"content-security-policy": policy})

    async def events(self, request):
        """A stream that begins with what a page should know of."""
        known = {"sequence": self.session.sequence, "version": self.session.state.version}
        stream = self.hub.stream(message("hello", known))
        return StreamingResponse(stream, media_type="text/event-stream")

    def labels(self, request):
        """All labels, for a page that has missed some."""
        everything = self.session.everything()
        return _answer(everything | {"labels": pack(everything["labels"], "<i4")})

    def state(self, request):
        """The map, the queue and the progress."""
        return _answer(news_of_state(self.session))

    def progress(self, request):
        """The progress alone."""
        return _answer(news_of_progress(self.session))

    def row(self, request):
        """The card of a row."""
        row = request.path_params["row"]
        if row >= len(self.session.rows.ids):
            return _answer({"error": f"there is no row {row}"}, 404)
        state, labels = self.session.state, self.session.record.labels
        found = details(self.session.rows, state, labels, row, self._typical_of(state))
        return _answer(found)

    def image(self, request):
        """The image of a row."""
        row = request.path_params["row"]
        path = self.session.rows.image(row) if row < len(self.session.rows.ids) else None
        if path is None:
            return Response(status_code=404)
        return FileResponse(path, media_type=IMAGES[path.suffix.lower()])

    def search(self, request):
        """Rows whose text has some words in it, in either case."""
        wanted, texts = request.query_params.get("text", "").lower(), self.session.rows.texts or []
        has = (i for i, text in enumerate(texts) if text is not None and wanted in text.lower())
        return _answer({"rows": list(islice(has, MOST_FOUND)) if wanted else []})

    async def act(self, request):
        """Do what a page asks; the answer comes when the disk has it."""
        try:
            asked = await _asked(request)
            return _answer(await asyncio.to_thread(self.session.act, asked))
        except ValueError as error:
            return _answer({"error": str(error)}, 400)
        except OSError as error:
            return _answer({"error": f"not saved: {error.strerror or error}"}, 507)

    async def export(self, request):
        """Write the labels, the model and the report; the names of the files."""
        try:
            await _asked(request)
            files = await asyncio.to_thread(export, self.session)
        except (ValueError, OSError) as error:
            return _answer({"error": str(error)}, 400)
        return _answer({"files": [str(path) for path in files]})

    def _typical_of(self, state):
        """What is typical of the classes, found once for a state."""
        version, found = self._typical
        if version != state.version:
            found = typical(self.session.rows.X, weights(state))
            self._typical = (state.version, found)
        return found


def weights(state):
    """Probabilities (n, C) of the classes; all rows alike while nothing is predicted."""
    return state.probabilities if state.predicts else np.ones((len(state.probabilities), 1))


async def _asked(request) -> dict:
    """The JSON of a request, which must say that it is JSON: a form of another site cannot."""
    if request.headers.get("content-type", "").partition(";")[0] != "application/json":
        raise ValueError("a request is JSON")
    body = bytearray()
    async for part in request.stream():
        body += part
        if len(body) > LARGEST_REQUEST:
            raise ValueError("the request is too large")
    asked = json.loads(body)
    if not isinstance(asked, dict):
        raise ValueError("a request is an object")
    return asked


def _answer(values, status=200):
    return Response(as_json(values), status, media_type="application/json")


class Server:
    """A session on a port of this machine; ``url`` has the token that opens it."""

    def __init__(self, session: Session, port=0):
        self.session, self.hub = session, Hub()
        self.socket = _listening(port)
        self.port, self.token = self.socket.getsockname()[1], secrets.token_urlsafe(24)
        self.url = f"http://{LOOPBACK}:{self.port}/{self.token}/"
        session.listen(self.hub.publish)
        routes = [Mount(f"/{self.token}", routes=Views(session, self.hub).routes())]
        app = Guard(Starlette(routes=routes, lifespan=self._life), self.token, self.port)
        config = uvicorn.Config(
            app,
            log_level="critical",
            access_log=False,
            server_header=False,
            ws="none",
            timeout_graceful_shutdown=FAREWELL,
        )
        self._server = uvicorn.Server(config)

    @property
    def is_running(self) -> bool:
        """Whether it answers."""
        return self._server.started

    def run(self):
        """Serve until `stop` or an interruption."""
        self._server.run(sockets=[self.socket])

    def stop(self):
        """End the server, from any thread."""
        if self.hub.loop is not None and not self.hub.loop.is_closed():
            self.hub.loop.call_soon_threadsafe(self.hub.close)
        self._server.should_exit = True

    @asynccontextmanager
    async def _life(self, app):
        self.hub.loop = asyncio.get_running_loop()
        yield


def _listening(port):
    """A socket of this machine alone."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    try:
        found.bind((LOOPBACK, port))
        found.listen()
    except OSError as error:
        found.close()
        raise OSError(error.errno, f"port {port}: {error.strerror}") from error
    return found
