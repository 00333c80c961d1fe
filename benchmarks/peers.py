# mypy: allow-untyped-calls
"""What svcd is measured against: a bare twisted.web resource, and Klein with as many routes.

Both answer constants of the same size as svcd's answers, without a database, an access log or any
check. `python -m benchmarks.peers bare|klein FILE` serves a free port and writes it to FILE.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final, cast

from klein import Klein
from twisted.internet import reactor
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from benchmarks.rows import BINARY_BYTES, LISTS, rendered

_FAMILIES: Final = (
    "plugins",
    "images",
    "node-group-templates",
    "cluster-templates",
    "clusters",
    "data-sources",
    "job-binary-internals",
    "job-binaries",
    "jobs",
    "job-executions",
)

ONE: Final = b'{"cluster":' + rendered(1)[0] + b"}"
MANY: Final = {
    tenant.encode(): b'{"clusters":[' + b",".join(rendered(count)) + b"]}"
    for tenant, count in LISTS.items()
}
DATA: Final = bytes(BINARY_BYTES)
MADE: Final = b'{"node_group_template":' + b'"' + b"x" * 400 + b'"}'


def answer(request: Any, status: int, body: bytes) -> bytes:
    """`body` with its length and type."""
    request.setResponseCode(status)
    request.setHeader(b"Content-Type", b"application/json")
    request.setHeader(b"Content-Length", b"%d" % len(body))
    return body


def read(request: Any) -> bytes:
    """The answer to a request that has a body."""
    if request.method == b"POST":
        json.loads(request.content.read())
        return answer(request, 202, MADE)
    size = len(request.content.read())
    return answer(request, 202, b'{"size":%d}' % size)


class Bare(Resource):
    """Looks at the path as little as it can."""

    isLeaf = True

    def render(self, request: Request) -> bytes:
        """Any method."""
        if request.method in (b"POST", b"PUT"):
            return read(request)
        parts = request.postpath or []
        if parts[-1] == b"data":
            return answer(request, 200, DATA)
        return answer(request, 200, MANY[parts[1]] if parts[-1] == b"clusters" else ONE)


def klein_app() -> Klein:
    """The paths of the interface, both versions, as Klein routes."""
    app = Klein()

    def add(rule: str, method: str, handler: Callable[..., bytes]) -> None:
        app.route(rule, methods=[method], endpoint=f"{method} {rule}")(handler)

    def listed(request: Any, tenant: str) -> bytes:
        return answer(request, 200, MANY[tenant.encode()])

    def one(request: Any, tenant: str, id_: str) -> bytes:
        return answer(request, 200, ONE)

    def data(request: Any, tenant: str, id_: str) -> bytes:
        return answer(request, 200, DATA)

    def posted(request: Any, tenant: str, id_: str = "") -> bytes:
        return read(request)

    for version in ("v1.0", "v1.1"):
        for family in _FAMILIES:
            base = f"/{version}/<tenant>/{family}"
            add(base, "GET", listed)
            add(base, "POST", posted)
            add(base + "/<id_>", "GET", one)
            add(base + "/<id_>", "PUT", posted)
            add(base + "/<id_>", "DELETE", one)
            add(base + "/<id_>/data", "GET", data)
    return app


def main(kind: str, ready: Path) -> None:
    """Serve until the process is ended."""
    resource = Bare() if kind == "bare" else klein_app().resource()
    site = Site(resource, parsePOSTFormSubmission=False)
    site.log = lambda request: None  # type: ignore[method-assign]
    listening = cast("Any", reactor).listenTCP(0, site, interface="127.0.0.1")
    partial = ready.with_suffix(".partial")
    partial.write_text(str(listening.getHost().port))
    partial.replace(ready)
    cast("Any", reactor).run()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
