"""The Oozie web services, version 1 (ports.Engine).

This module alone interprets Oozie's answers. Faults are in the `oozie-error-*` headers (bodies may
be HTML, JSON or empty); a 500 may have no code. A PUT is answered 200 even if nothing happened:
callers read the record back.

Source: Oozie 5.2.1; tests/fixtures/oozie holds its recorded answers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from urllib.parse import quote, urlencode
from xml.sax.saxutils import escape

import msgspec

from svcd.clients.ends import Ends
from svcd.clients.http import Answer, HttpClient
from svcd.clients.http_faults import kind_of
from svcd.model import foreign
from svcd.model.execution_log import FileEnds
from svcd.model.redaction import named
from svcd.model.secret import Secret
from svcd.ports.engine import EngineError, JobLine
from svcd.ports.faults import Fault
from svcd.ports.machines import Location

_XML: Final = "application/xml;charset=UTF-8"
_UNKNOWN: Final = frozenset({"E0604", "E0605"})
_UNKNOWN_INSIDE: Final = re.compile(r"\bE0604\b")
_MOST_MESSAGE: Final = 500
"""Characters of an error's text."""
_MOST_LOG_BYTES: Final = 64 << 20
"""Most bytes of a log that svcd reads to find its end."""
_LOG_TIMES: Final = 4
"""Time for a whole log, as a multiple of the time-out of a call."""
_TAGS: Final = re.compile(r"<[^>]*>")
_UNRESERVED: Final = re.compile(r"[A-Za-z0-9_.~-]*\Z")
"""Characters that a URL may have unquoted. Ids of Oozie have no others, so a tick quotes none."""
_ID: Final = re.compile(r"[A-Za-z0-9_.@:-]{1,120}\Z")


def engine_error(service: str, kind: Fault, text: str, _: float | None) -> EngineError:
    """The ErrorMaker for the HttpClient of this client and of the WebHDFS client."""
    return EngineError(kind, f"{service}: {text}")


class OozieClient:
    """One client for all engines; `base` of each call names one, for example http://h:11000/oozie.

    log_bytes: the bytes that are kept of the end of a log; of a longer one also its beginning, a
    quarter.
    """

    def __init__(
        self, http: HttpClient, timeout_s: float = 30.0, log_bytes: int = 1_048_576
    ) -> None:
        self._http = http
        self._timeout_s = timeout_s
        self._log_bytes = log_bytes

    async def status(self, base: Location) -> str:
        tree = await self._json("GET", base, "/v1/admin/status")
        mode = tree.get("systemMode")
        if not isinstance(mode, str):
            raise _malformed("GET admin/status", "no systemMode")
        return mode

    async def submit(self, base: Location, properties: Mapping[str, str]) -> str:
        body = _configuration(properties).encode()
        answer = await self._call(
            "POST",
            base,
            "/v1/jobs",
            {"action": "start"},
            body=body,
            timeout_s=2 * self._timeout_s,
            secrets=named(properties),
        )
        job_id = _object("POST jobs", answer).get("id")
        if answer.status != 201 or not isinstance(job_id, str) or not _ID.match(job_id):
            raise _malformed("POST jobs", f"HTTP {answer.status} without the id of a job")
        return job_id

    async def find(self, base: Location, external_id: str) -> str | None:
        tree = await self._json("GET", base, "/v1/jobs", {"external-id": external_id})
        job_id = tree.get("id")
        if not isinstance(job_id, str):
            raise _malformed("GET jobs?external-id", "no id")
        return job_id or None

    async def record(self, base: Location, job_id: str) -> Mapping[str, object]:
        tree = await self._json("GET", base, f"/v1/job/{quote(job_id, safe='')}", {"show": "info"})
        if tree.get("id") != job_id or not isinstance(tree.get("status"), str):
            raise _malformed(f"GET job {job_id}", "not the record of this job")
        return tree

    async def lines(self, base: Location, job_ids: Sequence[str]) -> Sequence[JobLine]:
        if not job_ids:
            return []
        if not _UNRESERVED.match("".join(job_ids)):
            job_ids = [quote(job_id, safe="") for job_id in job_ids]
        filters = "id%3D" + "%3Bid%3D".join(job_ids)
        path = f"/v1/jobs?filter={filters}&len={len(job_ids)}"  # the filters are encoded already
        answer = await self._call("GET", base, path)
        listed = foreign.typed(answer.body, _LISTED)
        if listed is not None:
            return listed.workflows
        rows = _object("GET /v1/jobs", answer).get("workflows")
        if not isinstance(rows, list):
            raise _malformed("GET jobs", "no workflows")
        return [_line(row) for row in rows if isinstance(row, dict)]

    async def kill(self, base: Location, job_id: str) -> None:
        path = f"/v1/job/{quote(job_id, safe='')}"
        await self._call("PUT", base, path, {"action": "kill"})

    async def log(self, base: Location, job_id: str) -> FileEnds:
        path = f"/v1/job/{quote(job_id, safe='')}"
        url = f"{base.url.rstrip('/')}{path}?show=log"
        collected = Ends(self._log_bytes // 4, self._log_bytes)
        async with self._http.stream_get(
            url,
            timeout_s=self._timeout_s,
            service="workflow engine",
            through=base.machine,
            most_bytes=_MOST_LOG_BYTES,
            most_s=_LOG_TIMES * self._timeout_s,
        ) as stream:
            async for piece in stream.pieces:
                collected.add(piece)
        ends = collected.ends()
        if stream.status >= 300:
            answer = Answer(status=stream.status, headers=stream.headers, body=ends.tail)
            raise fault_of(f"GET {path}", answer)
        return ends

    async def _json(
        self, method: str, base: Location, path: str, query: Mapping[str, str] | None = None
    ) -> Mapping[str, object]:
        return _object(f"{method} {path}", await self._call(method, base, path, query))

    async def _call(
        self,
        method: str,
        base: Location,
        path: str,
        query: Mapping[str, str] | None = None,
        *,
        body: bytes | None = None,
        timeout_s: float | None = None,
        secrets: Sequence[Secret] = (),
    ) -> Answer:
        url = base.url.rstrip("/") + path + (f"?{urlencode(query)}" if query else "")
        answer = await self._http.request(
            method,
            url,
            headers={"Accept": "application/json", **({"Content-Type": _XML} if body else {})},
            body=body,
            timeout_s=timeout_s or self._timeout_s,
            service="workflow engine",
            secrets=secrets,
            through=base.machine,
        )
        if answer.status >= 300:
            raise fault_of(f"{method} {path.partition('?')[0]}", answer)
        return answer


def fault_of(call: str, answer: Answer) -> EngineError:
    """The error for a refused call."""
    code = answer.headers.get("oozie-error-code", "").strip()
    message = answer.headers.get("oozie-error-message", "").strip() or _body_text(answer)
    message = answer.without_secrets(message)
    text = f"{call}: HTTP {answer.status} {message}".strip()[:_MOST_MESSAGE]
    if code in _UNKNOWN or (code == "E0307" and _UNKNOWN_INSIDE.search(message)):
        return EngineError(Fault.NOT_FOUND, text, code)
    if answer.status in (429, 503) or code == "E0002":
        return EngineError(Fault.BUSY, text, code)
    if answer.status == 404:
        return EngineError(Fault.SERVER_ERROR, f"{text} (is this the URL of the engine?)", code)
    return EngineError(kind_of(answer.status), text, code)


def _configuration(properties: Mapping[str, str]) -> str:
    inner = "".join(
        f"<property><name>{escape(n)}</name><value>{_xml(v)}</value></property>"
        for n, v in properties.items()
    )
    return f"<configuration>{inner}</configuration>"


def _xml(text: str) -> str:
    return escape(text, {"\r": "&#13;"})


class _Listed(msgspec.Struct):
    workflows: list[JobLine]


_LISTED: Final = msgspec.json.Decoder(_Listed)


def _line(row: Mapping[str, object]) -> JobLine:
    job_id, status = row.get("id"), row.get("status")
    if not isinstance(job_id, str) or not isinstance(status, str):
        raise _malformed("GET jobs", "a workflow without id or status")
    modified = row.get("lastModTime")
    return JobLine(
        id=job_id, status=status, last_modified=modified if isinstance(modified, str) else None
    )


def _object(call: str, answer: Answer) -> Mapping[str, object]:
    try:
        tree = foreign.loads(answer.body)
    except ValueError:
        raise _malformed(call, "the answer is not JSON") from None
    if not isinstance(tree, dict):
        raise _malformed(call, "the answer is not a JSON object")
    return tree


def _malformed(call: str, why: str) -> EngineError:
    return EngineError(Fault.SERVER_ERROR, f"{call}: {why}")


def _body_text(answer: Answer) -> str:
    """The message in the body of an answer: in JSON, or as a page without its tags."""
    text = answer.body[:4096].decode("utf-8", "replace")
    try:
        tree = foreign.loads(text)
    except ValueError:
        return " ".join(_TAGS.sub(" ", answer.without_secrets(text)).split())
    message = tree.get("errorMessage") if isinstance(tree, dict) else None
    return message if isinstance(message, str) else ""
