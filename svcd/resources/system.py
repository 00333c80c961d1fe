"""What belongs to the daemon and to no tenant: versions, health, metrics. No token needed."""

from __future__ import annotations

from collections.abc import Sequence

from klein import Klein

from svcd.errors import ServiceUnavailable
from svcd.model import wire
from svcd.resources._answers import Answer
from svcd.resources._route import Call, route
from svcd.resources.dependencies import ApiServices
from svcd.runtime import metrics


class System:
    """`/`, `/healthz`, `/readyz`, `/metrics`."""

    app = Klein()

    def __init__(self, services: ApiServices) -> None:
        self._metrics = services.metrics
        self._readiness = services.readiness

    @route(app, "GET", "/", returns="versions", open=True)
    async def versions(self, call: Call) -> Sequence[wire.Version]:
        """The versions of the interface."""
        return [
            wire.Version(id="v1.0", status="SUPPORTED"),
            wire.Version(id="v1.1", status="CURRENT"),
        ]

    @route(app, "GET", "/healthz", open=True)
    async def health(self, call: Call) -> wire.Health:
        """The process answers."""
        return wire.Health(status="ok")

    @route(app, "GET", "/readyz", open=True)
    async def ready(self, call: Call) -> wire.Readiness:
        """Everything that requests need is there. 503 names what is not."""
        parts = await self._readiness()
        wrong = [f"{part}: {problem}" for part, problem in parts.items() if problem]
        if wrong:
            raise ServiceUnavailable("not ready: " + "; ".join(wrong))
        return wire.Readiness(status="ready", parts=dict.fromkeys(parts, "ready"))

    @route(app, "GET", "/metrics", open=True, plain=True)
    async def expose(self, call: Call) -> Answer:
        """Prometheus text format."""
        return Answer(200, self._metrics.exposition(), metrics.CONTENT_TYPE.encode())
