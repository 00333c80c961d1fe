"""The resource `watch`: the changes of a tenant's records as a stream of events (additive).

Source: the Server-Sent Events of the HTML standard.
"""

from __future__ import annotations

from collections.abc import Sequence

from klein import Klein

from svcd.errors import ValidationError
from svcd.model.changes import CLUSTER_EVENTS, KINDS
from svcd.resources._answers import shown
from svcd.resources._call import Call
from svcd.resources._feeds import View, Watcher, bye
from svcd.resources._query import Query
from svcd.resources._route import route
from svcd.resources._streams import Outlet, Stream
from svcd.resources.dependencies import ApiServices

_SINCE = Query(
    "since",
    "id of the last event that the caller has read; left out: from now on",
    header="Last-Event-ID",
)
_KINDS = Query("kinds", "names of lists, separated by commas; left out: all", many=True)


class Watch:
    """Changes of the tenant's records as a stream of events."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._feeds = services.feeds
        self._clock = services.clock

    @route(
        app,
        "GET",
        "/watch",
        plain=True,
        since="1.1",
        query=(_SINCE, _KINDS),
        operation="watch",
        media="text/event-stream",
    )
    async def watch(self, call: Call) -> Stream:
        """Stream the changes of the tenant's records as server-sent events (additive).

        An event has the newest
        version of its record. `hello` begins a stream without `since`; after `reset` the caller
        lists anew; `bye` ends the stream.
        """
        view = View(call.hides_credentials, kinds_of(call.query["kinds"]))
        since = call.query["since"]
        tenant_id, feeds = call.tenant_id, self._feeds
        feeds.refuse_if_full(tenant_id)
        cursor = None if since is None else feeds.cursor_of(since)
        watchers: list[Watcher] = []

        async def access() -> bool:
            await call.renew()
            return call.hides_credentials

        def begin(outlet: Outlet) -> None:
            watchers.append(Watcher(outlet, view, access, cursor, self._clock.seconds()))
            feeds.begin(tenant_id, watchers[0])

        def end() -> None:
            watchers[0].outlet.end(bye("the daemon stops: continue at another one, or soon here"))

        return Stream(begin=begin, end=end, gone=lambda: feeds.left(tenant_id, watchers[0]))


def kinds_of(given: Sequence[str]) -> frozenset[str]:
    """The kinds that `kinds` parameters name, else all kinds. Raises ValidationError."""
    names = [name.strip() for text in given for name in text.split(",") if name.strip()]
    unknown = [name for name in names if name not in KINDS]
    if unknown:
        raise ValidationError(
            f"?kinds: {shown(unknown[0])} is not a kind; the kinds are {', '.join(KINDS)}"
        )
    kinds = frozenset(names or KINDS)
    return kinds | {CLUSTER_EVENTS} if "clusters" in kinds else kinds
