"""The cloud of a test of provisioning: svcd's clients, and the embedded cloud behind the wire.

The cloud counts and disturbs calls by the names in `CALLS`.
"""

from __future__ import annotations

import random
import re
from collections import Counter
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime

from svcd.clients.cloud import OpenStack, cloud_error
from svcd.clients.http import HttpClient
from svcd.clients.identity import Keystone
from svcd.embedded.cloud.cloud import EmbeddedCloud
from svcd.embedded.cloud.core import PLAIN_IMAGE_ID, PUBLIC_NETWORK_ID
from svcd.embedded.cloud.guests import GuestError, Guests, GuestSpec
from svcd.embedded.cloud.records import Rule, SecurityGroup, Server, Volume
from svcd.embedded.faults import Effect, Faults, Handle
from svcd.embedded.memory_agent import MemoryAgent
from svcd.model import ownership_tags
from svcd.model.cloud import Caller, NewServer
from svcd.model.wire import IMAGE_USERNAME
from svcd.ports.cloud import Access, CloudSession
from svcd.ports.faults import Fault
from svcd.runtime.clock import VirtualClock
from svcd.settings import CloudSettings, Embedded
from tests.support.api import now
from tests.unit.provisioning.stored import TENANT

T = TypeVar("T")

IMAGE: Final = "image"
URL: Final = "http://cloud.memory"
POOL: Final = PUBLIC_NETWORK_ID
TIMEOUT_S: Final = 1.0
"""Longest time of one call."""
CALLS: Final = {
    "images": ("image", "GET", r"/images(\?|$)"),
    "flavors": ("compute", "GET", r"/flavors/detail"),
    "keypairs": ("compute", "GET", r"/os-keypairs$"),
    "networks": ("network", "GET", r"/networks(\?|$)"),
    "servers": ("compute", "GET", r"/servers/detail"),
    "server": ("compute", "GET", r"/servers/(?!detail)[^/?]+$"),
    "create_server": ("compute", "POST", r"/servers$"),
    "delete_server": ("compute", "DELETE", r"/servers/[^/]+$"),
    "delete_server_group": ("compute", "DELETE", r"/os-server-groups/"),
    "find_security_groups": ("network", "GET", r"/security-groups\?"),
    "delete_security_group": ("network", "DELETE", r"/security-groups/"),
    "delete_floating_ip": ("network", "DELETE", r"/floatingips/"),
    "delete_volume": ("volume", "DELETE", r"/volumes/"),
    "create_trust": ("identity", "POST", r"/OS-TRUST/trusts$"),
    "given_trusts": ("identity", "GET", r"/OS-TRUST/trusts\?"),
    "delete_trust": ("identity", "DELETE", r"/OS-TRUST/trusts/"),
}
_STATUS: Final = {
    Fault.BUSY: 409,
    Fault.FORBIDDEN: 403,
    Fault.QUOTA: 403,
    Fault.REFUSED: 400,
    Fault.SERVER_ERROR: 500,
}


class _Guests(Guests):
    """Machines of which some can never boot. broken: server name -> how many more of it cannot."""

    def __init__(self) -> None:
        self.broken: dict[str, int] = {}
        self._never: set[str] = set()

    async def boot(self, spec: GuestSpec) -> None:
        """See Guests."""
        if self.broken.get(spec.name, 0) > 0 and spec.server_id not in self._never:
            self.broken[spec.name] -= 1
            self._never.add(spec.server_id)
        if spec.server_id in self._never:
            raise GuestError("No valid host was found.")


class SiteCloud:
    """One cloud whose tenant is TENANT. svcd's own user is its user `demo`.

    client: implements ports.Cloud. calls: how often each call of CALLS reached the cloud.
    broken: server name -> how many servers of this name go to ERROR. image: the registered one.
    """

    def __init__(self, clock: VirtualClock, own: IReactorTime) -> None:
        """own: the clock of svcd's clients."""
        self.faults = Faults()
        self.faults.listen(self._count)
        self.calls: Counter[str] = Counter()
        self._patterns = {n: (w, m, re.compile(p)) for n, (w, m, p) in CALLS.items()}
        self._slow: list[Handle] = []
        guests = _Guests()
        self.broken = guests.broken
        self._numbers = iter(range(1, 1_000_000))
        self.embedded = EmbeddedCloud(
            clock,
            Embedded(tenant=TENANT),
            guests,
            self.faults,
            None,
            URL,
            lambda: f"id-{next(self._numbers)}",
            random.Random(1),
            lambda: "",
        )
        self.state = self.embedded.core.state
        agent = MemoryAgent(clock)
        agent.serve(URL, self.embedded.resource)
        settings = CloudSettings(
            auth_url=f"{URL}/identity/v3",
            username="demo",
            password="demo",
            project=TENANT,
            timeout_s=TIMEOUT_S,
        )
        self.client = OpenStack(agent, own, settings)
        self._keystone = Keystone(HttpClient(agent, own, cloud_error), settings, own)
        plain = self.embedded.core.image(PLAIN_IMAGE_ID)
        assert plain is not None
        self.state.images.put(
            evolve(plain, id=IMAGE, name="i", builtin=False, properties={IMAGE_USERNAME: "debian"})
        )
        self.embedded.start()
        self.image = _run(self.session.image(IMAGE))

    # ---- use ----

    @property
    def session(self) -> CloudSession:
        return self.client.session(Access(tenant_id=TENANT))

    def caller(self, user: str = "alice") -> Caller:
        """A member of the tenant with a token."""
        self.embedded.core.users_by_name[user].roles[TENANT] = ("member", "reader")
        token = _run(self._keystone.of_user(user, user, TENANT))
        return Caller(tenant_id=TENANT, user_id=token.user_id, roles=token.roles, token=token.text)

    # ---- what is there ----

    @property
    def made(self) -> Mapping[str, Server]:
        return {each.id: each for each in self.state.servers.values()}

    @property
    def disks(self) -> Mapping[str, Volume]:
        return {each.id: each for each in self.state.volumes.values()}

    @property
    def addresses(self) -> list[str]:
        return [each.id for each in self.state.floating_ips.values()]

    @property
    def security(self) -> Mapping[str, str]:
        """Ids of the security groups by name, without the project's own."""
        found = self.state.security_groups.values()
        return {each.name: each.id for each in found if each.name != "default"}

    @property
    def openings(self) -> Mapping[str, list[str]]:
        """Port and network of each rule that lets others in, by the name of the group."""
        return {
            name: sorted(
                f"{each.port_min} {each.remote_prefix or '0.0.0.0/0'}"
                for each in self.state.rules.having("group", self._group(name).id)
                if each.direction == "ingress" and each.remote_group_id is None
            )
            for name in self.security
        }

    def _group(self, name: str) -> SecurityGroup:
        group = self.state.security_groups.get(self.security[name])
        assert group is not None
        return group

    @property
    def server_groups(self) -> list[str]:
        return [each.id for each in self.state.server_groups.values()]

    @property
    def trusts(self) -> set[str]:
        return {each.id for each in self.state.trusts.values()}

    # ---- what a test does to it ----

    def set(self, **fields: Any) -> None:
        """Change settings of the cloud, for example boot_s."""
        core = self.embedded.core
        core.config = evolve(core.config, **fields)

    def slow(self, seconds: float) -> None:
        """Each call reaches the cloud after `seconds`, also when svcd has given it up."""
        for each in self._slow:
            each.remove()
        places = sorted({where for where, _, _ in CALLS.values()}) if seconds else []
        self._slow = [
            self.faults.add(where=where, effect=Effect.LATE, delay_s=seconds) for where in places
        ]

    def fail(
        self,
        name: str,
        kind: Fault = Fault.SERVER_ERROR,
        times: int = 1,
        after: bool = False,
        text: str = "out of order",
    ) -> Handle:
        """The next `times` calls of this name fail. after: a time-out that comes after the act."""
        where, method, path = CALLS[name]
        at: dict[str, Any] = {"where": where, "method": method, "path": path, "times": times}
        if kind is Fault.TIMEOUT:
            at["effect"] = Effect.TIMEOUT_AFTER if after else Effect.TIMEOUT_BEFORE
        elif kind is Fault.UNREACHABLE:
            at["effect"] = Effect.REFUSED
        else:
            said = f"Quota exceeded: {text}" if kind is Fault.QUOTA else text
            at |= {"status": _STATUS[kind], "body": said}
        slow = self._slow[0].rule.delay_s if self._slow else 0.0
        added = self.faults.add(**at, delay_s=slow)
        self.slow(slow)  # the first rule of a call decides
        return added

    def open_port(self, name: str, port: int) -> None:
        """A rule that opens the port to all networks."""
        group = self._group(name)
        rule = Rule(
            id=f"rule-{port}",
            group_id=group.id,
            project_id=group.project_id,
            direction="ingress",
            ethertype="IPv4",
            protocol="tcp",
            port_min=port,
            port_max=port,
        )
        self.state.rules.put(rule)

    def lose(self, server_id: str) -> None:
        """Somebody else deletes the server."""
        _run(self.session.delete_server(server_id))

    def make_again(self, server: Server) -> None:
        """Another server with the name and the metadata of this one."""
        new = NewServer(
            name=server.name,
            image_id=server.image_id,
            flavor_id=server.flavor_id,
            metadata=server.metadata,
        )
        _run(self.session.create_server(new))

    def give(self, user: str = "alice", **fields: Any) -> str:
        """The id of a new trust of the user to svcd. fields: of the cloud's record."""
        caller = self.caller(user)
        end = ownership_tags.trust_end(f"given {next(self._numbers)}")
        trust_id = _run(self.client.create_trust(caller, end))
        assert trust_id is not None
        trust = self.state.trusts.get(trust_id)
        assert trust is not None
        self.state.trusts.put(evolve(trust, **fields))
        return trust_id

    # ---- inside ----

    def _count(self, where: str, method: str, path: str) -> None:
        for name, (at, by, pattern) in self._patterns.items():
            if at == where and by == method and pattern.search(path):
                self.calls[name] += 1


def _run(work: Coroutine[Any, Any, T]) -> T:
    """The result of work that needs no time."""
    return now(Deferred.fromCoroutine(work))  # type: ignore[no-any-return]
