"""`svcd why` as a command, against a daemon with the embedded cloud."""

from __future__ import annotations

from tests.support.live import Tenant
from tests.support.processes import DaemonCase, Ended, run


class WhyTests(DaemonCase):
    async def why(self, *arguments: str, **environment: str) -> Ended:
        return await run("svcd", "why", *arguments, environment=environment)

    async def test_cluster_and_what_cannot_be_told(self) -> None:
        """By id and by name while the daemon is up; 1 for what is not there, 2 for wrong usage."""
        daemon = self.daemon()
        endpoints = await daemon.start()
        place = f"server.state_dir={daemon.state}"
        tenant = Tenant(endpoints)
        cluster_id = await tenant.new_cluster("told", 1)
        under_way = await self.why(cluster_id, "--api", endpoints["api"], "--tenant", "demo")
        self.assertEqual((under_way.code, under_way.err), (0, ""))
        self.assertIn(f"cluster told ({cluster_id}): ", under_way.out)
        await tenant.until_active(cluster_id)
        told = await self.why("told", "--set", place)
        self.assertEqual((told.code, told.err), (0, ""))
        self.assertIn(f"cluster told ({cluster_id}): Active", told.out)
        self.assertIn("done log in told-master-001", told.out)
        self.assertIn("request: create with fake 0.1: master 1, worker 1, ", told.out)

        absent = await self.why("nothing", "--set", place)
        self.assertEqual((absent.code, absent.out), (3, ""))
        self.assertEqual(
            absent.err,
            "svcd why: project demo has no cluster and no job execution 'nothing'; "
            "svcd keeps no history of deleted ones\n",
        )
        wrong = await self.why("--set", place)
        self.assertEqual(wrong.code, 2)
        await daemon.stop()
        gone = await self.why("told", "--set", place)
        self.assertEqual(gone.code, 5)
        self.assertRegex(gone.err, r"^svcd why: no daemon found: .* --api URL\n$")
        refused = await self.why("told", "--api", endpoints["api"], "--tenant", "demo")
        self.assertEqual(refused.code, 5)
        self.assertIn("cannot be reached", refused.err)

    async def test_login_as_the_openstack_command_does(self) -> None:
        """With tokens: without one 401 is told, with the variables it is let in."""
        daemon = self.daemon(auth__mode="keystone")
        endpoints = await daemon.start()
        api = ("--api", endpoints["api"])
        user = {
            "OS_AUTH_URL": endpoints["identity"],
            "OS_USERNAME": "alice",
            "OS_PASSWORD": daemon.password("alice"),
            "OS_PROJECT_NAME": "alpha",
        }
        let_in = await self.why("nothing", *api, **user)
        self.assertEqual(let_in.code, 3)
        self.assertIn("project alpha has no cluster", let_in.err)
        refused = await self.why("nothing", *api, "--tenant", "alpha")
        self.assertEqual(refused.code, 4)
        self.assertIn("the daemon accepts only requests with a login; set OS_T", refused.err)

    async def test_code(self) -> None:
        """Explained without a daemon."""
        told = await self.why("QUOTA")
        self.assertEqual((told.code, told.err), (0, ""))
        self.assertTrue(told.out.startswith("QUOTA: of a cluster\n"), told.out)
