"""The embedded cloud answers the calls of the recordings as the real one did: status and fields."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.cloud.core import PLAIN_IMAGE_ID, PRIVATE_NETWORK_ID, PUBLIC_NETWORK_ID
from svcd.model.cloud import NewServer
from svcd.model.ids import TenantId
from svcd.ports.cloud import Access
from svcd.settings import Embedded
from tests.fixtures.openstack.scenario import Exchange, Scenario, Who
from tests.unit.clients.recorded import answer, names
from tests.unit.embedded.cloud.rig import ORIGIN, Rig

FOREIGN_IMAGE_ID = "00000000-0000-4000-8000-00000000000f"
REAL_ONLY = (
    "servers-deleted",
    "volume-delete-creating",
    "volume-delete-error_deleting",
    "volume-state-attaching",
    "volume-state-creating",
    "volume-state-detaching",
    "volume-state-error",
    "volume-state-error_deleting",
    "volume-state-maintenance",
)
"""An administrator made or saw it."""

UNREAD = re.compile(r"standard_attr_id$|options\.immutable$|_loopback$|___DEFAULT__$")
"""Fields that no client reads, and quotas of single volume types."""

HEADERS = (
    "accept-patch",
    "etag",
    "location",
    "openstack-api-version",
    "www-authenticate",
    "x-container-object-count",
    "x-openstack-nova-api-version",
    "x-subject-token",
)
PATHS = {
    "identity": "/identity/v3",
    "compute": "/compute/v2.1",
    "image": "/image/v2",
    "network": "/network/v2.0",
    "volume": "/volume/v3/{project}",
    "object-store": "/object-store/v1/AUTH_{project}",
}


class EmbeddedWorld:
    """A World that is the embedded cloud, on a virtual clock."""

    def __init__(self) -> None:
        slow = Embedded(boot_s=2.0, delete_s=1.0, volume_s=0.5)
        self.rig = Rig(slow, hosts=1)
        self.member = Who(name="alice", password="alice", project="alpha")
        self.reader = Who(name="carol", password="carol", project="alpha")
        self.stranger = Who(name="bob", password="bob", project="beta")
        self.limited = Who(name="demo", password="demo", project="demo")
        self.service = Who(name="svcd", password="svcd", project="service")
        self.admin: Who | None = None
        self.flavor = "1"
        self.own_image = PLAIN_IMAGE_ID
        self.foreign_image = FOREIGN_IMAGE_ID
        self.network = PRIVATE_NETWORK_ID
        self.pool = PUBLIC_NETWORK_ID
        images = self.rig.cloud.core
        theirs = evolve(
            images.images()[-1], id=FOREIGN_IMAGE_ID, owner="service", properties={}, builtin=False
        )
        images.state.images.put(theirs)
        quotas = {"instances": 2, "floating_ips": 1, "volumes": 2, "volume_gib": 10}
        self.rig.raw("PUT", "/admin/quotas/demo", quotas)

    def send(
        self,
        service: str,
        project: str,
        method: str,
        path: str,
        data: bytes | None,
        headers: Mapping[str, str],
    ) -> tuple[int, Mapping[str, str], bytes]:
        url = ORIGIN + PATHS[service].replace("{project}", project) + path
        done = self.rig.run(self.rig.http.request(method, url, headers=headers, body=data))
        return done.status, done.headers, done.body

    @property
    def no_host(self) -> Mapping[str, Any]:
        """The only host has a member of an anti-affinity group."""
        alice = self.rig.client("alice", "alice", "alpha")
        session = alice.session(Access(tenant_id=TenantId("alpha")))
        group = self.rig.run(session.create_server_group("full"))
        new = NewServer(name="first", image_id=PLAIN_IMAGE_ID, flavor_id="1", server_group_id=group)
        self.rig.run(session.create_server(new))
        return {"os:scheduler_hints": {"group": group}}

    def pause(self) -> None:
        self.rig.clock.advance(0.2)


def differences(real: Any, ours: Any, where: str) -> Iterator[str]:
    """What ours lacks of the real one's fields, and where a value has another type."""
    if isinstance(real, dict) and isinstance(ours, dict):
        if where.endswith(("addresses", "metadata")):  # names of networks, and what callers chose
            real, ours = ({"*": next(iter(each.values()), None)} for each in (real, ours))
        for key, value in real.items():
            if key in ours:
                yield from differences(value, ours[key], f"{where}.{key}")
            elif not UNREAD.search(f"{where}.{key}"):
                yield f"{where}.{key} is missing"
    elif isinstance(real, list) and isinstance(ours, list):
        if real and not ours:
            yield f"{where} is empty"
        elif real:
            yield from differences(real[0], ours[0], f"{where}[]")
    elif real is not None and ours is not None and type(real) is not type(ours):
        yield f"{where} is {type(ours).__name__}, really {type(real).__name__}"


@cache
def ours() -> Mapping[str, Exchange]:
    """What the embedded cloud answers."""
    scenario = Scenario(EmbeddedWorld())
    scenario.run()
    return scenario.exchanges


class ShapeTests(SynchronousTestCase):
    def both(self) -> Iterator[tuple[str, Mapping[str, Any], Exchange]]:
        for name in names():
            if name not in REAL_ONLY:
                yield name, answer(name), ours()[name]

    def test_every_recorded_call_is_made(self) -> None:
        """But for those that need an administrator of the cloud."""
        self.assertEqual(sorted(set(names()) - set(ours())), sorted(REAL_ONLY))
        self.assertEqual(sorted(set(ours()) - set(names())), [])

    def test_the_same_status(self) -> None:
        """Of each call, refusals above all."""
        found = [
            f"{name}: {mine.status}, really {real['status']}"
            for name, real, mine in self.both()
            if mine.status != real["status"]
        ]
        self.assertEqual(found, [])

    def test_no_field_is_missing(self) -> None:
        """Nor of another type."""
        found = [
            text
            for name, real, mine in self.both()
            for text in differences(real.get("json"), mine.json, name)
        ]
        self.assertEqual(found, [])

    def test_no_header_is_missing(self) -> None:
        """Of those that clients read."""
        found = [
            f"{name}: {header}"
            for name, real, mine in self.both()
            for header in HEADERS
            if header in real["headers"] and header not in mine.headers
        ]
        self.assertEqual(found, [])
