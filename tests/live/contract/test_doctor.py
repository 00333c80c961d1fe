"""`svcd doctor` before the real OpenStack of the environment (real_openstack)."""

from __future__ import annotations

from svcd.cli.cloud_doctor import CloudDoctor, CloudUser
from svcd.cli.finding import Finding
from svcd.cli.http import Http
from svcd.settings import CloudSettings
from tests.contract.cloud import CloudCase
from tests.live.contract.test_cloud import LiveCase
from tests.support.real_openstack import given


class LiveDoctor(LiveCase, CloudCase):
    async def found(self, user: CloudUser | None, **settings: str) -> dict[str, Finding]:
        """By what was looked at."""
        of = {
            "auth_url": given("AUTH_URL"),
            "username": given("SERVICE_USERNAME", "svcd"),
            "password": given("SERVICE_PASSWORD", self.password),
            "project": given("SERVICE_PROJECT", "service"),
            "region": given("REGION"),
            **settings,
        }
        doctor = CloudDoctor(self.agent, self.clock, CloudSettings(**of, timeout_s=120.0), Http())
        return {f.what: f for f in await doctor.examine(user, {})}

    async def check_a_user_for_whom_all_is_well(self) -> None:
        """Nothing fails."""
        user = {"username": self.user, "password": self.password, "project": given("PROJECT")}
        found = await self.found(_variables(user))
        self.assertEqual([f for f in found.values() if f.word == "fail"], [])
        self.assertEqual(found["trust"].text, "can be created for svcd's user and deleted again")
        self.assertTrue(found["compute"].text.endswith("svcd uses 2.79"), found["compute"].text)
        self.assertIn(given("KEYPAIR"), found["key pairs"].text)
        self.assertTrue(found["quota"].text.startswith("left: servers "), found["quota"].text)

    async def check_a_wrong_password(self) -> None:
        """The only thing that fails."""
        found = await self.found(None, password="wrong")
        self.assertEqual(list(found), ["cloud.web_cidrs", "identity service", "svcd's user"])
        self.assertIn("was answered 401", found["svcd's user"].text)

    async def check_a_wrong_region(self) -> None:
        """Those that there are."""
        found = await self.found(None, region="Mars")
        self.assertIn("no public endpoint of compute in region Mars", found["compute"].text)
        self.assertIn("the catalog has the regions", found["compute"].remedy)

    async def check_a_missing_role(self) -> None:
        """An ordinary user in svcd's place may not look at the tokens of others."""
        mine = {"username": self.user, "password": self.password, "project": given("PROJECT")}
        found = await self.found(None, **mine)
        self.assertEqual(found["tokens of users"].word, "fail")
        service = {
            "username": given("SERVICE_USERNAME", "svcd"),
            "password": given("SERVICE_PASSWORD", self.password),
            "project": given("SERVICE_PROJECT", "service"),
        }
        found = await self.found(_variables(service), **mine)
        self.assertIn("was answered 403", found["tokens of users"].text)


def _variables(user: dict[str, str]) -> CloudUser:
    """The user with the variables of the `openstack` command."""
    names = {"username": "USERNAME", "password": "PASSWORD", "project": "PROJECT_NAME"}
    return CloudUser(variables={f"OS_{names[key]}": value for key, value in user.items()})
