"""Answers that a peer gives when it is not well, or does not like who asks: as seen in real ones.

Each is a name and a function that gives the fields of a fault rule for a peer.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

Answer = Callable[[str], Mapping[str, Any]]

_PAGE = """<html><head><title>{status} {word}</title></head>
<body><center><h1>{status} {word}</h1></center><hr><center>nginx</center></body></html>
"""
_WORDS = {
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    409: "Conflict",
    413: "Request Entity Too Large",
    429: "Too Many Requests",
    500: "Internal Server Error",
    502: "Bad Gateway",
    503: "Service Unavailable",
    504: "Gateway Timeout",
}


def page(status: int, where: str, **headers: str) -> Mapping[str, Any]:
    """HTML, as a proxy before the peer, or a servlet container, writes it."""
    body = _PAGE.format(status=status, word=_WORDS[status])
    return {"status": status, "body": body, "headers": {"Content-Type": "text/html", **headers}}


def told(status: int, where: str, **headers: str) -> Mapping[str, Any]:
    """JSON, as the peer itself says it."""
    word = _WORDS[status]
    sort = "application/json"
    if where == "hdfs":
        name = {401: "AuthenticationException", 403: "StandbyException"}.get(status, "IOException")
        body: object = {"RemoteException": {"exception": name, "message": word}}
    elif where == "engine":
        body = {"errorMessage": f"E0000: {word}", "httpStatusCode": status}
        headers = {"oozie-error-code": "E0000", "oozie-error-message": word, **headers}
    elif where == "probe":
        body = {"RemoteException": {"exception": "WebApplicationException", "message": word}}
    else:
        body = {"error": {"code": status, "title": word, "message": f"{word} (simulated)"}}
    return {
        "status": status,
        "body": json.dumps(body),
        "headers": {"Content-Type": sort, **headers},
    }


def bare(status: int, where: str) -> Mapping[str, Any]:
    """Nothing but the status."""
    return {"status": status}


ANSWERS: tuple[tuple[str, Answer], ...] = (
    ("401", partial(told, 401)),
    ("401 page", partial(page, 401)),
    ("403", partial(told, 403)),
    ("403 bare", partial(bare, 403)),
    ("404", partial(told, 404)),
    ("409", partial(told, 409)),
    ("413 later", partial(told, 413, **{"Retry-After": "2"})),
    ("429 later", partial(told, 429, **{"Retry-After": "3"})),
    ("429 bare", partial(bare, 429)),
    ("500", partial(told, 500)),
    ("500 page", partial(page, 500)),
    ("500 bare", partial(bare, 500)),
    ("502 page", partial(page, 502)),
    ("503", partial(told, 503)),
    ("503 later", partial(page, 503, **{"Retry-After": "4"})),
    ("504 page", partial(page, 504)),
)
