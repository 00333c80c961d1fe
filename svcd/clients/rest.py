"""The common part of the OpenStack clients: calls with a token, error bodies, and pages.

A 401 does not prove that the token is invalid: Glance and Swift also send it when they cannot reach
Keystone. So the session checks the token at Keystone (`Session.refused`).
"""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from email.utils import parsedate_to_datetime
from functools import partial
from typing import Any, Protocol, TypeVar

from svcd.clients.http import Answer, HttpClient, Stream
from svcd.clients.http_faults import kind_of
from svcd.model.cloud import Usage
from svcd.model.redaction import shown_url
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault

T = TypeVar("T")
AnyAnswer = TypeVar("AnyAnswer", Answer, Stream)

_QUOTA = re.compile(r"quota|overquota|maximum number of|limit exceeded", re.IGNORECASE)
_BUSY = re.compile(
    r"already attached|invalid volume|status must be|in use|is still|currently in", re.IGNORECASE
)
_EXHAUSTED = frozenset({"OverQuota", "IpAddressGenerationFailure", "ExternalIpAddressExhausted"})
_TEXT_LIMIT = 300
"""Characters of a service's message that an error quotes."""
_MOST_READ = 4096
"""Characters of an error body in which the message is searched."""


class RestError(CloudError):
    """A refusal by a service. status: the HTTP status; type: Neutron's name of the fault, or ""."""

    def __init__(
        self,
        service: str,
        kind: Fault,
        text: str,
        retry_after_s: float | None = None,
        *,
        status: int = 0,
        type: str = "",
    ) -> None:
        super().__init__(service, kind, text, retry_after_s)
        self.status = status
        self.type = type


def shaped(service: str, kind: str, convert: Callable[[Any], T], value: Any) -> T:
    """`convert(value)`. Raises CloudError SERVER_ERROR when `value` has another structure."""
    try:
        return convert(value)
    except (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError):
        text = f"the answer does not have the structure of {kind}"
        raise CloudError(service, Fault.SERVER_ERROR, text) from None


def usage(limit: Any, *used: Any) -> Usage:
    """The use of a quota in the numbers of a service: a limit of -1, or none, is unlimited."""
    is_limited = isinstance(limit, int) and not isinstance(limit, bool) and limit >= 0
    return Usage(
        used=max(0, sum(int(amount or 0) for amount in used)), limit=limit if is_limited else None
    )


class Session(Protocol):
    """Gives the token of one tenant, and decides on a retry when a service refuses the token."""

    async def token(self) -> Secret: ...
    async def endpoint(self, *types: str) -> str:
        """The base URL of the first of `types` in the catalog, without a slash at its end."""
        ...

    async def refused(self, token: Secret, service: str) -> None:
        """Returns when the caller may try again. Raises CloudError when it may not."""
        ...


def error_body(answer: Answer) -> tuple[str, str]:
    """The message, and Neutron's type of the fault, in the error body of any service."""
    try:
        parsed = answer.json()
    except ValueError:
        return _plain(answer, answer.body[:_MOST_READ].decode("utf-8", "replace")), ""
    if isinstance(parsed, dict):
        inner = next((v for v in parsed.values() if isinstance(v, dict)), parsed)
        message = inner.get("message") or parsed.get("message") or ""
        return _plain(answer, str(message)), str(inner.get("type", ""))
    return "", ""


def _plain(answer: Answer, text: str) -> str:
    """`text` on one line, without tags (Glance has them even in JSON) and without secrets."""
    text = answer.without_secrets(text[:_MOST_READ])
    return " ".join(re.sub(r"</?[a-z][^>]*>", " ", text, flags=re.IGNORECASE).split())[:_TEXT_LIMIT]


def retry_after_s(answer: Answer) -> float | None:
    """The seconds of `Retry-After`, or None. A date is compared with the answer's own `Date`."""
    text = answer.header("retry-after")
    try:
        if re.fullmatch(r"[0-9]{1,9}(\.[0-9]+)?", text):
            return float(text)
        until = parsedate_to_datetime(text)
        return max(0.0, (until - parsedate_to_datetime(answer.header("date"))).total_seconds())
    except (ValueError, TypeError):
        return None


def refusal(service: str, method: str, url: str, answer: Answer) -> RestError:
    """The error for an answer of 400 and above. Source: platform's refusals."""
    message, type_ = error_body(answer)
    status, after = answer.status, retry_after_s(answer)
    where = f"{method} {shown_url(url.partition('?')[0])}"
    text = f"{where} was answered {status}: {message or 'no reason given'}"

    def error(kind: Fault) -> RestError:
        return RestError(service, kind, text, after, status=status, type=type_)

    over_quota = bool(_QUOTA.search(message)) or type_ in _EXHAUSTED
    if (status in (403, 409, 413) and over_quota) or (status == 400 and type_ in _EXHAUSTED):
        return error(Fault.QUOTA)
    busy = status == 400 and _BUSY.search(message)
    if busy or status in (409, 413) or (status == 503 and after is not None):
        return error(Fault.BUSY)
    return error(kind_of(status))


def _next_link(body: Mapping[str, Any], name: str) -> str | None:
    """The query of the next page: Glance's `next`, or the `next` in `<name>_links`.

    svcd may not reach the host of the link, so only its query is used.
    """
    link = body.get("next")
    links = body.get(f"{name}_links")
    for row in links if isinstance(links, list) else ():
        if isinstance(row, dict) and row.get("rel") == "next":
            link = row.get("href")
    return link.partition("?")[2] or None if isinstance(link, str) else None


class Rest:
    """Calls one service as one tenant. service: its name in errors.

    types: of the service in the catalog; suffix: its version. tenant: the calls take its places.
    url: of a service at a known place.
    """

    def __init__(
        self,
        http: HttpClient,
        session: Session,
        service: str,
        types: Sequence[str],
        suffix: str = "",
        *,
        tenant: str = "",
        url: str = "",
    ) -> None:
        self._http = http
        self._session = session
        self.service = service
        self._types = types
        self._suffix = suffix
        self._tenant = tenant
        self._url = url.rstrip("/")

    async def base(self) -> str:
        """The URL of the service, with its version."""
        if self._url:
            return self._url
        base = await self._session.endpoint(*self._types)
        return base if not self._suffix or base.endswith(self._suffix) else base + self._suffix

    async def call(
        self,
        method: str,
        path: str,
        body: Any = None,
        *,
        headers: Mapping[str, str] | None = None,
        absent_ok: bool = False,
    ) -> Any:
        """The JSON of the answer, None when it is empty. Raises CloudError.

        path: below the base, or a whole URL. absent_ok: a 404 gives None.
        """
        url = path if path.startswith("http") else await self.base() + path
        data = None if body is None else json.dumps(body).encode("utf-8")
        answer = await self._authorized(
            method, url, partial(self._send, method, url, data, headers or {})
        )
        if answer.status == 404 and absent_ok:
            return None
        if answer.status >= 400:
            raise refusal(self.service, method, url, answer)
        if not answer.body:
            return None
        try:
            return answer.json()
        except ValueError:
            raise CloudError(
                self.service,
                Fault.SERVER_ERROR,
                f"the answer to {method} {shown_url(url)} is not JSON",
            ) from None

    async def pages(
        self,
        path: str,
        name: str,
        convert: Callable[[dict[str, Any]], T],
        *,
        limit: int | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> list[T]:
        """All entries of a list, from all pages, converted. name: the key of the list."""
        query = "&" if "?" in path else "?"
        following: str | None = f"{path}{query}limit={limit}" if limit else path
        rows: list[T] = []
        seen: set[str] = set()
        while following and following not in seen:
            seen.add(following)
            body = await self.call("GET", following, headers=headers)
            got = body.get(name) if isinstance(body, dict) else None
            if not isinstance(got, list):
                text = f"GET {path} was answered without {name}"
                raise CloudError(self.service, Fault.SERVER_ERROR, text)
            rows += shaped(self.service, name, lambda got: [convert(row) for row in got], got)
            link = _next_link(body, name) if got else None
            following = None if link is None else path.partition("?")[0] + "?" + link
        return rows

    async def _send(
        self, method: str, url: str, data: bytes | None, headers: Mapping[str, str], token: Secret
    ) -> Answer:
        sent = {"Accept": "application/json", **headers, "X-Auth-Token": token.reveal()}
        if data is not None:
            sent.setdefault("Content-Type", "application/json")
        return await self._http.request(
            method, url, headers=sent, body=data, service=self.service, tenant=self._tenant
        )

    @asynccontextmanager
    async def stream(self, path: str) -> AsyncIterator[Stream]:
        """GET `path` and stream the body. Raises CloudError for 400 and above."""
        url = await self.base() + path
        async with AsyncExitStack() as stack:

            async def opened(token: Secret) -> Stream:
                await stack.aclose()  # close the answer to the refused token
                headers = {"X-Auth-Token": token.reveal()}
                stream = self._http.stream_get(url, headers=headers, service=self.service)
                return await stack.enter_async_context(stream)

            stream = await self._authorized("GET", url, opened)
            if stream.status >= 400:
                answer = Answer(status=stream.status, headers=stream.headers, body=b"")
                raise refusal(self.service, "GET", url, answer)
            yield stream

    async def _authorized(
        self, method: str, url: str, send: Callable[[Secret], Awaitable[AnyAnswer]]
    ) -> AnyAnswer:
        """The answer to `send` with the token of the session, or with the next one after a 401."""
        for last in (False, True):
            token = await self._session.token()
            answer = await send(token)
            if answer.status != 401:
                return answer
            if not last:
                await self._session.refused(token, self.service)
        text = (
            f"{method} {shown_url(url)} was refused with a token that the identity service accepts"
        )
        raise RestError(self.service, Fault.SERVER_ERROR, text, status=401)
