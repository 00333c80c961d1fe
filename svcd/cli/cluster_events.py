"""Follows the events of a cluster: only what is new, in order, until the cluster is gone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from svcd.cli.client import Api
from svcd.cli.exits import UNREACHABLE, CommandError

_LOOK_S: Final = 1.0
_WAIT_S: Final = 20
"""How long one request waits at a daemon that numbers its events."""


def new_events(api: Api, path: str, pause: Callable[[float], None] = time.sleep) -> Iterator[Any]:
    """All events, then each new one. path: of the list of events. Ends when the cluster is gone.

    A daemon that numbers its events waits for new ones itself; others are asked every second.
    """
    last: Any = None
    while True:
        began = time.monotonic()
        fresh = newer(api, path, last, _WAIT_S)
        if fresh is None:
            return
        yield from fresh
        sys.stdout.flush()
        last = fresh[-1] if fresh else last
        if not fresh and time.monotonic() - began < _LOOK_S:  # the daemon did not wait
            pause(_LOOK_S)


def newer(api: Api, path: str, last: Any, wait_s: int = 0) -> list[Any] | None:
    """The events after `last`, all for None; None when the cluster is gone.

    A daemon that numbers events sends only these, and waits up to `wait_s` for one.
    """
    number = None if last is None else last.get("number")
    query = ""
    if isinstance(number, int):
        query = f"?since={number}" + (f"&wait={wait_s}" if wait_s else "")
    body = api.get(path + query)
    if body is None:
        return None
    if not isinstance(body, dict) or not isinstance(body.get("events"), list):
        text = "the list of events is not one of svcd: does --api name svcd's daemon?"
        raise CommandError(text, UNREACHABLE)
    events = [each for each in body["events"] if isinstance(each, dict)]
    if query or last not in events:
        return events
    return events[len(events) - events[::-1].index(last) :]
