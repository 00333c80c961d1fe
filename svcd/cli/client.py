"""The commands' client of svcd's API: retries, pages, streams, refusals by name.

`Api` knows the v1.1 interface of one project. A command calls `get`, `post`, `put`, `delete`,
`listed` and `rows`, which return parsed JSON and raise CommandError with the exit code of the
refusal. `get` returns None for status 404.

Note: requests that are sent again. A GET, and a POST, which carries an `Idempotency-Key`, is sent
again when the connection breaks or the service is starting: 503, or 502 and 504 of a proxy before
it. The tries last for `patience_s`: a moment by default, much longer under `--wait`, so that a
daemon may restart meanwhile. A DELETE is sent again only after these statuses, also when the
service is overloaded: a second DELETE has no other effect than the first.

Note: programs that are not svcd. Each answer of svcd has an `X-Request-Id`. Commands
refuse an answer without it, and so read the fields of resources without further checks.
"""

from __future__ import annotations

import email.utils
import io
import json
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final
from urllib.parse import quote

from svcd.cli.door import Door
from svcd.cli.exits import NOT_FOUND, REFUSED, UNREACHABLE, CommandError
from svcd.cli.http import MOST_QUOTED, Answer, Http, Lost, shown

_PAUSES_S: Final = (0.2, 0.5, 1.0, 2.0)
"""Seconds between attempts; the last value repeats."""
_MOMENT_S: Final = 1.0
"""Seconds for the tries of a request of an ordinary command."""
_OF_SVCD: Final = "x-request-id"
_STARTING: Final = frozenset({502, 503, 504})
_DELETE_S: Final = 15.0
"""Seconds for the tries of a DELETE while the service is overloaded."""
_NAME_TAKEN: Final = "NAME_ALREADY_EXISTS"
"""The end of the error names for a name that another object has, such as CLUSTER_NAME_TAKEN."""
_PAGE_ROWS: Final = 500
"""Rows of one page of a long list."""
_MOST_PAGES: Final = 2000
"""Most pages of a list that a command reads."""
_MOST_EVENT_BYTES: Final = 64 * 2**20
"""Most bytes of an event of a stream."""
_SILENCE_S: Final = 60.0
"""Longest time without a byte of a stream: the API sends a comment every 15 s."""


class Api:
    """Requests to the daemon behind `door`.

    renew: logs in again and returns the new token; "" when it cannot. note: takes a line for
    people when a patient command begins to wait for a daemon that is away.
    """

    def __init__(
        self,
        door: Door,
        http: Http,
        renew: Callable[[], str] = str,
        pause: Callable[[float], None] = time.sleep,
        note: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.door = door
        self._http = http
        self._renew = renew
        self._pause = pause
        self._say = note
        self.patience_s = _MOMENT_S
        """Seconds for the tries of a request while the daemon does not answer."""
        self._in_doubt = False
        """Whether an earlier try of the request may have done its work."""
        self.seconds: float | None = None
        """The daemon's time in its last answer, epoch seconds; None without a Date header."""

    def be_patient(self, patience_s: float) -> None:
        """Wait for this time for an absent daemon, also while its port is closed."""
        self.patience_s = patience_s

    # ---- resources ------------------------------------------------------------------------------

    def get(self, path: str) -> Any:
        """The JSON object of a success; None for status 404. Raises CommandError."""
        answer = self.call("GET", path)
        return None if answer.status == 404 else self._object(answer, path)

    def listed(self, path: str) -> Any:
        """The body of a list. Raises CommandError."""
        answer = self._found(self.call("GET", path), path)
        body = self._object(answer, path)
        if any(map(_are_rows, body.values())):
            return body
        raise self._refused(path, answer)

    def rows(self, path: str, key: str) -> Iterator[Any]:
        """The rows of a list, the oldest first, read in pages of bounded size.

        Raises CommandError, also in the middle.
        """
        after = ""
        for _ in range(_MOST_PAGES):
            mark = f"&marker={safe(after)}" if after else ""
            query = f"{'&' if '?' in path else '?'}limit={_PAGE_ROWS}{mark}"
            page = self.listed(path + query)[key]
            yield from page
            if len(page) < _PAGE_ROWS:
                return
            after = str(page[-1].get("id") or "")
        text = f"{self.door.base}{path} has more than {_MOST_PAGES * _PAGE_ROWS} rows"
        raise CommandError(
            f"{text}; no svcd keeps so many: does --api name svcd's daemon?", UNREACHABLE
        )

    def post(self, path: str, body: object, key: str = "") -> Any:
        """Create something; the JSON of the answer. key: of idempotency, else a new one."""
        headers = {"Idempotency-Key": key or uuid.uuid4().hex}
        return self._changed(self.call("POST", path, body, headers), path)

    def put(self, path: str, body: object) -> Any:
        """Change a resource, or upload bytes; the JSON of the answer."""
        return self._changed(self.call("PUT", path, body), path)

    def delete(self, path: str) -> None:
        """Delete a resource, if need be in several tries. Raises CommandError."""
        answer = self.call("DELETE", path)
        if answer.status == 404 and self._in_doubt:
            return  # an earlier try has deleted it
        self._changed(answer, path)

    # ---- answers of other forms -----------------------------------------------------------------

    def pieces(self, path: str) -> Iterator[bytes]:
        """The raw body of a success in pieces, of any length. Raises CommandError."""
        return self._stream(path, {})

    def events(self, path: str) -> Iterator[tuple[str, str, Any]]:
        """A stream of server-sent events as (id, event, data).

        Raises CommandError, also in the middle when the connection breaks (Lost).
        """
        headers = {"Accept": "text/event-stream", "Cache-Control": "no-cache"}
        return parsed_events(self._stream(path, headers))

    def call(
        self,
        method: str,
        path: str,
        body: object = None,
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer of a success or of status 404. body: bytes, or an object for JSON.

        Raises CommandError for other statuses.
        """
        given = {"Accept": "application/json", **(headers or {})}
        data = body if isinstance(body, bytes) else None
        if body is not None and data is None:
            data = json.dumps(body).encode()
            given["Content-Type"] = "application/json"
        self._in_doubt = False
        answer = self._again(method, self.door.base + path, data, given)
        if answer.status == 401 and self._renewed():
            answer = self._again(method, self.door.base + path, data, given)
        if answer.headers.get(_OF_SVCD) and (200 <= answer.status < 300 or answer.status == 404):
            return answer
        raise self._refused(path, answer)

    # ---- sending --------------------------------------------------------------------------------

    def _again(
        self, method: str, url: str, body: bytes | None, headers: Mapping[str, str]
    ) -> Answer:
        """The answer to the last try of a request. Raises CommandError."""
        repeatable = method == "GET" or "Idempotency-Key" in headers
        waits = self.patience_s > _MOMENT_S
        begin = time.monotonic()
        attempt = 0
        while True:
            try:
                answer = self._http.send(method, url, body, {**headers, **self._token()})
                spent = time.monotonic() - begin
                answer = answer._replace(sent=(self.door.token,))
                self._note_time(answer)
                patient = repeatable and spent < self.patience_s
                patient |= method == "DELETE" and spent < max(self.patience_s, _DELETE_S)
                if answer.status not in _STARTING or not patient:
                    return answer
                self._in_doubt |= method == "DELETE"
            except Lost as lost:
                self._in_doubt |= lost.sent and method != "GET"
                patient = repeatable if lost.sent else waits
                if patient and time.monotonic() - begin < self.patience_s:
                    pass
                elif lost.refused:
                    text = f"{lost}; does the daemon run? (make run, or twistd svcd, starts it)"
                    raise Lost(text, lost.sent, refused=True) from None
                else:
                    raise
            if not attempt and waits:
                at = self.door.api.rstrip("/")
                self._say(f"the daemon at {at} is away: waiting {self.patience_s:.0f} s for it")
            self._pause(_PAUSES_S[min(attempt, len(_PAUSES_S) - 1)])
            attempt += 1

    def _stream(self, path: str, headers: Mapping[str, str]) -> Iterator[bytes]:
        """The pieces of the body of a success. Raises CommandError."""
        self._in_doubt = False
        url = self.door.base + path
        answer, pieces = self._http.stream(url, {**headers, **self._token()}, _SILENCE_S)
        if answer.status == 401 and self._renewed():
            answer, pieces = self._http.stream(url, {**headers, **self._token()}, _SILENCE_S)
        if answer.status != 200 or not answer.headers.get(_OF_SVCD):
            raise self._refused(path, answer._replace(sent=(self.door.token,)))
        return pieces

    def _token(self) -> Mapping[str, str]:
        return {"X-Auth-Token": self.door.token} if self.door.token else {}

    def _renewed(self) -> bool:
        token = self._renew()
        if token:
            self.door = self.door._replace(token=token)
        return bool(token)

    def _note_time(self, answer: Answer) -> None:
        date = email.utils.parsedate_tz(answer.headers.get("date", ""))
        if date is not None:
            self.seconds = float(email.utils.mktime_tz(date))

    # ---- answers --------------------------------------------------------------------------------

    def _changed(self, answer: Answer, path: str) -> Any:
        return self._object(self._found(answer, path), path) if answer.body else {}

    def _object(self, answer: Answer, path: str) -> Any:
        """The JSON object of a success, the form that all answers of svcd have."""
        body = answer.json
        if isinstance(body, dict):
            return body
        raise self._refused(path, answer)

    def _found(self, answer: Answer, path: str) -> Answer:
        if answer.status == 404:
            raise self._refused(path, answer)
        return answer

    def _refused(self, path: str, answer: Answer) -> CommandError:
        """The refusal of a request. An earlier try that broke off may have had its effect."""
        name, text = self._refusal(path, answer)
        code = exit_code(answer.status) if answer.headers.get(_OF_SVCD) else UNREACHABLE
        if self._in_doubt:
            text, code = f"{text}; an earlier try of this request may have succeeded", UNREACHABLE
        return CommandError(text, code, name)

    def _refusal(self, path: str, answer: Answer) -> tuple[str, str]:
        """The error's name, and the daemon's text, after a failure with the request id of its log.

        A peer that is not svcd is named, and its error has no name.
        """
        from svcd.cli.words import in_commands, in_one_line
        from svcd.model.redaction import hidden

        try:
            body = json.loads(answer.body)
            name, said = str(body.get("error_name", "")), str(body["error_message"])[:MOST_QUOTED]
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return "", self._stranger(path, answer)
        request = answer.headers.get(_OF_SVCD, "")
        if not request:
            return "", self._stranger(path, answer)
        text = in_one_line(in_commands(hidden(said, answer.sent)))
        if answer.status == 401 and not self.door.token:
            text += "; set OS_TOKEN, or OS_AUTH_URL, OS_USERNAME, OS_PASSWORD and OS_PROJECT_NAME"
        if answer.status >= 500 and "incident" not in text:
            text += f" (request {request} in the log of the daemon)"
        return name, text

    def _stranger(self, path: str, answer: Answer) -> str:
        said = " ".join(answer.excerpt(200).split())
        where = shown(self.door.base + path.partition("?")[0])
        quoted = f": {said}" if said else ""
        text = f"the answer {answer.status} of {where} is not one of svcd{quoted}"
        return f"{text}; is a proxy between, or does --api name something else?"


def _are_rows(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)


def exit_code(status: int) -> int:
    """The exit code for a refusal with this HTTP status. Pure."""
    if status == 404:
        return NOT_FOUND
    return REFUSED if 400 <= status < 500 else UNREACHABLE


def name_taken(error: CommandError) -> bool:
    """Whether the API refuses a name that another object has: another command may have made it."""
    return error.code == REFUSED and error.name.endswith(_NAME_TAKEN)


def safe(text: str) -> str:
    """`text` as one segment of a path, or as a value of a query."""
    return quote(text, safe="")


# ---- server-sent events -------------------------------------------------------------------------


def parsed_events(pieces: Iterator[bytes]) -> Iterator[tuple[str, str, Any]]:
    """Server-sent events as (id, event, data as JSON, None when empty). Comments are left out.

    pieces: the stream, cut anywhere. Raises CommandError.
    """
    id_, event, data = "", "message", ""
    for raw in _lines(pieces):
        line = raw.decode("utf-8", "replace").rstrip("\r\n")
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            if data or event != "message":
                try:
                    content = json.loads(data) if data else None
                except (ValueError, RecursionError):
                    text = "the stream of events is not one of svcd: its data is not JSON"
                    raise CommandError(text, UNREACHABLE) from None
                yield id_, event, content
            event, data = "message", ""
        elif name == "id":
            id_ = value
        elif name == "event":
            event = value
        elif name == "data":
            data = f"{data}\n{value}" if data else value


def _lines(pieces: Iterator[bytes]) -> Iterator[bytes]:
    """The lines of `pieces`; the last one only when it is complete. Raises CommandError."""
    parts: list[bytes] = []
    size = 0
    for part in (part for piece in pieces for part in io.BytesIO(piece)):
        parts.append(part)
        size += len(part)
        if size > _MOST_EVENT_BYTES:
            text = f"an event of the stream is larger than {_MOST_EVENT_BYTES >> 20} MiB"
            raise CommandError(f"{text}: no svcd sends so much", UNREACHABLE)
        if part.endswith(b"\n"):
            line, parts = b"".join(parts), []
            size = size if line.strip() else 0  # an empty line ends the event
            yield line
