"""The shell texts, run by a real shell in a folder that plays the machine."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import MachineFacts
from svcd.model.ids import InstanceId
from svcd.provisioning.decide import shell
from svcd.provisioning.distributions.spi import WriteFile
from tests.unit.provisioning.support import cluster, group, instance

M = InstanceId("m1")


class ShellTestCase(SynchronousTestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(prefix="svcd-shell-")
        self.addCleanup(folder.cleanup)
        self.root = Path(folder.name)
        for each in ("home", "etc", "tmp"):
            (self.root / each).mkdir()
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.root / "home"),
            "SVCD_MACHINE_ROOT": str(self.root),
            "SVCD_HOSTS_FILE": str(self.root / "etc/hosts"),
            "SVCD_VANILLA_PREFIX": "/software",
            "TMPDIR": str(self.root / "tmp"),
        }

    def sh(self, script: str, stdin: bytes = b"", code: int = 0) -> str:
        done = subprocess.run(
            ["sh", "-c", script], input=stdin, env=self.env, capture_output=True, timeout=20
        )
        self.assertEqual(done.returncode, code, done.stderr.decode())
        self.assertEqual(list((self.root / "tmp").iterdir()), [])
        return (done.stdout if code == 0 else done.stderr).decode()


class FactsTests(ShellTestCase):
    def test_machine_tells_its_facts(self) -> None:
        """Home, root and prefix come from the environment, the rest from the system."""
        facts = shell.facts("Welcome!\n" + self.sh(shell.FACTS))
        assert facts is not None
        self.assertEqual(facts.home, str(self.root / "home"))
        self.assertEqual((facts.root, facts.prefix), (str(self.root), "/software"))
        self.assertGreaterEqual(facts.cores, 1)
        self.assertGreater(facts.memory_mib, 100)

    def test_machine_names_the_parts_of_its_software(self) -> None:
        """The folders below the prefix, one of them with a blank; none without a prefix."""
        self.assertEqual(getattr(shell.facts(self.sh(shell.FACTS)), "software", None), ())
        prefix = self.root / "soft ware"
        for name in ("hadoop", "spark", "a b"):
            (prefix / name).mkdir(parents=True)
        (prefix / "image.json").touch()
        self.env["SVCD_VANILLA_PREFIX"] = str(prefix)
        facts = shell.facts(self.sh(shell.FACTS))
        assert facts is not None
        self.assertEqual(sorted(facts.software), ["a b", "hadoop", "spark"])

    def test_server_has_the_defaults(self) -> None:
        """Without the variables of a loopback machine: root is "", the prefix the standard one."""
        self.env = {
            "PATH": os.environ["PATH"],
            "HOME": "/home/debian",
            "TMPDIR": self.env["TMPDIR"],
        }
        facts = shell.facts(self.sh(shell.FACTS))
        assert facts is not None
        self.assertEqual(
            (facts.home, facts.root, facts.prefix), ("/home/debian", "", "/opt/svcd/vanilla")
        )

    def test_nonsense_is_no_fact(self) -> None:
        """A banner alone, or a home that is no path."""
        self.assertIsNone(shell.facts("Last login: yesterday\n"))
        self.assertIsNone(shell.facts("home=\nroot=\n"))
        self.assertEqual(
            shell.facts("home=/h\ncores=x\nmemory_mib=\n"),
            MachineFacts(home="/h", prefix="/opt/svcd/vanilla", cores=1, memory_mib=1024),
        )


class WriteFilesTests(ShellTestCase):
    def test_files_are_written_byte_for_byte(self) -> None:
        """Folders are made, modes are set, contents with NULs and no last newline survive."""
        big = bytes(range(256)) * 1000
        base = self.root / "home/a b"
        files = [
            WriteFile(machine=M, path=f"{base}/one", content=b""),
            WriteFile(machine=M, path=f"{base}/deep/two's", content=big, mode=0o755),
            WriteFile(machine=M, path=f"{base}/three", content=b"x\ny", mode=0o600),
        ]
        old = WriteFile(machine=M, path=f"{base}/three", content=b"long content")
        for each in ([old], files):  # safe to repeat
            self.sh(*shell.write_files(each))
        self.assertEqual((base / "one").read_bytes(), b"")
        self.assertEqual((base / "deep/two's").read_bytes(), big)
        self.assertEqual((base / "three").read_bytes(), b"x\ny")
        self.assertEqual((base / "deep/two's").stat().st_mode & 0o777, 0o755)
        self.assertEqual((base / "three").stat().st_mode & 0o777, 0o600)
        self.assertEqual(sorted(p.name for p in base.iterdir()), ["deep", "one", "three"])

    def test_folder_that_cannot_be_made_fails(self) -> None:
        """The exit code and the message tell."""
        (self.root / "home/file").write_text("")
        path = str(self.root / "home/file/below")
        command, stdin = shell.write_files([WriteFile(machine=M, path=path, content=b"x")])
        self.assertIn("file", self.sh(command, stdin, code=1))


class PrepareTests(ShellTestCase):
    def test_hosts_are_a_block_that_is_replaced(self) -> None:
        """Other lines stay; the own name's 127.0.1.1 goes; again changes nothing."""
        hosts = self.root / "etc/hosts"
        hosts.write_text("127.0.0.1 localhost\n127.0.1.1 myself\n10.9.9.9 other\n")
        row = cluster(group(instances=[instance(1, internal_ip="10.0.0.1"), instance(2)]))
        expected = (
            "127.0.0.1 localhost\n10.9.9.9 other\n"
            "# svcd begin\n127.0.0.1 localhost\n10.0.0.1 demo-worker-001\n# svcd end\n"
        )
        for _ in range(2):
            self.sh(shell.prepare([]), shell.hosts(row).encode())
            self.assertEqual(hosts.read_text(), expected)

    def test_absent_hosts_file_is_made(self) -> None:
        """A fresh machine has none."""
        self.sh(shell.prepare([]), b"10.0.0.1 a\n")
        self.assertEqual((self.root / "etc/hosts").read_text(), "10.0.0.1 a\n")

    def test_volume_is_linked_on_a_folder_machine(self) -> None:
        """The mount point leads to the device's folder; again is fine."""
        (self.root / "dev/vdb").mkdir(parents=True)
        for _ in range(2):
            self.sh(shell.prepare([("/dev/vdb", "v1", "/volumes/disk1")]))
        (self.root / "volumes/disk1/file").write_text("x")
        self.assertEqual((self.root / "dev/vdb/file").read_text(), "x")

    def test_absent_device_fails(self) -> None:
        """The message names volume and place."""
        said = self.sh(shell.prepare([("/dev/vdb", "v1", "/volumes/disk1")]), code=75)
        self.assertIn("volume v1 is not at", said)


class AccountTests(ShellTestCase):
    """The system user of daemons. Programs of the system are replaced: they only note a call."""

    def setUp(self) -> None:
        super().setUp()
        self.programs = self.root / "bin"
        self.programs.mkdir()
        (self.root / "etc/hosts").write_text("")
        for name in ("useradd", "su", "mkdir", "chown", "chmod"):
            self.program(name, "exit 0")
        self.program("id", '[ "$1" != svcd ] && echo 0')  # root, and svcd is unknown
        self.program("sudo", "exit 1")  # svcd may not run `true`
        self.env["PATH"] = f"{self.programs}:{self.env['PATH']}"

    def program(self, name: str, then: str) -> None:
        path = self.programs / name
        note = f'printf "%s\\n" "{name} $*" >>"{self.root}/calls"'
        path.write_text(f"#!/bin/sh\n{note}\n{then}\n")
        path.chmod(0o755)

    def calls(self, *without: str) -> list[str]:
        lines = (self.root / "calls").read_text().splitlines()
        (self.root / "calls").unlink()
        return [each for each in lines if each.split()[0] not in without]

    def test_user_is_made_and_owns_its_home(self) -> None:
        """No password, no sudo, and a home that only it can read."""
        self.sh(shell.prepare([], "svcd"))
        made = [
            "sudo -n -l -U svcd true",
            "mkdir -p /home/svcd",
            "chown svcd: /home/svcd",
            "chmod 700 /home/svcd",
        ]
        add = "useradd --system --user-group --home-dir /home/svcd --no-create-home"
        self.assertEqual(self.calls("id"), [f"{add} --shell /bin/sh svcd", *made])
        self.program("id", "echo 0")
        self.sh(shell.prepare([], "svcd"))
        self.assertEqual(self.calls("id"), made, "the user is there")

    def test_user_of_the_image_that_has_sudo_is_refused(self) -> None:
        """Jobs would be root."""
        self.program("sudo", "echo /usr/bin/true")
        said = self.sh(shell.prepare([], "svcd"), code=1)
        self.assertIn("the user svcd may use sudo here, and jobs run as svcd", said)
        self.assertNotIn("chown svcd: /home/svcd", self.calls())

    def test_command_gets_the_user_by_root_or_by_sudo(self) -> None:
        """The rest of the words is one argument, its exit code and its input are passed on."""
        command = shell.as_user("svcd", "it's")
        self.program("su", "cat; exit 3")
        self.assertEqual(
            self.calls_of(command), ["su -s /bin/sh svcd -c cd /home/svcd || exit", "it's"]
        )
        self.program("id", "echo 1000")
        self.program("sudo", "cat; exit 3")
        self.assertEqual(
            self.calls_of(command),
            ["sudo -n su -s /bin/sh svcd -c cd /home/svcd || exit", "it's"],
        )

    def calls_of(self, command: str) -> list[str]:
        done = subprocess.run(
            ["sh", "-c", command], input=b"in", env=self.env, capture_output=True, timeout=20
        )
        self.assertEqual((done.returncode, done.stdout), (3, b"in"))
        return self.calls("id")


class UserDataTests(ShellTestCase):
    def test_key_is_added_once(self) -> None:
        """Existing keys stay, also without a last newline; modes are strict."""
        keys = self.root / "home/.ssh/authorized_keys"
        keys.parent.mkdir()
        keys.write_text("ssh-rsa AAAA user's own")
        for _ in range(2):
            script = shell.user_data("anybody", "ssh-ed25519 BBBB svcd it's\n")
            self.assertTrue(script.startswith("#!/bin/sh\n"), "cloud-init would not run it")
            self.sh(script)
        self.assertEqual(keys.read_text(), "ssh-rsa AAAA user's own\nssh-ed25519 BBBB svcd it's\n")
        self.assertEqual(keys.stat().st_mode & 0o777, 0o600)
        self.assertEqual(keys.parent.stat().st_mode & 0o777, 0o700)

    def test_unknown_user_is_reported(self) -> None:
        """On a server whose image was registered with a wrong username."""
        del self.env["SVCD_MACHINE_ROOT"]
        said = self.sh(shell.user_data("no-such-user", "k"), code=1)
        self.assertIn("user no-such-user does not exist", said)
