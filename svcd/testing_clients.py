"""A FakeService as the peer of ordinary HTTP clients in the same process: requests and httpx."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Mapping
from http import HTTPStatus
from typing import TYPE_CHECKING, Any

import requests
from requests.adapters import BaseAdapter
from requests.structures import CaseInsensitiveDict
from requests.utils import get_encoding_from_headers

if TYPE_CHECKING:
    import httpx

Call = Callable[..., Any]
"""`FakeService.call`."""

_OF_CONNECTION = frozenset(
    {"accept-encoding", "connection", "content-length", "host", "transfer-encoding"}
)
"""Header fields that mean nothing without a connection; nor is an answer compressed."""


def session(call: Call, urls: Iterable[str]) -> requests.Session:
    """See FakeService.session. urls: of the service and its cloud."""
    made = requests.Session()
    made.trust_env = False  # a proxy of the environment would be told about a host that is none
    for url in urls:
        made.mount(url, _Adapter(call))
    return made


def transport(call: Call) -> httpx.BaseTransport:
    """See FakeService.transport. Raises ImportError without httpx."""
    import httpx  # here: svcd does not need it

    class Transport(httpx.BaseTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            answer = _called(call, request.method, str(request.url), request.read(), request)
            return httpx.Response(
                answer.status, headers=dict(answer.headers), content=answer.body, request=request
            )

    return Transport()


class _Adapter(BaseAdapter):
    def __init__(self, call: Call) -> None:
        super().__init__()
        self._call = call

    def send(self, request: requests.PreparedRequest, **_: Any) -> requests.Response:  # type: ignore[override]
        """Answer from memory; there is nothing to time out."""
        method, url = request.method or "GET", request.url or ""
        answer = _called(self._call, method, url, _whole(request.body), request)
        response = requests.Response()
        response.status_code = answer.status
        response.reason = HTTPStatus(answer.status).phrase
        response.headers = CaseInsensitiveDict(answer.headers)
        response.encoding = get_encoding_from_headers(response.headers)
        response.raw = io.BytesIO(answer.body)
        response.url, response.request = url, request
        return response

    def close(self) -> None:
        """There is no connection."""


def _called(call: Call, method: str, url: str, body: bytes, request: Any) -> Any:
    headers: Mapping[str, str] = request.headers
    given = {n: v for n, v in headers.items() if n.lower() not in _OF_CONNECTION}
    return call(method, url, data=body or None, headers=given)


def _whole(body: Any) -> bytes:
    """The bytes of a body: a text, bytes, a file or pieces."""
    if body is None or isinstance(body, (bytes, bytearray, memoryview)):
        return bytes(body or b"")
    if isinstance(body, str):
        return body.encode()
    if hasattr(body, "read"):
        return _whole(body.read())
    pieces: Iterable[bytes | str] = body
    return b"".join(map(_whole, pieces))
