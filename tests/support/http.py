"""An `Http` of the commands whose answers a function gives, also those to logins."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any

import requests
import urllib3
from requests.adapters import BaseAdapter

from svcd.cli.http import Answer, Http

Answers = Callable[[str, str, bytes | None, Mapping[str, str]], Answer]
"""Takes method, URL, body and headers."""


class AnsweredBy(Http):
    """Asks `answers` in the place of the network."""

    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self._answers = answers

    @cached_property
    def session(self) -> requests.Session:
        """See Http."""
        session = requests.Session()
        session.trust_env = False
        session.mount("http://", _Adapter(self._answers))
        session.mount("https://", _Adapter(self._answers))
        return session


class _Adapter(BaseAdapter):
    def __init__(self, answers: Answers) -> None:
        super().__init__()
        self._answers = answers

    def send(self, request: requests.PreparedRequest, *_: Any, **__: Any) -> requests.Response:
        """See BaseAdapter."""
        body = request.body.encode() if isinstance(request.body, str) else request.body
        answer = self._answers(str(request.method), str(request.url), body, request.headers)
        response = requests.Response()
        response.status_code = answer.status
        response.headers.update({"X-Request-Id": "r-1", **answer.headers})
        response.raw = urllib3.HTTPResponse(
            io.BytesIO(answer.body), answer.headers, answer.status, preload_content=False
        )
        return response

    def close(self) -> None:
        """See BaseAdapter."""
