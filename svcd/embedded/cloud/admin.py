"""Hooks for tests of a cloud in another process: counters of calls, quotas.

The cloud serves them only with `admin=True`, and without authentication.
"""

from __future__ import annotations

from collections import Counter

from klein import Klein

from svcd.embedded.cloud.core import Core
from svcd.embedded.cloud.openstack import OpenStackService
from svcd.embedded.cloud.records import Quotas
from svcd.embedded.services import Call, Refusal, Reply
from svcd.web.routing import route


class Admin(OpenStackService):
    """Mounted at /admin."""

    app = Klein()
    where = "admin"

    def __init__(self, core: Core, calls: Counter[str]) -> None:
        super().__init__(core)
        self._calls = calls

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Accept every caller."""

    def envelope(self, refusal: Refusal) -> Reply:
        """{"error": message}."""
        return Reply(status=refusal.status, body={"error": refusal.message})

    @route(app, ["GET"], "/calls")
    def calls(self, call: Call) -> Reply:
        """The number of calls by `service METHOD route` since the start."""
        return Reply(body={"calls": dict(sorted(self._calls.items()))})

    @route(app, ["PUT"], "/quotas/<project_id>")
    def set_quotas(self, call: Call, project_id: str) -> Reply:
        """Set the quotas of a project by a body such as `{"instances": 2}`.

        The names are those of the settings `quota_…`; {} restores the values of the settings.
        """
        limits = call.read(dict[str, int], "Invalid quotas")
        unknown = [name for name in limits if not hasattr(self._core.config, f"quota_{name}")]
        if unknown:
            raise Refusal(400, f"Invalid quotas: there is no {', '.join(unknown)}")
        self._core.state.quotas.put(Quotas(id=project_id, limits=limits))
        return Reply(status=204)
