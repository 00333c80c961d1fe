"""`svcd doctor` for an OpenStack cloud: checks svcd's user, the services, a user.

It uses the daemon's own clients with the user of the settings. With a user's login it also checks
the needs of that user's clusters. It creates only a trust and an application credential of that
user, and removes them again.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from ipaddress import ip_network
from typing import Any, Final

from attrs import field, frozen
from twisted.internet.defer import succeed
from twisted.internet.interfaces import IReactorTime
from twisted.web.iweb import IAgent

from svcd.cli import own_reactor
from svcd.cli.door import has_login
from svcd.cli.exits import CommandError
from svcd.cli.finding import Finding, Scene, fail, ok, warn
from svcd.cli.http import Http
from svcd.cli.openings import LEAST_PREFIX
from svcd.cli.tenant_doctor import Tenant, said
from svcd.clients.application_credentials import UserCredentials
from svcd.clients.cloud import TenantCloud, cloud_error
from svcd.clients.compute import Compute
from svcd.clients.http import HttpClient
from svcd.clients.identity import Keystone, Scope
from svcd.clients.rest import Rest
from svcd.clients.sessions import CallerSession, own_session
from svcd.clients.tokens import Token
from svcd.model.secret import Secret
from svcd.ports.cloud import CloudError
from svcd.ports.faults import Fault, PortError
from svcd.provisioning.distributions.registry import DistributionError, Distributions
from svcd.settings import CloudSettings

_VALIDATORS: Final = ("service", "admin")
"""Roles that usually have the right to validate tokens of users."""
_SERVICES: Final = (
    ("compute", ("compute",), True, "", ""),
    ("image", ("image",), True, "/v2", "v2"),
    ("network", ("network",), True, "/v2.0", "v2"),
    ("volume", ("volumev3", "block-storage", "volume"), False, "/v3", "v3"),
    ("object-store", ("object-store",), False, "", ""),
)
"""Name, types in the catalog, whether all clusters need it; path and id of the version."""
_NO_USER: Final = warn(
    "user",
    "not checked",
    "give --token, OS_TOKEN or the OS_… variables of the openstack command to check the needs of"
    " that user's clusters",
)
_PASSWORDS: Final = warn(
    "passwords of jobs",
    "jobs get the passwords of their data sources, which stay in HDFS and in Oozie's records"
    " (cloud.job_credentials=password)",
    "set cloud.job_credentials=application, unless the cloud has none",
)


@frozen
class CloudUser:
    """A user of the cloud: a token, else the variables of the `openstack` command for a login."""

    token: str = field(default="", repr=False)
    variables: Mapping[str, str] = field(factory=dict, repr=False)


def login(token: str, environment: Mapping[str, str]) -> CloudUser | None:
    """The user that `--token` or the variables of the `openstack` command name, if any."""
    variables = {name: value for name, value in environment.items() if name.startswith("OS_")}
    token = token or variables.get("OS_TOKEN", "")
    return CloudUser(token, variables) if token or has_login(variables) else None


def examine_cloud(scene: Scene) -> Sequence[Finding]:
    """All findings about an OpenStack cloud."""
    settings = scene.settings
    if settings.cloud.kind == "embedded":
        return []
    try:
        offered = Distributions(settings.plugins.enabled).all()
    except DistributionError:
        return []  # the check of the plug-ins reports it
    tags = {
        f"{plugin.name} {version}": tuple(plugin.required_image_tags(version))
        for plugin in offered
        for version in plugin.versions
    }

    logins = Http(scene.user.variables.get("OS_CACERT", "") if scene.user else "")

    async def work(reactor: Any, agent: IAgent) -> Sequence[Finding]:
        doctor = CloudDoctor(agent, reactor, settings.cloud, logins)
        return await doctor.examine(scene.user, tags)

    return own_reactor.run(work)


class CloudDoctor:
    """The checks of one cloud. logins: where the login of the user is sent; it blocks."""

    def __init__(
        self, agent: IAgent, clock: IReactorTime, settings: CloudSettings, logins: Http
    ) -> None:
        self._settings = settings
        self._logins = logins
        self._http = HttpClient(agent, clock, cloud_error, timeout_s=settings.timeout_s)
        self._keystone = Keystone(self._http, settings, clock)

    async def examine(
        self, user: CloudUser | None, tags: Mapping[str, Iterable[str]]
    ) -> Sequence[Finding]:
        """The findings, the most important first. A fault skips the checks that depend on it.

        tags: required image tags by distribution.
        """
        findings = [_firewall(self._settings), await self._version()]
        if not findings[-1].good:
            return findings
        try:
            own = await self._keystone.own(Scope())
        except CloudError as error:
            return [*findings, fail("svcd's user", said(error), self._login_remedy(error))]
        findings += self._own(own)
        services = [await self._service(own, *service) for service in _SERVICES]
        findings += services
        if user is None:
            findings += [self._roles(own), _NO_USER]
        else:
            token, found = await self._user(user, own)
            findings += found
            if token is not None and all(service.good or service.warning for service in services):
                findings += await self._tenant(token).examine(tags)
        if self._settings.job_credentials == "password":
            findings.append(_PASSWORDS)
        return findings

    def _tenant(self, token: Token) -> Tenant:
        session = CallerSession(self._keystone, token.text, token.project_id)
        cloud = TenantCloud(self._http, session, token.project_id, {})
        current = partial(succeed, token)
        credentials = UserCredentials(self._http, self._keystone, session, current)
        return Tenant(self._keystone, cloud, token, credentials, self._settings)

    # ---- identity ----

    async def _version(self) -> Finding:
        what, url = "identity service", self._keystone.base
        try:
            answer = await self._http.request("GET", url, service="identity")
        except PortError as error:
            return fail(what, f"{url} cannot be reached: {error.text.partition(': ')[2]}")
        remedy = "cloud.auth_url must be the URL of Keystone v3, such as https://host:5000/v3"
        if answer.status >= 300:
            return fail(what, f"{url} answered {answer.status}", remedy)
        try:
            version = str(answer.json()["version"]["id"])
        except (ValueError, KeyError, TypeError):
            return fail(what, f"the answer of {url} is not that of Keystone v3", remedy)
        if not version.startswith("v3"):
            return fail(what, f"{url} speaks {version}", remedy)
        return ok(what, f"{url} speaks {version}")

    def _login_remedy(self, error: CloudError) -> str:
        settings = self._settings
        if error.kind is not Fault.UNAUTHORIZED or not settings.username:
            return ""
        return (
            "check SVCD_CLOUD_PASSWORD, cloud.username and cloud.project, and whether the user has"
            f" a role: openstack role add --user {settings.username} --project"
            f" {settings.project} service"
        )

    def _own(self, own: Token) -> Iterator[Finding]:
        roles = ", ".join(sorted(own.roles)) or "none"
        yield ok("svcd's user", f"{own.user_name} can log in, roles: {roles}")
        if self._settings.application_credential_id:
            yield warn(
                "trusts",
                "an application credential cannot use trusts: svcd can work on a cluster only"
                " until the token of its user expires",
                "set cloud.username and SVCD_CLOUD_PASSWORD instead",
            )

    def _roles(self, own: Token) -> Finding:
        """Judge by the roles whether svcd's user may validate tokens: there is no token to try."""
        if _may_validate(own):
            return ok("tokens of users", "svcd's user has a role that may validate them")
        text = f"svcd's user has neither the role {' nor '.join(_VALIDATORS)}"
        return fail("tokens of users", text, self._grant(own))

    def _grant(self, own: Token) -> str:
        project = self._settings.project or own.project_id
        return f"openstack role add --user {own.user_name} --project {project} service"

    async def _user(self, user: CloudUser, own: Token) -> tuple[Token | None, Sequence[Finding]]:
        """The user's token after validation by svcd's user; None when it is not usable."""
        what, text = "tokens of users", user.token
        if not text:
            from svcd.cli.login import Login

            try:
                text = Login(self._keystone.base, user.variables, self._logins).token
            except CommandError as error:
                return None, [fail("user", str(error))]
        try:
            token = await self._keystone.validate(Secret(text))
        except CloudError as error:
            remedy = "" if _may_validate(own) else self._grant(own)
            return None, [fail(what, said(error), remedy)]
        good = ok(what, "svcd's user may validate them")
        if token is None:
            return None, [good, fail("user", "the token is not valid", "openstack token issue")]
        if not token.project_id:
            text_, remedy = f"the token of {token.user_name} has no project", "openstack"
            return None, [good, fail("user", text_, f"{remedy} --os-project-name NAME token issue")]
        roles = ", ".join(sorted(token.roles))
        text_ = f"{token.user_name} in project {token.project_id}, roles: {roles}"
        return token, [good, ok("user", text_)]

    # ---- the other services ----

    async def _service(
        self, own: Token, name: str, types: Sequence[str], needed: bool, root: str, version: str
    ) -> Finding:
        bad = fail if needed else warn
        try:
            url = self._keystone.pick(own.catalog, types)
        except CloudError as error:
            return bad(name, said(error), _elsewhere(own, types))
        try:
            if name == "compute":
                spoken = await self._compute()
            elif name == "object-store":
                spoken = await self._object_store(url)
            else:
                below = rf"{re.escape(root)}(/[^/]*)?\Z"  # the version, of volumes with the project
                spoken = await self._listed(name, re.sub(below, "", url) + "/", version)
        except CloudError as error:
            refused = error.kind is Fault.REFUSED
            remedy = "use another release of the service, or of svcd" if refused else ""
            return bad(name, said(error), remedy)
        return ok(name, f"{url} {spoken}")

    async def _compute(self) -> str:
        session = own_session(self._keystone, Scope())
        compute = Compute(Rest(self._http, session, "compute", ("compute",)), {})
        (_, low), (_, high) = await compute.spoken()
        return f"speaks 2.{low} to 2.{high}, svcd uses 2.{(await compute.version())[1]}"

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


def _may_validate(own: Token) -> bool:
    return bool(set(_VALIDATORS) & set(own.roles))


def _firewall(settings: CloudSettings) -> Finding:
    """Whether the settings open Hadoop's pages to everybody."""
    cidrs, what = settings.web_cidrs, "cloud.web_cidrs"
    public = [cidr for cidr in cidrs if ip_network(cidr).prefixlen < LEAST_PREFIX]
    if not cidrs:
        return ok(what, "none: users reach Hadoop's pages with svcd tunnel")
    if not public:
        return ok(what, f"{', '.join(cidrs)} may run programs on all clusters")
    if settings.allow_public_web:
        text = f"{', '.join(public)}: everybody may run programs on all clusters"
        return warn(what, text, "name the networks of users, unset cloud.allow_public_web")
    return fail(
        what,
        f"{', '.join(public)} opens Hadoop's pages to everybody, who may then run programs on all"
        " clusters",
        "name the networks of users, or accept it: cloud.allow_public_web=true",
    )


def _elsewhere(own: Token, types: Iterable[str]) -> str:
    """The remedy when the catalog has no endpoint of the configured region and interface."""
    have = [endpoint for endpoint in own.catalog if endpoint.type in types]
    if not have:
        return "install the service; without it clusters have no volumes or no object store"
    regions = ", ".join(sorted({endpoint.region for endpoint in have}))
    interfaces = ", ".join(sorted({endpoint.interface for endpoint in have}))
    return (
        "correct cloud.region and cloud.interface: the catalog has the regions"
        f" {regions} and the interfaces {interfaces}"
    )
