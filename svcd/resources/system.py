"""The resources of the daemon itself: versions, health, metrics. They need no token."""

from __future__ import annotations

from collections.abc import Sequence

from klein import Klein

from svcd.errors import ServiceUnavailable
from svcd.model import wire_service
from svcd.resources._answers import Answer
from svcd.resources._call import Call
from svcd.resources._policy import Needs
from svcd.resources._route import route
from svcd.resources.dependencies import ApiServices
from svcd.runtime import metrics

_RENDER_S = 1.0
"""Rendering the metrics takes some 20 ms, and needs no token: once in these seconds at most."""


class System:
    """The handlers of `/`, `/healthz` and `/readyz`."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._readiness = services.readiness

    @route(app, "GET", "/", returns="versions", needs=Needs.OPEN, operation="listVersions")
    async def versions(self, call: Call) -> Sequence[wire_service.Version]:
        """List the versions of the interface."""
        return [
            wire_service.Version(id="v1.0", status="SUPPORTED"),
            wire_service.Version(id="v1.1", status="CURRENT"),
        ]

    @route(app, "GET", "/healthz", needs=Needs.OPEN, operation="getHealth")
    async def health(self, call: Call) -> wire_service.Health:
        """Report that the process answers requests."""
        return wire_service.Health(status="ok")

    @route(app, "GET", "/readyz", needs=Needs.OPEN, operation="getReadiness")
    async def ready(self, call: Call) -> wire_service.Readiness:
        """Report whether all parts that requests need are ready. A 503 names the others."""
        parts = await self._readiness()
        wrong = [f"{part}: {problem}" for part, problem in parts.items() if problem]
        if wrong:
            raise ServiceUnavailable("not ready: " + "; ".join(wrong))
        return wire_service.Readiness(status="ready", parts=dict.fromkeys(parts, "ready"))


class Telemetry:
    """The handler of `/metrics`."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._metrics = services.metrics
        self._clock = services.clock
        self._rendered: tuple[float, bytes] = (float("-inf"), b"")

    @route(
        app,
        "GET",
        "/metrics",
        needs=Needs.OPEN,
        plain=True,
        operation="getMetrics",
        media="text/plain",
    )
    async def expose(self, call: Call) -> Answer:
        """Return the metrics in Prometheus text format, at most one second old."""
        if self._clock.seconds() - self._rendered[0] >= _RENDER_S:
            await self._metrics.refresh()
            now = self._clock.seconds()
            # unless another reader has rendered the metrics meanwhile
            if now - self._rendered[0] >= _RENDER_S:
                self._rendered = now, self._metrics.exposition()
        return Answer(200, self._rendered[1], metrics.CONTENT_TYPE.encode())
