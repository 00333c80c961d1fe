"""`svcd image bake` on a real OpenStack whose servers answer on SSH.

The servers run on this machine's programs and have no way out, so apt finds all packages there. The
hypervisor of the platform makes an image record of a snapshot and uploads nothing: this suite
uploads some bytes in its place. All else is real: server, key pair, security group, SSH, the copy
and its check, the clean-up, stop, the snapshot's record, registration, removal.

Needed: see openstack_case, and the software tree (SVCD_VANILLA_PREFIX, or that of the clone).
"""

from __future__ import annotations

import os
import signal
from json import dumps
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred

from svcd.provisioning.distributions.vanilla.image import layout
from svcd.provisioning.distributions.vanilla.image.build import versions
from tests.support.openstack_case import Cloud, OpenStackCase, state_folder, token
from tests.support.processes import BIN, Ended, Program, send, until
from tests.support.real_openstack import given, platform

ROOT = Path(__file__).parents[3]
TREE = Path(
    os.environ.get("SVCD_VANILLA_PREFIX")
    or ROOT / "state" / "image" / f"vanilla-{versions()['hadoop']}"
)
NAME = "baked"
_END_S = 400.0

skip = None if (TREE / "image.json").is_file() else f"there is no software in {TREE}"


class BakeTests(OpenStackCase):
    timeout = 900

    async def prepare(self) -> None:
        self.cloud = Cloud(await token("alpha-user", "alpha"), "alpha")
        self.glance = platform()["endpoints"]["glance"].rstrip("/").removesuffix("/v2") + "/v2"

        self.addCleanup(lambda: Deferred.fromCoroutine(self.without_images()))

    async def without_images(self) -> None:
        for each in await self.images():
            await self.cloud.ask("DELETE", f"{self.glance}/images/{each['id']}")

    async def images(self) -> list[Any]:
        return list((await self.cloud.get("GET", f"{self.glance}/images?name={NAME}"))["images"])

    async def keypairs(self) -> list[str]:
        rows = (await self.cloud.get("GET", f"{self.cloud.nova}/os-keypairs"))["keypairs"]
        return sorted(each["keypair"]["name"] for each in rows)

    def start(self, *more: str) -> Program:
        tenant = platform()["tenants"]["alpha"]
        environment = {
            "OS_AUTH_URL": given("AUTH_URL"),
            "OS_USERNAME": "alpha-user",
            "OS_PASSWORD": given("PASSWORD"),
            "OS_PROJECT_NAME": "alpha",
        }
        arguments = {
            "--base": tenant["private_image"],
            "--flavor": "m1.small",
            "--network": tenant["network"],
            "--user": "debian",
            "--name": NAME,
            "--tree": str(TREE),
        }
        arguments |= dict(zip(more[::2], more[1::2], strict=True))
        words = [word for pair in arguments.items() for word in pair]
        program = Program([str(BIN / "svcd"), "image", "bake", "vanilla", *words], environment)
        self.addCleanup(program.signal, signal.SIGKILL)
        return program

    async def said(self, program: Program, text: str) -> None:
        async def look() -> bool:
            if program.code is not None:
                raise AssertionError(f"ended with {program.code}: {program.err}")
            return text in program.err

        await until(look, text, _END_S)

    async def saved(self, program: Program) -> str:
        """Upload the image as a hypervisor would; its id."""
        await self.said(program, "saving image")

        async def queued() -> Any:
            return next((each for each in await self.images() if each["status"] == "queued"), None)

        image = await until(queued, "the image", 60)
        self.check_disk(state_folder() / "instances" / image["instance_uuid"])
        await self.upload(image["id"])
        return str(image["id"])

    def check_disk(self, server: Path) -> None:
        """The platform keeps what a server has changed as a folder of an overlay mount."""
        disk = server / "upper"
        self.assertEqual((disk / "etc" / "machine-id").stat().st_size, 0)
        keys = list((disk / "etc" / "ssh").glob("ssh_host_*"))
        self.assertTrue(all(each.is_char_device() for each in keys), "the sign of a removed file")
        self.assertEqual(list((server / "own" / "home" / "debian" / ".ssh").iterdir()), [])
        self.assertEqual(list((server / "own" / "root" / ".ssh").iterdir()), [])
        self.assertEqual(layout.verify(disk / "opt" / "svcd" / "vanilla", run=False), [])

    async def upload(self, image_id: str) -> None:
        url, token = f"{self.glance}/images/{image_id}", {"X-Auth-Token": self.cloud.token}
        formats = {"/disk_format": "raw", "/container_format": "bare"}
        patch = [{"op": "replace", "path": path, "value": to} for path, to in formats.items()]
        headers = {**token, "Content-Type": "application/openstack-images-v2.1-json-patch"}
        reply = await send("PATCH", url, data=dumps(patch).encode(), headers=headers)
        self.assertEqual(reply.status, 200, reply.body)
        headers = {**token, "Content-Type": "application/octet-stream"}
        reply = await send("PUT", f"{url}/file", data=b"disk", headers=headers)
        self.assertEqual(reply.status, 204, reply.body)

    async def registered(self, program: Program, image_id: str) -> Ended:
        """The end of a bake that has made this image, which is deleted."""
        ended = await program.end(_END_S)
        self.assertEqual(ended.code, 0, ended)
        (image,) = await self.images()
        self.assertEqual((image["id"], image["status"]), (image_id, "active"))
        self.assertEqual(
            {key: image[key] for key in image if key.startswith(("_svc", "svcd"))},
            {
                "_svc_username": "debian", "_svc_description": "Hadoop, Pig, Oozie, Spark",
                "_svc_tag_vanilla": "True", "_svc_tag_3.5.0": "True", "svcd_bake": "finished",
            },
        )  # fmt: skip
        await self.cloud.ask("DELETE", f"{self.glance}/images/{image_id}")
        return ended

    async def nothing_left(self, keypairs: list[str], before: dict[str, str]) -> None:
        self.assertEqual(await self.images(), [])
        self.assertEqual(await self.keypairs(), keypairs)
        self.assertEqual(sorted(set(await self.everything()) - set(before)), [])

    async def test_a_bake(self) -> None:
        """With a floating IP."""
        await self.prepare()
        keypairs, before = await self.keypairs(), await self.everything()
        program = self.start("--floating-network", given("POOL"))
        ended = await self.registered(program, await self.saved(program))
        for step in ("installing packages", "checking the software on the server", "cleaning"):
            self.assertIn(step, ended.err)
        await self.nothing_left(keypairs, before)
