"""`svcd doctor` for an OpenStack cloud: checks svcd's user, the services, a user.

It uses the daemon's own clients with the user of the settings. With a user's login it also checks
the needs of that user's clusters. It creates only a trust and an application credential of that
user, and removes them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import partial
from ipaddress import ip_network
from typing import Any, Final

from attrs import evolve, field, frozen
from twisted.internet.defer import succeed
from twisted.internet.interfaces import IReactorTime
from twisted.web.iweb import IAgent

from svcd.cli import own_reactor
from svcd.cli.finding import Finding, fail, ok, warn
from svcd.cli.openings import LEAST_PREFIX
from svcd.cli.tenant_doctor import Tenant
from svcd.clients.application_credentials import UserCredentials
from svcd.clients.cloud import TenantCloud, cloud_error
from svcd.clients.compute import Compute
from svcd.clients.http import HttpClient
from svcd.clients.identity import Keystone, Scope, Token
from svcd.clients.rest import Rest
from svcd.clients.sessions import CallerSession, own_session
from svcd.model.redaction import url_repr
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault, PortError
from svcd.settings import CloudSettings

_VALIDATORS: Final = ("service", "admin")
"""Roles that usually have the right to validate tokens of users."""


@frozen(kw_only=True)
class CloudUser:
    """A user of the cloud: a token, or the login for a token. project: name, or id with `by_id`.

    auth_url: the identity service that the user named for it; "" without one.
    """

    token: str = field(default="", repr=False)
    username: str = ""
    password: str = field(default="", repr=False)
    project: str = ""
    by_id: bool = False
    user_domain: str = "default"
    project_domain: str = "default"
    application_credential_id: str = field(default="", repr=False)
    application_credential_secret: str = field(default="", repr=False)
    auth_url: str = field(default="", repr=url_repr)


def login(token: str, environment: Mapping[str, str]) -> CloudUser | None:
    """The user that `--token` or the variables of the `openstack` command name, if any."""
    get = environment.get
    auth_url = get("OS_AUTH_URL", "")
    token = token or get("OS_TOKEN", "")
    if token:
        return CloudUser(token=token, auth_url=auth_url)
    if get("OS_APPLICATION_CREDENTIAL_ID"):
        return CloudUser(
            application_credential_id=get("OS_APPLICATION_CREDENTIAL_ID", ""),
            application_credential_secret=get("OS_APPLICATION_CREDENTIAL_SECRET", ""),
            auth_url=auth_url,
        )
    if not (get("OS_USERNAME") and get("OS_PASSWORD")):
        return None
    return CloudUser(
        username=get("OS_USERNAME", ""),
        password=get("OS_PASSWORD", ""),
        project=get("OS_PROJECT_ID") or get("OS_PROJECT_NAME", ""),
        by_id=bool(get("OS_PROJECT_ID")),
        user_domain=get("OS_USER_DOMAIN_ID", "default"),
        project_domain=get("OS_PROJECT_DOMAIN_ID", "default"),
        auth_url=auth_url,
    )


def examine_cloud(
    settings: CloudSettings, user: CloudUser | None, tags: Mapping[str, Iterable[str]]
) -> list[Finding]:
    """All findings; runs a reactor of its own. tags: required image tags by distribution."""

    async def work(reactor: Any, agent: IAgent) -> list[Finding]:
        return await CloudDoctor(agent, reactor, settings).examine(user, tags)

    return own_reactor.run(work)


class CloudDoctor:
    """The checks of one cloud."""

    def __init__(self, agent: IAgent, clock: IReactorTime, settings: CloudSettings) -> None:
        self._clock = clock
        self._settings = settings
        self._http = HttpClient(agent, clock, cloud_error, timeout_s=settings.timeout_s)
        self._keystone = Keystone(self._http, settings, clock)
        self.findings: list[Finding] = []

    async def examine(
        self, user: CloudUser | None, tags: Mapping[str, Iterable[str]]
    ) -> list[Finding]:
        """The findings, the most important first. A fault skips the checks that depend on it."""
        self._firewall()
        if await self._version() and (own := await self._own()) is not None:
            usable = await self._services(own)
            if user is None:
                self._roles(own)
                self._add(
                    warn(
                        "user",
                        "not checked",
                        "give --token, OS_TOKEN or the OS_… variables of the openstack command"
                        " to check the needs of that user's clusters",
                    )
                )
            elif (token := await self._user(user, own)) is not None and usable:
                session = CallerSession(self._keystone, token.text, token.project_id)
                cloud = TenantCloud(self._http, session, token.project_id, {})
                rest = Rest(self._http, session, "compute", ("compute",))
                current = partial(succeed, token)
                credentials = UserCredentials(self._http, self._keystone, session, current)
                tenant = Tenant(
                    self._keystone, cloud, Compute(rest, {}), token, credentials, self._settings
                )
                self.findings += await tenant.examine(tags)
            if self._settings.job_credentials == "password":
                self._add(
                    warn(
                        "passwords of jobs",
                        "jobs get the passwords of their data sources, which stay in HDFS and in"
                        " Oozie's records (cloud.job_credentials=password)",
                        "set cloud.job_credentials=application, unless the cloud has none",
                    )
                )
        return self.findings

    def _firewall(self) -> None:
        """Whether the settings open Hadoop's pages to everybody."""
        cidrs, what = self._settings.web_cidrs, "cloud.web_cidrs"
        public = [each for each in cidrs if ip_network(each).prefixlen < LEAST_PREFIX]
        if not cidrs:
            self._add(ok(what, "none: users reach Hadoop's pages with svcd tunnel"))
        elif not public:
            self._add(ok(what, f"{', '.join(cidrs)} may run programs on all clusters"))
        elif self._settings.allow_public_web:
            text = f"{', '.join(public)}: everybody may run programs on all clusters"
            self._add(warn(what, text, "name the networks of users, unset cloud.allow_public_web"))
        else:
            self._add(
                fail(
                    what,
                    f"{', '.join(public)} opens Hadoop's pages to everybody, who may then run"
                    " programs on all clusters",
                    "name the networks of users, or accept it: cloud.allow_public_web=true",
                )
            )

    def _add(self, finding: Finding) -> None:
        self.findings.append(finding)

    # ---- identity ----

    async def _version(self) -> bool:
        what, url = "identity service", self._keystone.base
        try:
            answer = await self._http.request("GET", url, service="identity")
        except PortError as error:
            why = error.text.partition(": ")[2]
            self._add(fail(what, f"{url} cannot be reached: {why}"))
            return False
        remedy = "cloud.auth_url must be the URL of Keystone v3, such as https://host:5000/v3"
        if answer.status >= 300:
            self._add(fail(what, f"{url} answered {answer.status}", remedy))
            return False
        try:
            version = str(answer.json()["version"]["id"])
        except (ValueError, KeyError, TypeError):
            self._add(fail(what, f"the answer of {url} is not that of Keystone v3", remedy))
            return False
        if not version.startswith("v3"):
            self._add(fail(what, f"{url} speaks {version}", remedy))
            return False
        self._add(ok(what, f"{url} speaks {version}"))
        return True

    async def _own(self) -> Token | None:
        s, what = self._settings, "svcd's user"
        try:
            own = await self._keystone.own(Scope())
        except CloudError as error:
            remedy = ""
            if error.kind is Fault.UNAUTHORIZED and s.username:
                remedy = (
                    "check SVCD_CLOUD_PASSWORD, cloud.username and cloud.project, and whether the"
                    f" user has a role: openstack role add --user {s.username} --project"
                    f" {s.project} service"
                )
            self._add(fail(what, _said(error), remedy))
            return None
        roles = ", ".join(sorted(own.roles)) or "none"
        self._add(ok(what, f"{own.user_name} can log in, roles: {roles}"))
        if s.application_credential_id:
            self._add(
                warn(
                    "trusts",
                    "an application credential cannot use trusts: svcd can work on a cluster only"
                    " until the token of its user expires",
                    "set cloud.username and SVCD_CLOUD_PASSWORD instead",
                )
            )
        return own

    def _roles(self, own: Token) -> None:
        """Judge by the roles whether svcd's user may validate tokens: there is no token to try."""
        if set(_VALIDATORS) & set(own.roles):
            self._add(ok("tokens of users", "svcd's user has a role that may validate them"))
            return
        self._add(
            fail(
                "tokens of users",
                f"svcd's user has neither the role {' nor '.join(_VALIDATORS)}",
                self._grant(own),
            )
        )

    def _grant(self, own: Token) -> str:
        project = self._settings.project or own.project_id
        return f"openstack role add --user {own.user_name} --project {project} service"

    async def _user(self, user: CloudUser, own: Token) -> Token | None:
        """The user's token after validation by svcd's user; None when it is not usable."""
        what = "tokens of users"
        text = Secret(user.token)
        if not user.token:
            try:
                text = (await self._issued(user)).text
            except CloudError as error:
                self._add(fail("user", _said(error)))
                return None
        try:
            token = await self._keystone.validate(text)
        except CloudError as error:
            lacks = not set(_VALIDATORS) & set(own.roles)
            self._add(fail(what, _said(error), self._grant(own) if lacks else ""))
            return None
        self._add(ok(what, "svcd's user may validate them"))
        if token is None:
            self._add(fail("user", "the token is not valid", "openstack token issue"))
            return None
        if not token.project_id:
            self._add(
                fail(
                    "user",
                    f"the token of {token.user_name} has no project",
                    "openstack --os-project-name NAME token issue",
                )
            )
            return None
        roles = ", ".join(sorted(token.roles))
        self._add(ok("user", f"{token.user_name} in project {token.project_id}, roles: {roles}"))
        return token

    async def _issued(self, user: CloudUser) -> Token:
        theirs = evolve(
            self._settings,
            username=user.username,
            password=user.password,
            project="" if user.by_id else user.project,
            user_domain=user.user_domain,
            project_domain=user.project_domain,
            application_credential_id=user.application_credential_id,
            application_credential_secret=user.application_credential_secret,
        )
        keystone = Keystone(self._http, theirs, self._clock)
        return await keystone.own(Scope(project=user.project) if user.by_id else Scope())

    # ---- the other services ----

    async def _services(self, own: Token) -> bool:
        """Check each service. Returns whether every service answers that all clusters need."""
        usable = True
        for name, types, needed, probe in (
            ("compute", ("compute",), True, self._compute),
            ("image", ("image",), True, self._image),
            ("network", ("network",), True, self._network),
            ("volume", ("volumev3", "block-storage", "volume"), False, self._volume),
            ("object-store", ("object-store",), False, self._object_store),
        ):
            bad = fail if needed else warn
            try:
                url = self._keystone.pick(own.catalog, types)
            except CloudError as error:
                self._add(bad(name, _said(error), self._elsewhere(own, types)))
                usable = usable and not needed
                continue
            try:
                self._add(ok(name, f"{url} {await probe(url)}"))
            except CloudError as error:
                refused = error.kind is Fault.REFUSED
                remedy = "use another release of the service, or of svcd" if refused else ""
                self._add(bad(name, _said(error), remedy))
                usable = usable and not needed
        return usable

    def _elsewhere(self, own: Token, types: Iterable[str]) -> str:
        """The remedy when the catalog has no endpoint of the configured region and interface."""
        have = [each for each in own.catalog if each.type in types]
        if not have:
            return "install the service; without it clusters have no volumes or no object store"
        regions = ", ".join(sorted({each.region for each in have}))
        interfaces = ", ".join(sorted({each.interface for each in have}))
        return (
            "correct cloud.region and cloud.interface: the catalog has the regions"
            f" {regions} and the interfaces {interfaces}"
        )

    async def _compute(self, url: str) -> str:
        session = own_session(self._keystone, Scope())
        rest = Rest(self._http, session, "compute", ("compute",))
        compute = Compute(rest, {})
        (_, low), (_, high) = await compute.spoken()
        return f"speaks 2.{low} to 2.{high}, svcd uses 2.{(await compute.version())[1]}"

    async def _image(self, url: str) -> str:
        return await self._listed("image", url.removesuffix("/v2") + "/", "v2")

    async def _network(self, url: str) -> str:
        return await self._listed("network", url.removesuffix("/v2.0") + "/", "v2")

    async def _volume(self, url: str) -> str:
        return await self._listed("volume", url.partition("/v3")[0] + "/", "v3")

    async def _listed(self, service: str, url: str, wanted: str) -> str:
        """The newest version in the version document whose id begins with `wanted`."""
        answer = await self._http.request("GET", url, service=service)
        if answer.status >= 400:
            text = f"GET {url} was answered {answer.status}"
            raise CloudError(service, Fault.SERVER_ERROR, text)
        try:
            rows = [row for row in answer.json()["versions"] if row["id"].startswith(wanted)]
            newest = [str(row.get("version") or row["id"]) for row in rows]
        except (ValueError, KeyError, TypeError, AttributeError):
            text = f"GET {url} was answered without versions"
            raise CloudError(service, Fault.SERVER_ERROR, text) from None
        if not newest:
            raise CloudError(service, Fault.REFUSED, f"{url} does not speak {wanted}")
        return f"speaks {newest[0]}"

    async def _object_store(self, url: str) -> str:
        """Accept any answer below 500: svcd's own user may have no rights in the object store."""
        answer = await self._http.request("GET", url, service="object-store")
        if answer.status >= 500:
            text = f"GET {url} was answered {answer.status}"
            raise CloudError("object-store", Fault.SERVER_ERROR, text)
        return "answers"


def _said(error: PortError) -> str:
    """The text of the error without the name of the service at its begin."""
    return error.text.partition(": ")[2] or error.text
