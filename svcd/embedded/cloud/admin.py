"""Hooks for tests of a cloud in another process: counters of calls, fault rules, quotas.

The cloud serves them only with `admin=True`, and without authentication.
"""

from __future__ import annotations

import re
from collections import Counter

import attrs
import msgspec
from klein import Klein

from svcd.embedded.cloud.core import Core
from svcd.embedded.cloud.openstack import OpenStackService
from svcd.embedded.cloud.records import Quotas
from svcd.embedded.faults import FaultRule, Faults
from svcd.embedded.services import Call, Refusal, Reply
from svcd.web.routing import route


class Admin(OpenStackService):
    """Mounted at /admin."""

    app = Klein()
    where = "admin"

    def __init__(self, core: Core, faults: Faults, calls: Counter[str]) -> None:
        super().__init__(core)
        self._faults = faults
        self._calls = calls

    def authorize(self, call: Call, segments: list[str]) -> None:
        """Accept every caller."""

    def envelope(self, refusal: Refusal) -> Reply:
        """{"error": message}."""
        return Reply(status=refusal.status, body={"error": refusal.message})

    @route(app, ["GET"], "/calls")
    def calls(self, call: Call) -> Reply:
        """The number of calls by `service METHOD route` since the start or the last DELETE."""
        return Reply(body={"calls": dict(sorted(self._calls.items()))})

    @route(app, ["DELETE"], "/calls")
    def forget_calls(self, call: Call) -> Reply:
        self._calls.clear()
        return Reply(status=204)

    @route(app, ["GET"], "/faults")
    def faults(self, call: Call) -> Reply:
        rows = [attrs.asdict(rule) | {"hits": hits} for rule, hits in self._faults.rules()]
        return Reply(body={"faults": rows})

    @route(app, ["POST"], "/faults")
    def add_fault(self, call: Call) -> Reply:
        """Add a rule; the fields of the body are those of FaultRule."""
        rule = call.read(FaultRule, "Invalid rule")
        try:
            self._faults.add(rule)
        except re.error as error:
            raise Refusal(400, f"Invalid rule: path is no regular expression: {error}") from None
        except ValueError as error:
            raise Refusal(400, f"Invalid rule: {error}") from None
        return Reply(status=201, body=msgspec.to_builtins(rule))

    @route(app, ["DELETE"], "/faults")
    def clear_faults(self, call: Call) -> Reply:
        self._faults.clear()
        return Reply(status=204)

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
