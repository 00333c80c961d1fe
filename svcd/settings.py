"""The settings, one declaration each: TOML file < `SVCD_*` environment < `--set` flags.

Every key is `section.name`. An unknown key is an error. Each value keeps its source for
`svcd config show`. Durations end in `_s` (seconds), sizes in `_bytes`.

Note: settings and constants. A `setting` is what an operator may change, because the right value
depends on the site: its network, cloud, database, users, amounts. A `constant` has one value that
is right everywhere; its text says what it bounds. It stands in the same records, so that a test
gives another value to the constructor of a record or to FakeService. `load` refuses a constant that
an operator sets, and names the value that holds.
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

from svcd.declaration import Setting, SettingsError, constant, setting
from svcd.model.choices import nearest
from svcd.model.redaction import url_repr

ANY_HOST = "*"
"""In `server.hosts`: every host."""
UNIX = "unix"
"""In `server.trusted_proxies`: every process that connects to a socket file."""
_KEY = re.compile(r"[A-Za-z0-9_.]*")
_A_ROLE = "name a role, for example member"
_NOT_SETTINGS = (
    "SVCD_API",
    "SVCD_HOSTS_FILE",
    "SVCD_JAVA_HOME",
    "SVCD_JVM_FLAGS",
    "SVCD_MACHINE_",
    "SVCD_MVN_ARGS",
    "SVCD_OBJSTORE_",
    "SVCD_TEST_",
    "SVCD_VANILLA_PREFIX",
)
"""Beginnings of variables that other parts of svcd read: commands, the image, machines, tests."""


@frozen(kw_only=True)
class Server:
    listen: str = setting("tcp:127.0.0.1:8386", "endpoint of the API")
    admin_listen: str = setting(
        "", "endpoint for /metrics and health alone; empty: the API serves them"
    )
    state_dir: Path = setting(  # noqa: RUF009
        Path("state"), "folder of the daemon's files: database, key, embedded cloud"
    )
    seal_key: str = setting(
        "", "file of the key that seals credentials; empty: seal.key in state_dir"
    )
    header_deadline_s: float = constant(10.0, "longest time for a request's header to arrive")
    min_body_rate_bytes: int = constant(1000, "lowest rate of a request body, bytes a second")
    idle_timeout_s: float = constant(75.0, "time until an idle connection is closed")
    request_timeout_s: float = setting(60.0, "longest time of a request", least=1)
    drain_s: float = setting(10.0, "time in which requests in flight may finish at a stop")
    max_connections: int = setting(20000, "most open connections", least=1)
    max_json_bytes: int = constant(1_048_576, "largest JSON body")
    max_binary_bytes: int = setting(536_870_912, "largest internal job binary")
    hosts: tuple[str, ...] = setting(
        (), "names that callers may use besides loopback addresses; *: any name"
    )
    trusted_proxies: tuple[str, ...] = setting(
        (), "proxies whose X-Forwarded-For counts: addresses, networks, or unix for a socket file"
    )
    hide_credentials: bool = setting(
        False, "mask credentials of data sources and binaries, and tokens of clusters"
    )


@frozen(kw_only=True)
class Database:
    url: str = setting(
        "", "sqlite:///PATH or postgresql://…; empty: a file in state_dir", shown=False
    )
    connections: int = setting(8, "most connections to PostgreSQL", least=1, most=500)
    connect_timeout_s: float = constant(5.0, "longest wait for a new connection to PostgreSQL")
    statement_timeout_s: float = constant(15.0, "longest time of one statement in PostgreSQL")
    wait_s: float = constant(5.0, "longest wait of a request for a free connection, then 503")
    lease_s: float = setting(5.0, "time after which the others replace a silent daemon", least=3)
    renew_s: float = constant(1.0, "interval of a daemon's heartbeats")
    grace_s: float = constant(
        2.0, "longest time until the last calls of a dead daemon show in the cloud"
    )
    rescan_s: float = constant(
        5.0, "interval of searches for work that other daemons have accepted"
    )

    def file(self, state_dir: Path) -> Path | None:
        """The file of a SQLite database; None for PostgreSQL."""
        if self.url.startswith("postgres"):
            return None
        named = self.url.removeprefix("sqlite:///")
        return Path(named).absolute() if named else state_dir.absolute() / "svcd.sqlite"


@frozen(kw_only=True)
class Auth:
    mode: str = setting("none", "none or keystone", choices=("none", "keystone"))
    allow_none: bool = setting(
        False, "allow mode none with a real cloud, or on ports that others can reach"
    )
    cache_s: float = setting(300.0, "time for which svcd trusts a valid token")
    negative_cache_s: float = constant(10.0, "time for which svcd remembers a refused token")
    cache_size: int = constant(10_000, "most valid tokens, and most refused ones, in memory")
    checks_at_once: int = constant(20, "most tokens that the identity service checks at once")
    refusals_per_minute: int = constant(
        300, "refused tokens after which an address has to wait a minute; 0: no limit"
    )
    read_roles: tuple[str, ...] = setting(
        ("reader", "member", "admin"), "roles of which a caller needs one to read", filled=_A_ROLE
    )
    write_roles: tuple[str, ...] = setting(
        ("member", "admin"), "roles of which a caller needs one to change anything", filled=_A_ROLE
    )


@frozen(kw_only=True)
class CloudSettings:
    kind: str = setting("embedded", "embedded or openstack", choices=("embedded", "openstack"))
    listen: str = setting("tcp:127.0.0.1:8387", "endpoint of the embedded cloud")
    auth_url: str = setting("", "URL of the identity service; ends in /v3", shown=url_repr)
    username: str = setting("", "svcd's own user")
    password: str = setting("", "password of the user", secret=True)
    application_credential_id: str = setting(
        "", "id of an application credential, in place of a password", secret=True
    )
    application_credential_secret: str = setting(
        "", "secret of the application credential", secret=True
    )
    project: str = setting("", "svcd's own project")
    user_domain: str = setting("default", "domain id of the user")
    project_domain: str = setting("default", "domain id of the project")
    region: str = setting("", "region of the catalog; empty: any")
    interface: str = setting(
        "public", "public, internal or admin", choices=("public", "internal", "admin")
    )
    job_credentials: str = setting(
        "application",
        "application: a job logs in at the object store with an application credential of"
        " its own; password: with the password of its data source",
        choices=("application", "password"),
    )
    job_roles: tuple[str, ...] = setting(
        ("member",),
        "roles of a job's application credential, as far as the user has them",
        filled=_A_ROLE,
    )
    timeout_s: float = setting(30.0, "longest time of one call, body included", least=1)
    trust_roles: tuple[str, ...] = setting(
        ("member",),
        "roles that the trust of a cluster carries, if its creator has them",
        filled=_A_ROLE,
    )
    calls_at_once: int = setting(
        20,
        "most calls in flight of one project to one service; of all projects twice as many",
        least=1,
    )
    machine_cidrs: tuple[str, ...] = setting(
        (), "networks of machines that svcd connects to; empty: all but its host and link-local"
    )
    ssh_ports: tuple[str, ...] = setting(
        ("22",), "SSH ports that images may name in _svc_ssh_port", filled="name at least 22"
    )
    ssh_cidrs: tuple[str, ...] = setting(
        ("0.0.0.0/0",),
        "networks that may reach the SSH port of servers; svcd must be in one",
        filled="name at least the network of svcd itself",
    )
    web_cidrs: tuple[str, ...] = setting(
        (), "networks that may reach Hadoop's pages, and so run programs there"
    )
    allow_public_web: bool = setting(False, "svcd doctor accepts every address in cloud.web_cidrs")


@frozen(kw_only=True)
class Embedded:
    """The embedded cloud."""

    network: str = setting("127.1.0.0/16", "addresses of the loopback machines")
    ssh_port: int = setting(2222, "SSH port of the loopback machines", least=1, most=65_535)
    boot_s: float = constant(0.0, "time a server stays in BUILD")
    list_lag_s: float = constant(0.0, "delay until lists show a change")
    delete_s: float = constant(0.0, "time until a deleted server is gone")
    volume_s: float = constant(0.0, "time a volume takes to change state")
    quota_instances: int = setting(
        0,
        "most servers of a project; -1: any; 0: one for each 512 MiB of this machine's memory,"
        " in all projects together",
        least=-1,
    )
    quota_cores: int = constant(800, "most virtual processors of a project")
    quota_ram_mib: int = constant(1_638_400, "most memory of a project, MiB")
    quota_volumes: int = constant(400, "most volumes of a project")
    quota_volume_gib: int = constant(40_000, "most volume space of a project, GiB")
    quota_floating_ips: int = constant(50, "most floating IPs of a project")
    token_ttl_s: float = constant(86_400.0, "lifetime of a token")
    username: str = setting(
        "demo", "user of the embedded cloud, named in endpoints.json", filled="name a user"
    )
    password: str = setting("", "its password; empty: random, see endpoints.json", secret=True)
    tenant: str = setting("demo", "project of the user: id and name", filled="name a project")
    image_prefix: str = setting(
        "", "software tree of vanilla; empty: state_dir/image/vanilla-3.5.0"
    )


@frozen(kw_only=True)
class Console:
    enabled: bool = setting(True, "serve the web page at /console/ beside the API")
    password_login: bool = setting(
        True, "the page may log users in with a password (auth.mode=keystone)"
    )


@frozen(kw_only=True)
class Plugins:
    enabled: tuple[str, ...] = setting(
        ("vanilla",),
        "enabled distributions, in the order of the list",
        filled="name a distribution, for example vanilla",
    )


@frozen(kw_only=True)
class Fake:
    engine_url: str = setting(
        "", "scripted engine of the fake distribution; empty: the embedded cloud's", shown=url_repr
    )


@frozen(kw_only=True)
class Ssh:
    connect_timeout_s: float = constant(10.0, "longest time of a login")
    channels: int = constant(8, "most commands at once on one connection")
    keepalive_s: float = constant(30.0, "idle time before a keep-alive")


@frozen(kw_only=True)
class Provisioning:
    on_failure: str = setting(
        "remove",
        "remove or keep the servers of a cluster that could not be made",
        choices=("remove", "keep"),
    )
    max_nodes: int = constant(1000, "most instances of one cluster")
    max_groups: int = constant(100, "most node groups of one cluster")
    machines_at_once: int = constant(30, "most machines of a cluster that svcd works on at once")
    spawn_deadline_s: float = setting(1800.0, "longest time in Spawning", least=1)
    prepare_deadline_s: float = constant(900.0, "longest time in Preparing")
    configure_deadline_s: float = constant(600.0, "longest time in Configuring")
    script_deadline_s: float = constant(600.0, "longest time of one first-boot script")
    start_deadline_s: float = constant(900.0, "longest time in Starting")
    decommission_deadline_s: float = setting(14_400.0, "longest time in Decommissioning", least=1)
    delete_deadline_s: float = setting(1800.0, "longest time in Deleting", least=1)
    max_idle_s: int = setting(
        0, "largest idle_delete_s of new clusters, which those without one get; 0: any", least=0
    )
    max_age_s: int = setting(
        0, "largest max_age_s of new clusters, which those without one get; 0: any", least=0
    )
    poll_s: float = constant(1.0, "interval of requests to the cloud while a cluster is built")
    endings_poll_s: float = constant(30.0, "interval of searches for clusters that end")
    health_poll_s: float = setting(
        300.0, "interval of health checks of an Active cluster; 0: never"
    )


@frozen(kw_only=True)
class Workflow:
    poll_s: float = setting(5.0, "interval of status requests for running executions", least=0.1)
    submit_deadline_s: float = constant(900.0, "longest time from Active to the submit")
    manual_deadline_s: float = constant(
        300.0, "longest time SUSPENDED with an action in START_MANUAL"
    )
    cancel_s: float = constant(5.0, "longest time of a cancel")
    unreachable_deadline_s: float = setting(
        1800.0,
        "longest time without engine, resource manager or worker; then the execution ends",
        least=1,
    )
    job_credential_s: float = setting(
        604_800.0,
        "life of a job's application credential; a longer job loses the object store",
        least=60,
    )
    keep_days: int = setting(
        0, "days after which svcd deletes the record of an ended execution; 0: never"
    )
    log_bytes: int = constant(1_048_576, "most bytes of a job's log in an answer")


@frozen(kw_only=True)
class Limits:
    answer_bytes: int = setting(
        1_048_576, "largest answer of a cluster's engine or file system", least=4096
    )
    rows: int = setting(100_000, "most records of each kind that a tenant may have; 0: no limit")
    executions: int = setting(10_000, "most job executions of a tenant that have not ended; 0: any")
    binary_bytes: int = setting(
        10_737_418_240, "most bytes of a tenant's job binary internals together; 0: any"
    )
    clusters: int = setting(1000, "most clusters of a tenant; 0: any")
    instances: int = setting(10_000, "most instances of a tenant's clusters together; 0: any")
    watchers: int = setting(1000, "most open watch requests of a tenant at one daemon; 0: any")
    log_bytes: int = setting(
        268_435_456,
        "most bytes of a tenant's kept logs of job executions together, compressed; the oldest"
        " go first; 0: any",
    )
    idempotency_keys: int = setting(
        10_000, "most Idempotency-Keys that a tenant may use in 24 hours; 0: any"
    )


@frozen(kw_only=True)
class Logging:
    format: str = setting("human", "human or json", choices=("human", "json"))
    level: str = setting(
        "info", "debug, info, warn or error", choices=("debug", "info", "warn", "error")
    )
    access: bool = setting(True, "write one line for each request")
    audit: str = setting(
        "audit.log",
        "file of the audit log, relative to state_dir; - for standard output; off",
        filled="name a file, - for standard output, or off",
    )
    audit_bytes: int = constant(
        67_108_864, "size at which the audit log begins a new file; nine older ones are kept"
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
def _declared() -> Mapping[str, Setting]:
    """`section.name` -> its declaration, constants included, in order."""
    declared: dict[str, Setting] = {}
    for section, record in _sections().items():
        kinds = typing.get_type_hints(record)
        for attribute in attrs.fields(record):
            declared[f"{section}.{attribute.name}"] = Setting(
                kind=kinds[attribute.name],
                default=attribute.default,
                hidden=attribute.repr is False,
                **attribute.metadata,
            )
    return declared


@functools.cache
def schema() -> Mapping[str, Setting]:
    """`section.name` -> the declaration of each setting, in order."""
    return {key: declared for key, declared in _declared().items() if not declared.fixed}


@functools.cache
def _variables() -> Mapping[str, str]:
    """Variable of the environment -> `section.name`."""
    return {"SVCD_" + key.upper().replace(".", "_"): key for key in schema()}


def load(
    config: Path | None,
    environment: Mapping[str, str],
    flags: Sequence[str] = (),
    constants: bool = False,
) -> Loaded:
    """Read the three sources.

    flags: `section.name=value` texts. constants: they may be set too, for FakeService.
    Raises SettingsError.
    """
    known = _declared()
    given: dict[str, tuple[object, str]] = {}
    if config is not None:
        given.update(_from_file(config))
    by_variable = _variables()
    unknown: list[str] = []
    for variable, text in environment.items():
        section, _, name = variable.removeprefix("SVCD_").lower().partition("_")
        if variable in by_variable:
            given[by_variable[variable]] = (text, f"environment {variable}")
        elif variable.startswith("SVCD_") and section in _sections():
            given[f"{section}.{name}"] = (text, f"environment {variable}")  # refused, see below
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
        if key not in schema() and not (constants and key in known):
            raise SettingsError(_refusal(key, source))
        section, _, name = key.partition(".")
        values.setdefault(section, {})[name] = known[key].value(key, raw, source)
    built = {s: _sections()[s](**v) for s, v in values.items()}
    return Loaded(
        settings=Settings(**built),
        sources={k: given[k][1] if k in given else "default" for k in schema()},
        unknown=unknown,
    )


def _refusal(key: str, source: str) -> str:
    """The sentence about a key that no operator can set."""
    declared = _declared().get(key)
    if declared is not None:
        return (
            f"{key} ({source}) is no setting: its value is always {declared.default}"
            f" ({declared.text})"
        )
    near = nearest(key, schema())
    remedy = f"did you mean {near}?" if near else "svcd config show lists all settings"
    return f"unknown setting {key} ({source}); {remedy}"


def _ignored(variable: str, known: Iterable[str]) -> str:
    """The sentence about a variable that names no setting. Its value may be a secret."""
    near = nearest(variable.removeprefix("SVCD_"), (x.removeprefix("SVCD_") for x in known))
    remedy = f"did you mean SVCD_{near}?" if near else "svcd config show lists all settings"
    return f"the environment variable {variable} names no setting and has no effect; {remedy}"


def _from_file(config: Path) -> dict[str, tuple[object, str]]:
    import tomllib  # here: only with a file

    try:
        tree = tomllib.loads(config.read_text(encoding="utf-8"))
    except (OSError, tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsError(f"cannot read settings file {config}: {error}") from None
    given: dict[str, tuple[object, str]] = {}
    for section, content in tree.items():
        if not isinstance(content, dict):
            raise SettingsError(f"unknown setting {section} ({config}); settings are in sections")
        for name, value in content.items():
            given[f"{section}.{name}"] = (value, str(config))
    return given
