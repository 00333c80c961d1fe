"""A token and a catalog as Keystone describes them. Pure."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any, Final

from attrs import field, frozen

from svcd.clients.http import Answer
from svcd.clients.rest import shaped
from svcd.model import ownership_tags
from svcd.model.redaction import url_repr
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault

SERVICE: Final = "identity"
_AGREE_S: Final = 30.0
"""A smaller difference between Keystone's clock and ours counts as none."""


@frozen(kw_only=True)
class Endpoint:
    """One URL of the catalog."""

    type: str
    interface: str
    region: str
    url: str = field(repr=url_repr)


@frozen(kw_only=True)
class Token:
    """A token as Keystone describes it.

    issued_at, expires_at: epoch seconds. is_job: see Caller.
    """

    text: Secret
    user_id: str
    user_name: str
    project_id: str
    roles: tuple[str, ...]
    issued_at: float
    expires_at: float
    is_trust: bool
    is_job: bool
    catalog: tuple[Endpoint, ...] = field(repr=False)


def object_of(answer: Answer) -> dict[str, Any]:
    """The JSON object of an answer of the identity service. Raises CloudError."""
    try:
        parsed = answer.json()
    except ValueError:
        parsed = None
    if not isinstance(parsed, dict):
        raise CloudError(SERVICE, Fault.SERVER_ERROR, "the answer is not a JSON object")
    return parsed


def token_of(text: Secret, answer: Answer, now: float) -> Token:
    """The token of an answer that arrived `now`, its times by our clock. Raises CloudError."""
    ahead_s = _ahead_s(answer, now)

    def convert(answer: Mapping[str, Any]) -> Token:
        body = answer["token"]
        made_by = str((body.get("application_credential") or {}).get("name", ""))
        return Token(
            text=text,
            user_id=str(body["user"]["id"]),
            user_name=str(body["user"].get("name", "")),
            project_id=str((body.get("project") or {}).get("id", "")),
            roles=tuple(str(role["name"]) for role in body.get("roles") or ()),
            issued_at=seconds_of(body["issued_at"]) - ahead_s,
            expires_at=seconds_of(body["expires_at"]) - ahead_s,
            is_trust="OS-TRUST:trust" in body,
            is_job=ownership_tags.of_credential(made_by) is not None,
            catalog=endpoints_of(body.get("catalog")),
        )

    return shaped(SERVICE, "a token", convert, object_of(answer))


def _ahead_s(answer: Answer, now: float) -> float:
    """The seconds that Keystone's clock is ahead of ours, by the `Date` of its answer.

    A small difference comes from the network or from rounding and counts as 0.0. So does a missing
    date.
    """
    try:
        ahead = parsedate_to_datetime(answer.header("date")).timestamp() - now
    except (ValueError, TypeError):
        return 0.0
    return 0.0 if abs(ahead) < _AGREE_S else ahead


def seconds_of(text: str) -> float:
    """Epoch seconds of `2026-11-21T12:07:31.000000Z`.

    Keystone leaves the zone out when the end of an application credential ends the token.
    """
    moment = datetime.datetime.fromisoformat(text.replace("Z", "+00:00"))
    return moment.replace(tzinfo=moment.tzinfo or datetime.UTC).timestamp()


def endpoints_of(catalog: Any) -> tuple[Endpoint, ...]:
    """The endpoints of a catalog; () for None. Raises the errors that `shaped` expects."""
    return tuple(
        Endpoint(
            type=str(service.get("type", "")),
            interface=str(endpoint.get("interface", "")),
            region=str(endpoint.get("region_id") or endpoint.get("region") or ""),
            url=str(endpoint.get("url", "")),
        )
        for service in catalog or ()
        for endpoint in service.get("endpoints", ())
    )
