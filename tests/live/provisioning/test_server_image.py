"""The scripts that turn a server into an image, run by a real shell with stand-ins of programs."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla import server_image

SCRIPTS = {
    "ready": server_image.READY,
    "room": server_image.room(421),
    "install": server_image.INSTALL,
    "empty": server_image.EMPTY,
    "unpack": server_image.UNPACK,
    "verify": server_image.verify("0" * 64, "3.5.0"),
    "class data": server_image.CLASS_DATA,
    "clean": server_image.CLEAN,
}
DOCS = Path(__file__).parents[3] / "docs" / "openstack.md"


class ScriptCase(SynchronousTestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="svcd-server-image-")
        self.addCleanup(folder.cleanup)
        self.bin = Path(folder.name)
        self.log = self.bin / "log"
        self.program("sudo", 'shift_n() { [ "$1" != -n ] || shift; "$@"; }; shift_n "$@"')

    def program(self, name: str, body: str) -> None:
        """A program of the machine; nothing else of this name is found."""
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{body}\n")
        path.chmod(0o755)

    def sh(self, script: str, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": f"{self.bin}:/usr/bin:/bin", **variables}
        return subprocess.run(
            ["sh", "-c", script], env=environment, capture_output=True, text=True, timeout=20
        )


class GuardTests(ScriptCase):
    def test_a_machine_of_the_embedded_cloud_is_refused(self) -> None:
        """Its `sudo` does nothing, so every script would change svcd's own host."""
        for name, script in SCRIPTS.items():
            done = self.sh(script, SVCD_MACHINE_ROOT="/x")
            self.assertEqual(done.returncode, 1, name)
            text = "this is a machine of the embedded cloud, whose clusters need no image\n"
            self.assertEqual(done.stderr, text, name)

    def test_scripts_are_posix_shell(self) -> None:
        """The login shell of an image may be any."""
        for name, script in SCRIPTS.items():
            done = subprocess.run(["sh", "-n", "-c", script], capture_output=True, timeout=20)
            self.assertEqual((done.returncode, done.stderr), (0, b""), name)


class StepTests(ScriptCase):
    def test_sudo_with_a_password(self) -> None:
        """The login is named."""
        self.program("cloud-init", "exit 2")  # a boot with an error is no reason to stop
        self.assertEqual(self.sh(server_image.READY).returncode, 0)
        self.program("sudo", "exit 1")
        done = self.sh(server_image.READY)
        self.assertEqual(done.returncode, 1)
        self.assertIn("may not use sudo without a password: name another login", done.stderr)

    def test_a_full_disk(self) -> None:
        """421 MiB of software, 700 for the packages, 450 for class data."""
        self.program("df", "echo Filesystem; echo /dev/vda 2000 900 1500 45% /")
        done = self.sh(SCRIPTS["room"])
        text = "the disk has 1500 MiB free, and the software needs 1571 MiB: choose a flavor with"
        self.assertEqual((done.returncode, done.stderr), (1, f"{text} a larger disk\n"))
        self.program("df", "echo Filesystem; echo /dev/vda 2000 900 1571 45% /")
        self.assertEqual(self.sh(SCRIPTS["room"]).returncode, 0)

    def test_missing_packages_are_installed(self) -> None:
        """Those that are there are not; python3 and sudo are known by their programs."""
        self.program("dpkg-query", '[ "$3" = e2fsprogs ] && echo "install ok installed"')
        self.program("apt-get", f'echo "$DEBIAN_FRONTEND $*" >>{self.log}')
        self.assertEqual(self.sh(server_image.INSTALL).returncode, 0)
        update, install = self.log.read_text().splitlines()
        self.assertTrue(
            update.startswith("noninteractive -q -y -o DPkg::Lock::Timeout=300"), update
        )
        self.assertTrue(update.endswith(" update"), update)
        self.assertTrue(
            install.endswith(" --no-install-recommends install openjdk-17-jre-headless"), install
        )

    def test_nothing_is_missing(self) -> None:
        """Then the server needs no way to a mirror."""
        self.program("dpkg-query", 'echo "install ok installed"')
        self.program("apt-get", "exit 9")
        self.assertEqual(self.sh(server_image.INSTALL).returncode, 0)

    def test_apt_fails(self) -> None:
        """Its own words are on stderr."""
        self.program("dpkg-query", "exit 1")
        self.program("apt-get", 'echo "E: Failed to fetch" >&2; exit 100')
        done = self.sh(server_image.INSTALL)
        self.assertEqual((done.returncode, done.stderr), (100, "E: Failed to fetch\n"))


class ClassDataTests(ScriptCase):
    """The step that makes class data, in a tree at another place."""

    def made(self, body: str) -> subprocess.CompletedProcess[str]:
        """The step, with the program `class-data` of this body."""
        self.program("class-data", body)
        self.program("sudo", f'echo "$*" >>{self.log}; exec "$@"')
        script = server_image.CLASS_DATA.replace(f"{server_image.PREFIX}/bin", str(self.bin))
        return self.sh(script.replace("480", "1"))

    def test_it_takes_too_long(self) -> None:
        """Root ends it, because the login user may not; the bake goes on."""
        done = self.made("sleep 30")
        text = "no class data: daemons and jobs of clusters will start later\n"
        self.assertEqual((done.returncode, done.stderr), (0, text))
        self.assertEqual(self.log.read_text(), f"timeout 1 {self.bin}/class-data\n")

    def test_it_is_made(self) -> None:
        """Nothing is said."""
        done = self.made("exit 0")
        self.assertEqual((done.returncode, done.stderr), (0, ""))


class DocsTests(SynchronousTestCase):
    def test_virt_customize_installs_the_same_packages(self) -> None:
        """And puts the tree at the same place."""
        text = DOCS.read_text("utf-8")
        self.assertIn(f"--install {','.join(server_image.PACKAGES)} \\\n", text)
        self.assertIn(f"--copy-in /opt/svcd/vanilla:{Path(server_image.PREFIX).parent} ", text)
