"""The settings: one schema, three sources (TOML file < `SVCD_*` environment < `--set` flags).

Every key is `section.name`. An unknown key is an error. Each value keeps its source for
`svcd config show`. Durations end in `_s` (seconds), sizes in `_bytes`.
"""

from __future__ import annotations

import functools
import re
import typing
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import attrs
from attrs import field, frozen

from svcd.model.choices import nearest
from svcd.model.redaction import url_repr


class SettingsError(Exception):
    """A setting is unknown or has a wrong value: one line that says which, where and why."""


ANY_HOST = "*"
"""In `server.hosts`: every host."""
UNIX = "unix"
"""In `server.trusted_proxies`: every process that connects to a socket file."""
_PASSWORDS = re.compile(r"(//[^:/?@\s]*:)[^\n]*@|((?:ssl)?password=)[^&\n]*", re.IGNORECASE)
_KEY = re.compile(r"[A-Za-z0-9_.]*")
_MOST = 1 << 53
"""Largest number: databases and JSON keep it exactly."""
_NOT_SETTINGS = (
    "SVCD_CONFORMANCE_",
    "SVCD_HOSTS_FILE",
    "SVCD_JAVA_HOME",
    "SVCD_JVM_FLAGS",
    "SVCD_LIVE_",
    "SVCD_MACHINE_",
    "SVCD_MVN_ARGS",
    "SVCD_TEST_",
    "SVCD_VANILLA_PREFIX",
)
"""Beginnings of variables that other parts of svcd read: the image, the machines, the tests."""
_HIDDEN = ("database.url",)
"""Besides the secrets: their wrong values are not quoted either."""


def without_passwords(text: str) -> str:
    """`text` with the passwords of URLs in it replaced by stars, also of URLs that are wrong."""
    return _PASSWORDS.sub(lambda m: f"{m[1]}***@" if m[1] else f"{m[2]}***", text)


def _doc(text: str) -> dict[str, str]:
    return {"doc": text}


@frozen(kw_only=True)
class Server:
    listen: str = field(default="tcp:127.0.0.1:8386", metadata=_doc("endpoint of the API"))
    admin_listen: str = field(
        default="",
        metadata=_doc("endpoint for /metrics and health alone; empty: the API serves them"),
    )
    state_dir: Path = field(
        default=Path("state"),
        metadata=_doc("folder of the daemon's files: database, key, embedded cloud"),
    )
    seal_key: str = field(
        default="",
        metadata=_doc("file of the key that seals credentials; empty: seal.key in state_dir"),
    )
    header_deadline_s: float = field(
        default=10.0, metadata=_doc("longest time for a request's header to arrive")
    )
    min_body_rate_bytes: int = field(
        default=1000, metadata=_doc("lowest rate of a request body, bytes a second")
    )
    idle_timeout_s: float = field(
        default=75.0, metadata=_doc("time until an idle connection is closed")
    )
    request_timeout_s: float = field(default=60.0, metadata=_doc("longest time of a request"))
    drain_s: float = field(
        default=10.0, metadata=_doc("time in which requests in flight may finish at a stop")
    )
    max_connections: int = field(default=20000, metadata=_doc("most open connections"))
    max_json_bytes: int = field(default=1_048_576, metadata=_doc("largest JSON body"))
    max_binary_bytes: int = field(default=536_870_912, metadata=_doc("largest internal job binary"))
    hosts: tuple[str, ...] = field(
        default=(),
        metadata=_doc("names that callers may use besides loopback addresses; *: any name"),
    )
    trusted_proxies: tuple[str, ...] = field(
        default=(),
        metadata=_doc(
            "proxies whose X-Forwarded-For counts: addresses, networks, or unix for a socket file"
        ),
    )
    hide_credentials: bool = field(
        default=False,
        metadata=_doc("mask credentials of data sources and binaries, and tokens of clusters"),
    )


@frozen(kw_only=True)
class Database:
    url: str = field(
        default="",
        repr=False,
        metadata=_doc("sqlite:///PATH or postgresql://…; empty: a file in state_dir"),
    )
    connections: int = field(default=8, metadata=_doc("most connections to PostgreSQL"))
    connect_timeout_s: float = field(
        default=5.0, metadata=_doc("longest wait for a new connection to PostgreSQL")
    )
    statement_timeout_s: float = field(
        default=15.0, metadata=_doc("longest time of one statement in PostgreSQL")
    )
    wait_s: float = field(
        default=5.0, metadata=_doc("longest wait of a request for a free connection, then 503")
    )
    lease_s: float = field(
        default=5.0, metadata=_doc("time after which the others replace a silent daemon")
    )
    renew_s: float = field(default=1.0, metadata=_doc("interval of a daemon's heartbeats"))
    grace_s: float = field(
        default=2.0,
        metadata=_doc("longest time until the last calls of a dead daemon show in the cloud"),
    )
    rescan_s: float = field(
        default=5.0, metadata=_doc("interval of searches for work that other daemons have accepted")
    )


@frozen(kw_only=True)
class Auth:
    mode: str = field(default="none", metadata=_doc("none or keystone"))
    allow_none: bool = field(
        default=False,
        metadata=_doc("allow mode none with a real cloud, or on ports that others can reach"),
    )
    cache_s: float = field(default=300.0, metadata=_doc("time for which svcd trusts a valid token"))
    negative_cache_s: float = field(
        default=10.0, metadata=_doc("time for which svcd remembers a refused token")
    )
    cache_size: int = field(
        default=10_000, metadata=_doc("most valid tokens, and most refused ones, in memory")
    )
    checks_at_once: int = field(
        default=20, metadata=_doc("most tokens that the identity service checks at once")
    )
    refusals_per_minute: int = field(
        default=300,
        metadata=_doc("refused tokens after which an address has to wait a minute; 0: no limit"),
    )
    read_roles: tuple[str, ...] = field(
        default=("reader", "member", "admin"),
        metadata=_doc("roles of which a caller needs one to read"),
    )
    write_roles: tuple[str, ...] = field(
        default=("member", "admin"),
        metadata=_doc("roles of which a caller needs one to change anything"),
    )


@frozen(kw_only=True)
class CloudSettings:
    kind: str = field(default="embedded", metadata=_doc("embedded or openstack"))
    listen: str = field(
        default="tcp:127.0.0.1:8387", metadata=_doc("endpoint of the embedded cloud")
    )
    auth_url: str = field(
        default="", repr=url_repr, metadata=_doc("URL of the identity service; ends in /v3")
    )
    username: str = field(default="", metadata=_doc("svcd's own user"))
    password: str = field(
        default="", repr=False, metadata={"doc": "password of the user", "secret": True}
    )
    application_credential_id: str = field(
        default="",
        repr=False,
        metadata={"doc": "id of an application credential, in place of a password", "secret": True},
    )
    application_credential_secret: str = field(
        default="",
        repr=False,
        metadata={"doc": "secret of the application credential", "secret": True},
    )
    project: str = field(default="", metadata=_doc("svcd's own project"))
    user_domain: str = field(default="default", metadata=_doc("domain id of the user"))
    project_domain: str = field(default="default", metadata=_doc("domain id of the project"))
    region: str = field(default="", metadata=_doc("region of the catalog; empty: any"))
    interface: str = field(default="public", metadata=_doc("public, internal or admin"))
    job_credentials: str = field(
        default="application",
        metadata=_doc(
            "application: a job logs in at the object store with an application credential of its"
            " own; password: with the password of its data source"
        ),
    )
    job_roles: tuple[str, ...] = field(
        default=("member",),
        metadata=_doc("roles of a job's application credential, as far as the user has them"),
    )
    timeout_s: float = field(default=30.0, metadata=_doc("longest time of one call, body included"))
    trust_roles: tuple[str, ...] = field(
        default=("member",),
        metadata=_doc("roles that the trust of a cluster carries, if its creator has them"),
    )
    calls_at_once: int = field(default=20, metadata=_doc("most calls in flight"))
    machine_cidrs: tuple[str, ...] = field(
        default=(),
        metadata=_doc(
            "networks of machines that svcd connects to; empty: all but its host and link-local"
        ),
    )
    ssh_ports: tuple[str, ...] = field(
        default=("22",), metadata=_doc("SSH ports that images may name in _svc_ssh_port")
    )
    ssh_cidrs: tuple[str, ...] = field(
        default=("0.0.0.0/0",),
        metadata=_doc("networks that may reach the SSH port of servers; svcd must be in one"),
    )
    web_cidrs: tuple[str, ...] = field(
        default=(),
        metadata=_doc("networks that may reach Hadoop's pages, and so run programs there"),
    )
    allow_public_web: bool = field(
        default=False, metadata=_doc("svcd doctor accepts every address in cloud.web_cidrs")
    )


@frozen(kw_only=True)
class Embedded:
    """The embedded cloud."""

    network: str = field(
        default="127.1.0.0/16", metadata=_doc("addresses of the loopback machines")
    )
    ssh_port: int = field(default=2222, metadata=_doc("SSH port of the loopback machines"))
    boot_s: float = field(default=0.0, metadata=_doc("time a server stays in BUILD"))
    list_lag_s: float = field(default=0.0, metadata=_doc("delay until lists show a change"))
    delete_s: float = field(default=0.0, metadata=_doc("time until a deleted server is gone"))
    volume_s: float = field(default=0.0, metadata=_doc("time a volume takes to change state"))
    quota_instances: int = field(
        default=0,
        metadata=_doc(
            "most servers of a project; -1: any; 0: one for each 512 MiB of this machine's memory,"
            " in all projects together"
        ),
    )
    quota_cores: int = field(default=800, metadata=_doc("most virtual processors of a project"))
    quota_ram_mib: int = field(default=1_638_400, metadata=_doc("most memory of a project, MiB"))
    quota_volumes: int = field(default=400, metadata=_doc("most volumes of a project"))
    quota_volume_gib: int = field(
        default=40_000, metadata=_doc("most volume space of a project, GiB")
    )
    quota_floating_ips: int = field(default=50, metadata=_doc("most floating IPs of a project"))
    token_ttl_s: float = field(default=86_400.0, metadata=_doc("lifetime of a token"))
    username: str = field(
        default="demo", metadata=_doc("user of the embedded cloud, named in endpoints.json")
    )
    password: str = field(
        default="",
        repr=False,
        metadata={"doc": "its password; empty: random, see endpoints.json", "secret": True},
    )
    tenant: str = field(default="demo", metadata=_doc("project of the user: id and name"))
    image_prefix: str = field(
        default="", metadata=_doc("software tree of vanilla; empty: state_dir/image/vanilla-3.5.0")
    )


@frozen(kw_only=True)
class Console:
    enabled: bool = field(
        default=True, metadata=_doc("serve the web page at /console/ beside the API")
    )
    password_login: bool = field(
        default=True,
        metadata=_doc("the page may log users in with a password (auth.mode=keystone)"),
    )


@frozen(kw_only=True)
class Plugins:
    enabled: tuple[str, ...] = field(
        default=("vanilla",), metadata=_doc("enabled distributions, in the order of the list")
    )


@frozen(kw_only=True)
class Fake:
    engine_url: str = field(
        default="",
        repr=url_repr,
        metadata=_doc("scripted engine of the fake distribution; empty: the embedded cloud's"),
    )


@frozen(kw_only=True)
class Ssh:
    connect_timeout_s: float = field(default=10.0, metadata=_doc("longest time of a login"))
    channels: int = field(default=8, metadata=_doc("most commands at once on one connection"))
    keepalive_s: float = field(default=30.0, metadata=_doc("idle time before a keep-alive"))


@frozen(kw_only=True)
class Provisioning:
    on_failure: str = field(
        default="remove",
        metadata=_doc("remove or keep the servers of a cluster that could not be made"),
    )
    max_nodes: int = field(default=1000, metadata=_doc("most instances of one cluster"))
    max_groups: int = field(default=100, metadata=_doc("most node groups of one cluster"))
    machines_at_once: int = field(
        default=30, metadata=_doc("most machines of a cluster that svcd works on at once")
    )
    spawn_deadline_s: float = field(default=1800.0, metadata=_doc("longest time in Spawning"))
    prepare_deadline_s: float = field(default=900.0, metadata=_doc("longest time in Preparing"))
    configure_deadline_s: float = field(default=600.0, metadata=_doc("longest time in Configuring"))
    start_deadline_s: float = field(default=900.0, metadata=_doc("longest time in Starting"))
    decommission_deadline_s: float = field(
        default=14_400.0, metadata=_doc("longest time in Decommissioning")
    )
    delete_deadline_s: float = field(default=1800.0, metadata=_doc("longest time in Deleting"))
    poll_s: float = field(
        default=1.0, metadata=_doc("interval of requests to the cloud while a cluster is built")
    )
    transient_poll_s: float = field(
        default=30.0, metadata=_doc("interval of searches for idle transient clusters")
    )
    health_poll_s: float = field(
        default=300.0, metadata=_doc("interval of health checks of an Active cluster; 0: never")
    )


@frozen(kw_only=True)
class Workflow:
    poll_s: float = field(
        default=5.0, metadata=_doc("interval of status requests for running executions")
    )
    submit_deadline_s: float = field(
        default=900.0, metadata=_doc("longest time from Active to the submit")
    )
    manual_deadline_s: float = field(
        default=300.0, metadata=_doc("longest time SUSPENDED with an action in START_MANUAL")
    )
    cancel_s: float = field(default=5.0, metadata=_doc("longest time of a cancel"))
    unreachable_deadline_s: float = field(
        default=1800.0,
        metadata=_doc(
            "longest time without engine, resource manager or worker; then the execution ends"
        ),
    )
    job_credential_s: float = field(
        default=604_800.0,
        metadata=_doc(
            "life of a job's application credential; a longer job loses the object store"
        ),
    )
    keep_days: int = field(
        default=0,
        metadata=_doc("days after which svcd deletes the record of an ended execution; 0: never"),
    )
    log_bytes: int = field(
        default=1_048_576, metadata=_doc("most bytes of a job's log in an answer")
    )


@frozen(kw_only=True)
class Limits:
    answer_bytes: int = field(
        default=1_048_576, metadata=_doc("largest answer of a cluster's engine or file system")
    )
    rows: int = field(
        default=100_000,
        metadata=_doc("most records of each kind that a tenant may have; 0: no limit"),
    )
    executions: int = field(
        default=10_000, metadata=_doc("most job executions of a tenant that have not ended; 0: any")
    )
    binary_bytes: int = field(
        default=10_737_418_240,
        metadata=_doc("most bytes of a tenant's job binary internals together; 0: any"),
    )
    clusters: int = field(default=1000, metadata=_doc("most clusters of a tenant; 0: any"))
    instances: int = field(
        default=10_000, metadata=_doc("most instances of a tenant's clusters together; 0: any")
    )
    watchers: int = field(
        default=1000, metadata=_doc("most open watch requests of a tenant at one daemon; 0: any")
    )
    log_bytes: int = field(
        default=268_435_456,
        metadata=_doc(
            "most bytes of a tenant's kept logs of job executions together, compressed; the oldest"
            " go first; 0: any"
        ),
    )
    idempotency_keys: int = field(
        default=10_000,
        metadata=_doc("most Idempotency-Keys that a tenant may use in 24 hours; 0: any"),
    )


@frozen(kw_only=True)
class Logging:
    format: str = field(default="human", metadata=_doc("human or json"))
    level: str = field(default="info", metadata=_doc("debug, info, warn or error"))
    access: bool = field(default=True, metadata=_doc("write one line for each request"))
    audit: str = field(
        default="audit.log",
        metadata=_doc("file of the audit log, relative to state_dir; - for standard output; off"),
    )
    audit_bytes: int = field(
        default=67_108_864,
        metadata=_doc("size at which the audit log begins a new file; nine older ones are kept"),
    )


@frozen(kw_only=True)
class Settings:
    """All sections. Source of the operator's names: design, "The operator's contract"."""

    server: Server = field(factory=Server)
    database: Database = field(factory=Database)
    auth: Auth = field(factory=Auth)
    cloud: CloudSettings = field(factory=CloudSettings)
    embedded: Embedded = field(factory=Embedded)
    console: Console = field(factory=Console)
    plugins: Plugins = field(factory=Plugins)
    fake: Fake = field(factory=Fake)
    ssh: Ssh = field(factory=Ssh)
    provisioning: Provisioning = field(factory=Provisioning)
    workflow: Workflow = field(factory=Workflow)
    limits: Limits = field(factory=Limits)
    log: Logging = field(factory=Logging)


_CHOICES: Mapping[str, Sequence[str]] = {
    "auth.mode": ("none", "keystone"),
    "cloud.kind": ("embedded", "openstack"),
    "cloud.interface": ("public", "internal", "admin"),
    "cloud.job_credentials": ("application", "password"),
    "provisioning.on_failure": ("remove", "keep"),
    "log.format": ("human", "json"),
    "log.level": ("debug", "info", "warn", "error"),
}


@frozen(kw_only=True)
class Loaded:
    """Settings and the source of each key (`default` for keys that are not given).

    unknown: a sentence for each variable of the environment that looks like a setting of an unknown
    section. svcd ignores these variables: other programs may own them.
    """

    settings: Settings
    sources: Mapping[str, str]
    unknown: Sequence[str] = ()


@functools.cache
def _sections() -> Mapping[str, Any]:
    """Section -> its class."""
    return typing.get_type_hints(Settings)


@functools.cache
def _variables() -> Mapping[str, str]:
    """Variable of the environment -> `section.name`."""
    return {"SVCD_" + key.upper().replace(".", "_"): key for key in schema()}


@functools.cache
def schema() -> Mapping[str, tuple[Any, str, bool]]:
    """`section.name` -> (type, documentation, is it secret), in order."""
    result: dict[str, tuple[Any, str, bool]] = {}
    for section in attrs.fields(Settings):
        kind = _sections()[section.name]
        hints = typing.get_type_hints(kind)
        for each in attrs.fields(kind):
            result[f"{section.name}.{each.name}"] = (
                hints[each.name],
                each.metadata.get("doc", ""),
                bool(each.metadata.get("secret")),
            )
    return result


def load(config: Path | None, environment: Mapping[str, str], flags: Sequence[str] = ()) -> Loaded:
    """Read the three sources.

    flags: `section.name=value` texts. Raises SettingsError.
    """
    known = schema()
    given: dict[str, tuple[object, str]] = {}
    if config is not None:
        given.update(_from_file(config, known))
    by_variable = _variables()
    unknown: list[str] = []
    for variable, text in environment.items():
        section, _, name = variable.removeprefix("SVCD_").lower().partition("_")
        if variable in by_variable:
            given[by_variable[variable]] = (text, f"environment {variable}")
        elif variable.startswith("SVCD_") and section in _sections():
            given[f"{section}.{name}"] = (text, f"environment {variable}")  # unknown, see below
        elif variable.startswith("SVCD_") and not variable.startswith(_NOT_SETTINGS):
            unknown.append(_ignored(variable, by_variable))
    for flag in flags:
        key, equals, text = flag.partition("=")
        if not equals:
            began = _KEY.match(flag)
            shown = began[0] if began is not None else ""
            raise SettingsError(f"--set {shown}…: write it as section.key=value")
        given[key.strip()] = (text, "--set")
    values: dict[str, dict[str, object]] = {}
    for key, (raw, source) in given.items():
        if key not in known:
            near = nearest(key, known)
            remedy = f"did you mean {near}?" if near else "svcd config show lists all settings"
            raise SettingsError(f"unknown setting {key} ({source}); {remedy}")
        section, _, name = key.partition(".")
        values.setdefault(section, {})[name] = _convert(key, raw, known[key][0], source)
    built = {s: _sections()[s](**v) for s, v in values.items()}
    return Loaded(
        settings=Settings(**built),
        sources={k: given[k][1] if k in given else "default" for k in known},
        unknown=unknown,
    )


def _ignored(variable: str, known: Iterable[str]) -> str:
    """The sentence about a variable that names no setting. Its value may be a secret."""
    near = nearest(variable.removeprefix("SVCD_"), (x.removeprefix("SVCD_") for x in known))
    remedy = f"did you mean SVCD_{near}?" if near else "svcd config show lists all settings"
    return f"the environment variable {variable} names no setting and has no effect; {remedy}"


def _from_file(
    config: Path, known: Mapping[str, tuple[Any, str, bool]]
) -> dict[str, tuple[object, str]]:
    import tomllib  # here: only with a file

    try:
        tree = tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read settings file {config}: {error}") from None
    found: dict[str, tuple[object, str]] = {}
    for section, content in tree.items():
        if not isinstance(content, dict):
            raise SettingsError(f"unknown setting {section} ({config}); settings are in sections")
        for name, value in content.items():
            found[f"{section}.{name}"] = (value, str(config))
    return found


def _convert(key: str, raw: object, kind: Any, source: str) -> object:
    def wrong(expected: str) -> SettingsError:
        text = f"setting {key} ({source}): expected {expected}, got "
        if key in _HIDDEN or schema()[key][2]:
            return SettingsError(text + "something else (not shown: it may be a secret)")
        return SettingsError(text + without_passwords(repr(raw)))

    if kind is bool:
        words = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}
        if isinstance(raw, bool):
            return raw
        if not isinstance(raw, str) or raw.lower() not in words:
            raise wrong("true or false")
        return words[raw.lower()]
    if kind in (int, float):
        if isinstance(raw, bool) or not isinstance(raw, (int, float, str)):
            raise wrong("a number")
        try:
            number: int | float = kind(raw)
        except ValueError:
            raise wrong("a whole number" if kind is int else "a number") from None
        if not 0 <= number < float("inf") and (key, number) != ("embedded.quota_instances", -1):
            raise wrong("a number that is not negative")
        if number > _MOST:
            raise wrong(f"a number of at most {_MOST}")
        return number
    if kind is Path or kind is str:
        if not isinstance(raw, str):
            raise wrong("a text")
        if key in _CHOICES and raw not in _CHOICES[key]:
            raise wrong("one of " + ", ".join(_CHOICES[key]))
        return Path(raw) if kind is Path else raw
    items = raw.split(",") if isinstance(raw, str) else raw
    if not isinstance(items, list) or not all(isinstance(i, str) for i in items):
        raise wrong("a list of texts")
    return tuple(i.strip() for i in items if i.strip())
