"""Follows the events of a cluster: only what is new, in order, until the cluster is gone."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from svcd.cli.api import Api

_LOOK_S: Final = 1.0
_WAIT_S: Final = 20
"""How long one request waits at a daemon that numbers its events."""


def new_events(api: Api, path: str, pause: Callable[[float], None] = time.sleep) -> Iterator[Any]:
    """All events, then each new one. path: of the list of events. Ends when the cluster is gone.

    A daemon that numbers its events waits for new ones itself; others are asked every second.
    """
    last: int | None = None
    seen: list[Any] = []
    while True:
        query = "" if last is None else f"?since={last}&wait={_WAIT_S}"
        body = api.get(path + query)
        if body is None:
            return
        events = [each for each in body.get("events") or [] if isinstance(each, dict)]
        fresh = events if last is not None else _after(seen, events)
        yield from fresh
        sys.stdout.flush()
        numbers = [e["number"] for e in events if isinstance(e.get("number"), int)]
        if numbers:
            last = max([*numbers, last or 0])
        elif last is None:
            seen = events or seen
            pause(_LOOK_S)


def _after(seen: list[Any], events: list[Any]) -> list[Any]:
    """The events that come after the last of `seen`; all when it is no longer stored."""
    if seen and seen[-1] in events:
        at = len(events) - 1 - events[::-1].index(seen[-1])
        return events[at + 1 :]
    return events
