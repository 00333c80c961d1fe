"""`svcd image bake` on the embedded cloud. Real: tests/live/openstack/test_image_bake.

The machines of the embedded cloud are folders of this host, so a bake must refuse them: that is as
far as it comes here, by the real SSH. Needed: the software tree (SVCD_VANILLA_PREFIX, or that of
the clone).
"""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

from svcd.provisioning.decide.facts import SSH_PORT
from svcd.provisioning.distributions.vanilla.image.build import versions
from tests.support.processes import DaemonCase, Program, run, send, until
from tests.support.sample import SLOW

ROOT = Path(__file__).parents[3]
TREE = Path(
    os.environ.get("SVCD_VANILLA_PREFIX")
    or ROOT / "state" / "image" / f"vanilla-{versions()['hadoop']}"
)
BAKE = ("svcd", "image", "bake", "vanilla", "--base", "plain", "--tree", str(TREE))

skip = SLOW or (None if (TREE / "image.json").is_file() else f"there is no software in {TREE}")


class EmbeddedTests(DaemonCase):
    timeout = 300

    async def begin(self) -> None:
        daemon = self.daemon()
        self.known: dict[str, Any] = dict(await daemon.start())
        self.place = ("--state-dir", str(daemon.state))
        user = {"name": "demo", "domain": {"id": "default"}, "password": self.known["password"]}
        identity = {"methods": ["password"], "password": {"user": user}}
        auth = {"identity": identity, "scope": {"project": {"id": "demo"}}}
        reply = await send("POST", f"{self.known['identity']}/auth/tokens", {"auth": auth})
        self.token = reply.headers["x-subject-token"]

    async def left(self) -> dict[str, list[str]]:
        """The names of what a bake makes."""
        found = {}
        for kind, url in (
            ("servers", f"{self.known['compute']}/servers"),
            ("keypairs", f"{self.known['compute']}/os-keypairs"),
            ("security_groups", f"{self.known['network']}/v2.0/security-groups"),
            ("floatingips", f"{self.known['network']}/v2.0/floatingips"),
            ("images", f"{self.known['image']}/v2/images"),
        ):
            reply = await send("GET", url, headers={"X-Auth-Token": self.token})
            rows = [each.get("keypair", each) for each in reply.json[kind]]
            names = [str(each.get("name") or each["id"]) for each in rows]
            found[kind] = sorted(name for name in names if name != "default")
        return found

    async def test_a_machine_that_is_a_folder_is_refused(self) -> None:
        """After the login; nothing is left, and the commands of later steps never run."""
        await self.begin()
        before = await self.left()
        said = await run(*BAKE, "--flavor", "m1.small", "--name", "mine", *self.place, limit_s=120)
        self.assertEqual((said.code, said.out), (1, ""), said)
        self.assertIn("booting a server from plain (svcd-bake-mine-", said.err)
        text = (
            "preparing the server failed: this is a machine of the embedded cloud, whose clusters"
        )
        self.assertIn(f"svcd image bake: {text} need no image\n", said.err)
        self.assertEqual(await self.left(), before)

    async def test_ctrl_c(self) -> None:
        """It removes what it has made, and ends with 130.

        Nothing listens at the SSH port that the base image names, so the bake waits for a login.
        """
        await self.begin()
        (image_id,) = (image["id"] for image in self.known["images"] if image["name"] == "plain")
        reply = await send(
            "PATCH",
            f"{self.known['image']}/v2/images/{image_id}",
            data=json.dumps([{"op": "add", "path": f"/{SSH_PORT}", "value": "9"}]).encode(),
            headers={
                "X-Auth-Token": self.token,
                "Content-Type": "application/openstack-images-v2.1-json-patch",
            },
        )
        self.assertEqual(reply.status, 200, reply.body)
        before = await self.left()
        path = "--flavor", "m1.small", "--name", "mine", *self.place
        program = Program([str(ROOT / ".venv" / "bin" / "svcd"), *BAKE[1:], *path])

        async def booting() -> bool:
            return "booting a server" in program.err

        await until(booting, "a server", 60)
        program.signal(signal.SIGINT)
        said = await program.end(60)
        self.assertEqual(said.code, 130, said)
        self.assertIn("svcd image bake: interrupted\n", said.err)
        self.assertEqual(await self.left(), before)
