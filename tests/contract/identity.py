"""Keystone: tokens of callers, trusts, scopes."""

from __future__ import annotations

import uuid

from attrs import evolve

from svcd.clients.cloud import OpenStack
from svcd.clients.identity import Keystone, Scope
from svcd.errors import Unauthorized
from svcd.model import ownership_tags
from svcd.model.ids import TenantId
from svcd.model.job import Credentials
from svcd.model.job_credential import ApplicationCredential
from svcd.model.requests import PasswordLogin
from svcd.model.secret import Secret
from svcd.model.trust import GivenTrust
from svcd.ports.cloud import Access
from svcd.ports.faults import Fault
from svcd.settings import CloudSettings
from tests.contract.cloud import CloudCase

_ADDRESS = "192.0.2.1"


def mark() -> str:
    """One that no trust has had."""
    return ownership_tags.trust_end(uuid.uuid4().hex)


class IdentityContract(CloudCase):
    async def check_a_good_token_names_its_caller(self) -> None:
        """User, project and roles come from the identity service."""
        caller = await self.identity.authenticate(self.token)
        self.assertEqual(caller.tenant_id, self.tenant)
        self.assertEqual(caller.user_name, self.user)
        self.assertIn("member", caller.roles)
        self.assertEqual(caller.is_trust, False)

    async def check_a_garbled_token_is_unauthorized(self) -> None:
        """The 404 of the subject token is the caller's 401."""
        try:
            await self.identity.authenticate(Secret("garbled"))
        except Unauthorized:
            return
        raise AssertionError("was let in")

    async def check_a_password_gives_a_token_for_a_project(self) -> None:
        """First one without a project, and the projects to choose from."""
        login = PasswordLogin(user=self.user, domain="Default", password=self.password)
        found = await self.identity.log_in(login, _ADDRESS)
        self.assertIn(self.tenant, [each.id for each in found.projects])
        self.assertEqual((found.user_name, found.project), (self.user, None))
        chosen = await self.identity.log_in(evolve(login, project=self.tenant), _ADDRESS)
        caller = await self.identity.authenticate(chosen.token)
        self.assertEqual((caller.tenant_id, caller.user_name), (self.tenant, self.user))
        await self.identity.authenticate(found.token)

    async def check_a_log_out_ends_one_token(self) -> None:
        """Also a token of no project; another login of the user stays valid."""
        login = PasswordLogin(user=self.user, domain="Default", password=self.password)
        other = await self.identity.log_in(evolve(login, project=self.tenant), _ADDRESS)
        for ended in (login, evolve(login, project=self.tenant)):
            token = (await self.identity.log_in(ended, _ADDRESS)).token
            await self.identity.log_out(token)
            await self.identity.log_out(token)
            try:
                await self.identity.authenticate(token)
            except Unauthorized:
                continue
            raise AssertionError("was let in")
        await self.identity.authenticate(other.token)

    async def check_a_wrong_password_is_unauthorized(self) -> None:
        """And so is an unknown domain."""
        right = PasswordLogin(user=self.user, domain="Default", password=self.password)
        for login in (evolve(right, password="wrong"), evolve(right, domain="nowhere")):
            try:
                await self.identity.log_in(login, _ADDRESS)
            except Unauthorized:
                continue
            raise AssertionError("was let in")

    async def check_a_trust_opens_the_tenant_and_ends_with_its_deletion(self) -> None:
        """Scoping to a trust that is gone is UNAUTHORIZED; deleting it again is no fault."""
        caller = await self.identity.authenticate(self.token)
        trust_id = await self.cloud.create_trust(caller, mark())
        assert trust_id is not None
        access = Access(tenant_id=self.tenant, trust_id=trust_id)
        self.assertTrue(await self.cloud.session(access).flavors())
        await self.cloud.delete_trust(trust_id)
        await self.cloud.delete_trust(trust_id)
        error = await self.refused(self.cloud.session(access).flavors())
        self.assertEqual(error.kind, Fault.UNAUTHORIZED)

    async def check_a_trust_of_a_trust_is_forbidden(self) -> None:
        """Also when the service is asked, not only our own check."""
        caller = await self.identity.authenticate(self.token)
        error = await self.refused(self.cloud.create_trust(evolve(caller, is_trust=True), mark()))
        self.assertEqual(error.kind, Fault.FORBIDDEN)

    async def check_a_trust_is_found_by_its_mark(self) -> None:
        """By svcd's user, to whom it was given; not after it was given back."""
        caller = await self.identity.authenticate(self.token)
        mine, other = mark(), mark()
        trust_id = await self.cloud.create_trust(caller, mine)
        assert trust_id is not None
        self.assertEqual(
            await self.cloud.given_trusts({mine, other}),
            [
                GivenTrust(
                    id=trust_id, tenant_id=self.tenant, trustor_id=caller.user_id, expires_at=mine
                )
            ],
        )
        await self.cloud.delete_trust(trust_id)
        self.assertEqual(await self.cloud.given_trusts({mine, other}), [])

    async def check_a_mark_is_given_once(self) -> None:
        """BUSY the second time; so it is known whose trust has it."""
        caller = await self.identity.authenticate(self.token)
        same = mark()
        trust_id = await self.cloud.create_trust(caller, same)
        assert trust_id is not None
        error = await self.refused(self.cloud.create_trust(caller, same))
        self.assertEqual(error.kind, Fault.BUSY)
        await self.cloud.delete_trust(trust_id)

    async def check_without_a_token_there_is_no_trust(self) -> None:
        """`auth.mode=none`."""
        caller = await self.identity.authenticate(self.token)
        self.assertEqual(await self.cloud.create_trust(evolve(caller, token=None), mark()), None)

    async def check_a_bad_token_is_unauthorized_at_every_service(self) -> None:
        """The 401 is believed, because Keystone says so too."""
        access = Access(tenant_id=TenantId(self.tenant), token=Secret("garbled"))
        session = self.cloud.session(access)
        for work in (session.flavors(), session.images(), session.networks()):
            self.assertEqual((await self.refused(work)).kind, Fault.UNAUTHORIZED)

    async def check_the_service_user_gets_in(self) -> None:
        """`ready` says nothing."""
        self.assertEqual(await self.cloud.ready(), "")

    def as_credential(self, made: ApplicationCredential) -> OpenStack:
        """A client that logs in with it."""
        return OpenStack(self.agent, self.clock, self.settings_of(made))

    def settings_of(self, made: ApplicationCredential) -> CloudSettings:
        """Only the application credential, and where Keystone is."""
        return CloudSettings(
            auth_url=self.auth_url,
            application_credential_id=made.id,
            application_credential_secret=made.secret.reveal(),
        )

    async def check_an_application_credential_logs_in_until_it_is_deleted(self) -> None:
        """It has its project without a scope; deleting it again is no fault."""
        mine = Credentials(user=self.user, password=self.password)
        name, end = self.unique("svcd"), self.clock.seconds() + 3600.0
        made = await self.cloud.create_application_credential(self.tenant, mine, name, end)
        client = self.as_credential(made)
        self.assertEqual(await client.ready(), "")
        gone = self.cloud.delete_application_credential
        self.assertEqual(await gone(self.tenant, mine, name, made.id), True)
        self.assertEqual(await gone(self.tenant, mine, name, made.id), True)
        self.assertEqual(await gone(self.tenant, mine, name, ""), False)
        again = self.as_credential(made)
        self.assertIn("was answered 404", await again.ready())

    async def check_an_application_credential_is_found_by_its_name(self) -> None:
        """One of the same name takes the place of one whose answer was lost."""
        mine = Credentials(user=self.user, password=self.password)
        name, end = self.unique("svcd"), self.clock.seconds() + 3600.0
        lost = await self.cloud.create_application_credential(self.tenant, mine, name, end)
        made = await self.cloud.create_application_credential(self.tenant, mine, name, end)
        self.assertEqual(lost.id == made.id, False)
        for each, word in ((lost, "was answered 404"), (made, "")):
            client = self.as_credential(each)
            self.assertIn(word, await client.ready())
        gone = self.cloud.delete_application_credential
        self.assertEqual(await gone(self.tenant, mine, name, ""), True)
        self.assertEqual(await gone(self.tenant, mine, name, ""), False)

    async def check_an_application_credential_ends(self) -> None:
        """Keystone then refuses it with a 401, and still lists it."""
        mine = Credentials(user=self.user, password=self.password)
        name, end = self.unique("svcd"), self.clock.seconds() + 4.0
        made = await self.cloud.create_application_credential(self.tenant, mine, name, end)
        await self.pause(5.0)
        client = self.as_credential(made)
        self.assertIn("was answered 401", await client.ready())
        gone = self.cloud.delete_application_credential
        self.assertEqual(await gone(self.tenant, mine, name, ""), True)

    async def check_an_application_credential_makes_no_other(self) -> None:
        """Nor can it be deleted with its own token."""
        mine = Credentials(user=self.user, password=self.password)
        name = self.unique("svcd")
        end = self.clock.seconds() + 3600.0
        made = await self.cloud.create_application_credential(self.tenant, mine, name, end)
        keystone = Keystone(self.http, self.settings_of(made), self.clock)
        token = await keystone.own(Scope())
        base = f"{keystone.base}/users/{token.user_id}/application_credentials"
        headers = {"X-Auth-Token": token.text.reveal(), "Content-Type": "application/json"}
        body = b'{"application_credential": {"name": "another"}}'
        answer = await self.http.request("POST", base, headers=headers, body=body)
        self.assertEqual(answer.status, 403)
        answer = await self.http.request("DELETE", f"{base}/{made.id}", headers=headers)
        self.assertEqual(answer.status, 403)
        await self.cloud.delete_application_credential(self.tenant, mine, name, made.id)

    async def check_a_refused_account_gets_no_application_credential(self) -> None:
        """Nor can svcd delete one of it."""
        wrong = Credentials(user=self.user, password="wrong")
        for work in (
            self.cloud.create_application_credential(
                self.tenant, wrong, self.unique("svcd"), self.clock.seconds() + 60.0
            ),
            self.cloud.delete_application_credential(self.tenant, wrong, "x", "y"),
        ):
            self.assertEqual((await self.refused(work)).kind, Fault.UNAUTHORIZED)

    async def check_an_application_credential_needs_a_role(self) -> None:
        """FORBIDDEN, with the setting that names the roles."""
        mine = Credentials(user=self.user, password=self.password)
        other = OpenStack(
            self.agent,
            self.clock,
            CloudSettings(auth_url=self.auth_url, job_roles=("no-such-role",)),
        )
        error = await self.refused(
            other.create_application_credential(
                self.tenant, mine, self.unique("svcd"), self.clock.seconds() + 60.0
            )
        )
        self.assertEqual(error.kind, Fault.FORBIDDEN)
        self.assertIn("cloud.job_roles", error.text)
