"""The shared part of the embedded services: time, ids, configuration, accounts, tables, late lists.

It answers no request and starts no task.
"""

from __future__ import annotations

import functools
import ipaddress
import json
import random
import secrets
import uuid
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Final, Protocol, TypeVar

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from svcd.embedded.cloud.records import Flavor, Image, KeyPair, Project, Server, Token, User, Volume
from svcd.embedded.cloud.state import State
from svcd.runtime.drafts import draft_of, publish
from svcd.runtime.keys import new_key_pair
from svcd.runtime.state_dir import StateFolderError
from svcd.settings import Embedded

log = Logger()

VANILLA_IMAGE_ID = "00000000-0000-4000-8000-000000000001"
PLAIN_IMAGE_ID = "00000000-0000-4000-8000-000000000002"
LOGIN = "svcd"
"""The login of the built-in images."""
PRIVATE_NETWORK_ID = "00000000-0000-4000-8000-000000000011"
PUBLIC_NETWORK_ID = "00000000-0000-4000-8000-000000000012"
PRIVATE_SUBNET_ID = "00000000-0000-4000-8000-000000000021"
PUBLIC_SUBNET_ID = "00000000-0000-4000-8000-000000000022"
REGION = "RegionOne"
_SCRIPTED_SERVERS = 200
"""Quota of a project when servers are no processes and the setting has none."""
_BEGIN: Final = 1_767_225_600.0
"""The time at which all built-in objects were created, in epoch seconds."""
_LOOPBACK = ipaddress.IPv4Network("127.0.0.0/8")
DEMO_KEYPAIR = "demo"
SERVICE_USER = "svcd"
"""The account of a daemon with `auth.mode=keystone`."""
SERVICE_PROJECT = "service"
_FIXED_IDS: Final = 256
"""Ids of built-in objects in memory: users, roles, services and endpoints are fewer."""

FLAVORS = {
    flavor.id: flavor
    for flavor in (
        Flavor(id="1", name="m1.tiny", ram_mib=512, vcpus=1, disk_gib=1),
        Flavor(id="2", name="m1.small", ram_mib=2048, vcpus=1, disk_gib=20),
        Flavor(id="3", name="m1.medium", ram_mib=4096, vcpus=2, disk_gib=40),
        Flavor(id="4", name="m1.large", ram_mib=8192, vcpus=4, disk_gib=80),
    )
}


@functools.lru_cache(_FIXED_IDS)
def fixed_id(kind: str, name: str) -> str:
    """The id of a built-in object, which is the same in every embedded cloud."""
    return uuid.uuid5(uuid.NAMESPACE_URL, f"svcd:{kind}:{name}").hex


class _Dated(Protocol):
    @property
    def id(self) -> str: ...
    @property
    def created_at(self) -> float: ...


D = TypeVar("D", bound=_Dated)


@frozen
class _Gone:
    """A deleted record that lists still show until `until`."""

    record: Server | Volume
    until: float


class Core:
    """The shared part of the services of one embedded cloud."""

    def __init__(
        self,
        clock: IReactorTime,
        config: Embedded,
        folder: Path | None,
        public_url: str,
        new_id: Callable[[], str],
        rng: random.Random,
        image_problem: Callable[[], str],
        hosts: int,
        most_servers: int | None,
    ) -> None:
        self.clock = clock
        self.config = config
        self.folder = folder
        self.public_url = public_url.rstrip("/")
        self.new_id = new_id
        self.rng = rng
        self.image_problem = image_problem
        self.hosts = hosts
        self.most_servers = most_servers
        self.newest_compute = (2, 79)  # the newest microversion of the compute service
        self.state = State(folder)
        self.users = _users(config, folder)
        self.users_by_name = {user.name: user for user in self.users.values()}
        self.projects = _projects(config, self.state)
        self._store_built_in_images()
        self._gone: list[_Gone] = []
        self._demo_key: str | None = None
        self._cursors: dict[str, int] = {}

    def now(self) -> float:
        """Epoch seconds."""
        return self.clock.seconds()

    # ---- accounts ----

    def open_project(self, name: str) -> Project:
        """Create a project at its first use; its id is its name."""
        project = Project(id=name, name=name)
        self.projects[name] = project
        self.state.projects.put(project)
        return project

    def roles(self, user: User, project_id: str) -> tuple[str, ...]:
        """The names of the user's roles in the project; () for none."""
        own = user.roles.get(project_id, ())
        return own or (("member", "reader") if user.open and project_id in self.projects else ())

    def living_token(self, text: str) -> Token | None:
        """The token, if it is known and valid and its trust or credential still exists."""
        token = self.state.tokens.get(text)
        if token is None or token.expires_at <= self.now():
            return None
        if token.trust_id is not None and self.state.trusts.get(token.trust_id) is None:
            return None
        made_by = token.credential_id
        if made_by is not None and self.state.credentials.get(made_by) is None:
            return None
        return token

    # ---- key pairs ----

    def keypair(self, user_id: str, name: str) -> KeyPair | None:
        """The user's key pair; every user has `demo`."""
        pair = self.state.keypairs.get(f"{user_id}/{name}")
        if pair is None and name == DEMO_KEYPAIR:
            return KeyPair(
                id=f"{user_id}/{name}",
                user_id=user_id,
                name=name,
                public_key=self.demo_public_key(),
                created_at=0.0,
            )
        return pair

    def demo_public_key(self) -> str:
        """The OpenSSH line of the `demo` key pair; `keys/demo` holds the private half."""
        if self._demo_key is None:
            self._demo_key = _demo_key(self.folder)
        return self._demo_key

    # ---- images ----

    def images(self) -> list[Image]:
        """All images, the built-in ones first."""
        return list(self.state.images.values())

    def image(self, id_: str) -> Image | None:
        """One image."""
        return self.state.images.get(id_)

    def _store_built_in_images(self) -> None:
        """Store the images that are missing. All get the SSH port of this process."""
        known = {"_svc_ssh_port": str(self.config.ssh_port), "os_admin_user": LOGIN}
        for id_, name in ((VANILLA_IMAGE_ID, "vanilla-3.5.0"), (PLAIN_IMAGE_ID, "plain")):
            image = self.state.images.get(id_) or Image(
                id=id_,
                name=name,
                owner="service",
                visibility="public",
                status="active",
                properties={},
                created_at=_BEGIN,
                updated_at=_BEGIN,
                builtin=True,
            )
            self.state.images.put(evolve(image, properties={**image.properties, **known}))

    def as_now(self, image: Image) -> Image:
        """The image in its present state: it is queued while its software is not usable.

        A snapshot is saved for a while.
        """
        if self.now() < image.saved_at:
            return evolve(image, status="saving")
        problem = self.image_problem() if image.id == VANILLA_IMAGE_ID else ""
        if not problem:
            return image
        properties = {**image.properties, "_svc_problem": problem}
        return evolve(image, status="queued", properties=properties)

    # ---- addresses ----

    @property
    def floating_network(self) -> str:
        """A network of the same size beside `embedded.network`; without room its upper half."""
        network = ipaddress.IPv4Network(self.config.network)
        size = network.num_addresses
        for first in (network.network_address + size, network.network_address - size):
            if first in _LOOPBACK and network.subnet_of(_LOOPBACK):
                return str(ipaddress.IPv4Network((first, network.prefixlen)))
        return str(list(network.subnets())[1])

    def _taken(self, address: str) -> bool:
        """Whether a port or a floating IP has the address: the two networks may overlap."""
        state = self.state
        return bool(
            state.ports.count("address", address) + state.floating_ips.count("address", address)
        )

    def free_address(self, network: str, occupied: Callable[[str], bool]) -> str | None:
        """The address of `network` that has been free for the longest time; None: all are taken.

        The first ten addresses are never used. occupied: whether another program uses an address.
        """
        net = ipaddress.ip_network(network)
        size = net.num_addresses
        start = self._cursors.get(network)
        if start is None:  # first use in this process: begin after the highest address in use
            base = int(net.network_address)
            used = [port.address for port in self.state.ports.values()]
            used += [ip.address for ip in self.state.floating_ips.values()]
            offsets = (int(ipaddress.ip_address(known)) - base for known in used)
            start = max((offset for offset in offsets if 0 <= offset < size), default=9)
        skipped = 0
        for step in range(1, size):
            offset = (start + step) % size
            if not 10 <= offset < size - 1 or self._taken(address := str(net[offset])):
                continue
            if not occupied(address):
                self._cursors[network] = offset
                if skipped:
                    log.info("Passed over {n} addresses that other programs use", n=skipped)
                return address
            skipped += 1
        return None

    # ---- lists that lag ----

    def gone(self, record: Server | Volume) -> None:
        """Let lists show the deleted `record` for `list_lag_s`."""
        if self.config.list_lag_s > 0:
            self._gone.append(_Gone(record, self.now() + self.config.list_lag_s))

    def listed(self, records: Iterable[D], kind: type[D]) -> list[D]:
        """`records` as a list shows them: new records late, deleted ones `list_lag_s` longer."""
        lag = self.config.list_lag_s
        if lag <= 0:
            return list(records)
        now = self.now()
        self._gone = [gone for gone in self._gone if gone.until > now]
        ghosts = [gone.record for gone in self._gone if isinstance(gone.record, kind)]
        return [record for record in records if record.created_at + lag <= now] + ghosts

    def limit(self, project_id: str, name: str) -> int:
        """A quota of the project (`instances`, `cores`, `ram_mib`, `volumes`, …); -1: unlimited."""
        override = self.state.quotas.get(project_id)
        if override is not None and name in override.limits:
            return override.limits[name]
        if name == "instances" and self.config.quota_instances == 0:
            return self._servers_left_for(project_id)
        return int(getattr(self.config, f"quota_{name}"))

    def used(self, project_id: str) -> Mapping[str, int]:
        """The servers of the project by the names of their quotas."""
        servers = {id_: self.state.servers.count("flavor", (project_id, id_)) for id_ in FLAVORS}
        return {
            "instances": self.state.servers.count("project", project_id),
            "cores": sum(FLAVORS[id_].vcpus * n for id_, n in servers.items()),
            "ram_mib": sum(FLAVORS[id_].ram_mib * n for id_, n in servers.items()),
        }

    def _servers_left_for(self, project_id: str) -> int:
        """The quota of servers without a setting: what the servers of other projects leave."""
        if self.most_servers is None:
            return _SCRIPTED_SERVERS
        servers = self.state.servers
        others = len(servers) - servers.count("project", project_id)
        return max(0, self.most_servers - others)


def _demo_key(folder: Path | None) -> str:
    """The public line of the key pair in `folder`, which is made at its first use."""
    if folder is None:
        return new_key_pair(DEMO_KEYPAIR)[0]
    private = folder / "keys" / DEMO_KEYPAIR
    public = private.with_suffix(".pub")
    if not (private.exists() and public.exists()):
        line, secret = new_key_pair(DEMO_KEYPAIR)
        private.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        for target, text in ((private, secret.reveal()), (public, line + "\n")):
            with draft_of(target) as draft:
                draft.write_text(text, encoding="ascii")
                publish(draft, target)
    return public.read_text(encoding="ascii").strip()


def _passwords(folder: Path | None, names: Iterable[str]) -> Mapping[str, str]:
    """User name -> password: random for each folder, and the same after a restart.

    Without a folder only the own process reaches the cloud, and the password is the name.
    """
    if folder is None:
        return {name: name for name in names}
    path = folder / "passwords.json"
    try:
        known = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        known = {}
    except ValueError as error:
        raise StateFolderError(
            f"{path} is damaged ({error}): remove it, and svcd makes new passwords for the users"
            " of the embedded cloud"
        ) from None
    fresh = {name: secrets.token_hex(16) for name in names if name not in known}
    if fresh:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        with draft_of(path) as draft:
            draft.write_text(json.dumps(known | fresh, indent=2), encoding="utf-8")
            publish(draft, path)
    return {**known, **fresh}


def _users(config: Embedded, folder: Path | None) -> dict[str, User]:
    member = ("member", "reader")
    built_in: dict[str, dict[str, tuple[str, ...]]] = {
        SERVICE_USER: {SERVICE_PROJECT: ("admin", "service", *member)},
        "alice": {"alpha": member},
        "bob": {"beta": member},
        "carol": {"alpha": ("reader",)},
        "dave": {"alpha": ("admin", *member)},
        config.username: {config.tenant: member},
    }
    passwords = dict(_passwords(folder, built_in))
    if config.password:
        passwords[config.username] = config.password
    users = {}
    for name, roles in built_in.items():
        id_ = fixed_id("user", name)
        users[id_] = User(
            id=id_,
            name=name,
            password=passwords[name],
            roles=roles,
            open=name == config.username,
        )
    return users


def _projects(config: Embedded, state: State) -> dict[str, Project]:
    built_in = {p: Project(id=p, name=p) for p in (config.tenant, SERVICE_PROJECT, "alpha", "beta")}
    return built_in | {project.id: project for project in state.projects.values()}
