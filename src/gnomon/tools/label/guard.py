"""The door of the labelling server: who may ask for anything at all.

A request is let in only if it names this server as its host (so that no foreign name can be
pointed at it), carries the token of the address, and, where a browser says from which page it
comes, comes from this server's own. Every answer forbids to be framed, guessed at or kept.
"""

import secrets

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import PlainTextResponse

# What a browser may say of the page that asks; anything else is another site's.
OWN_SITES = ("same-origin", "none")
HEADERS = {
    "cache-control": "no-store",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "cross-origin-resource-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
}
# For what is no page: it may load and run nothing.
NOTHING_RUNS = "default-src 'none'; style-src 'unsafe-inline'; sandbox; frame-ancestors 'none'"


class Guard:
    """An application behind the door; ``port`` is where the server listens."""

    def __init__(self, app, token, port):
        self.app, self.token = app, token
        self.hosts = {f"127.0.0.1:{port}", f"localhost:{port}"}

    async def __call__(self, scope, receive, send):
        """Answer a request, or refuse it."""
        if scope["type"] == "lifespan":
            return await self.app(scope, receive, send)
        if scope["type"] != "http" or not self.lets_in(scope):
            return await PlainTextResponse("refused", 403)(scope, receive, self.sealed(send))
        return await self.app(scope, receive, self.sealed(send))

    def lets_in(self, scope) -> bool:
        """Whether host, token and origin are this server's own."""
        headers = Headers(scope=scope)
        hosts = headers.getlist("host")
        if len(hosts) != 1 or hosts[0] not in self.hosts:
            return False
        token = scope["path"].split("/")[1].encode(errors="surrogateescape")
        if not secrets.compare_digest(token, self.token.encode()):
            return False
        origin, site = headers.get("origin"), headers.get("sec-fetch-site")
        if origin is None:
            # A browser sends it with every request that changes something.
            return scope["method"] in ("GET", "HEAD") and site in (None, *OWN_SITES)
        return origin == f"http://{hosts[0]}" and site in (None, *OWN_SITES)

    @staticmethod
    def sealed(send):
        """The way out, by which every answer gets its headers."""

        async def sealed_send(message):
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers[name] = value
                headers.setdefault("content-security-policy", NOTHING_RUNS)
            await send(message)

        return sealed_send
