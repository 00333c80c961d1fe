"""`svcd machines`: what it lists, and what it ends and refuses."""

from __future__ import annotations

import fcntl
import json
import os
import signal
import subprocess
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.embedded_doctor import machines
from svcd.cli.exits import NOT_FOUND, USAGE, CommandError
from svcd.cli.finding import Finding
from svcd.cli.machines import chosen, rows
from svcd.embedded.installations import Installation, Machine
from tests.support.commands import svcd

MASTER = Machine("/a/cloud/machines/11-aa", "first-master-001", [7, 8], 900)
WORKER = Machine("/a/cloud/machines/12-bb", "first-worker-001", [9], 400)
OTHER = Machine("/b/cloud/machines/13-cc", "first-master-001", [10], 500)
A = Installation("/a", [MASTER, WORKER], daemon=5, exists=True)
B = Installation("/b", [OTHER], daemon=0, exists=True)
GONE = Installation("/gone", [OTHER], daemon=0, exists=False)


class ChoiceTests(SynchronousTestCase):
    def test_a_row_for_each_machine(self) -> None:
        """With the ids of its processes, and of its daemon."""
        first, _, last = rows([A, B])
        self.assertEqual(
            first,
            {
                "id": "11-aa", "name": "first-master-001", "state_dir": "/a", "processes": [7, 8],
                "memory_mib": 900, "daemon": 5, "state": "daemon runs",
            },
        )  # fmt: skip
        self.assertEqual((last["daemon"], last["state"]), (None, "no daemon"))

    def test_names_of_machines(self) -> None:
        """A state folder, an id, a name, or the beginning of one."""
        for name, expected in (
            ("/a", [MASTER, WORKER]), ("/x/../b/", [OTHER]), ("11-aa", [MASTER]), ("12", [WORKER]),
            ("first-worker-001", [WORKER]), ("first-w", [WORKER]),
        ):  # fmt: skip
            self.assertEqual([machine for _, machine in chosen([A, B], name)], expected, name)

    def test_unknown_and_ambiguous_names(self) -> None:
        """Codes 3 and 2; the text has what to write."""
        for name, code, text in (
            ("/c", NOT_FOUND, "svcd machines ls lists them"), ("", NOT_FOUND, "no machine ''"),
            ("first-master-001", USAGE, "11-aa in /a, 13-cc in /b; write the id"),
        ):  # fmt: skip
            error = self.assertRaises(CommandError, chosen, [A, B], name)
            self.assertEqual(error.code, code)
            self.assertIn(text, str(error))


class AdviceTests(SynchronousTestCase):
    """What `doctor` says of leftovers."""

    def test_doctor_warns_of_each_state_folder(self) -> None:
        """A start of the daemon helps only when there is a folder."""
        self.assertEqual(
            list(machines([A, B, GONE])),
            [
                Finding(
                    "machines", False, "/b: 1 machine with 500 MiB runs without a daemon",
                    "start its daemon, or: svcd machines rm /b", warning=True,
                ),
                Finding(
                    "machines", False,
                    "/gone: 1 machine with 500 MiB runs although the folder is deleted",
                    "svcd machines rm /gone", warning=True,
                ),
            ],
        )  # fmt: skip
        self.assertEqual(
            list(machines([A])),
            [Finding("machines", True, "none of this user runs without its daemon")],
        )


class CommandTests(SynchronousTestCase):
    """With processes of this system."""

    def setUp(self) -> None:
        self.state = Path(self.mktemp()).absolute()
        self.state.mkdir()
        self.processes = [self.sleeper(f"{self.state}/cloud/machines/m{n}") for n in (1, 2)]

    def sleeper(self, root: str) -> subprocess.Popen[bytes]:
        started = subprocess.Popen(["sleep", "60"], env={**os.environ, "SVCD_MACHINE_ROOT": root})
        self.addCleanup(started.wait)
        self.addCleanup(started.kill)
        return started

    def ran(self, *arguments: str) -> tuple[int, str, str]:
        said = svcd("machines", *arguments)
        return said.code, said.out, said.err

    def listed(self) -> list[str]:
        """The machines of the state folder by `ls`."""
        body = json.loads(self.ran("ls", "-o", "json")[1])["machines"]
        return [each["id"] for each in body if each["state_dir"] == str(self.state)]

    def test_machines_end(self) -> None:
        """One, or all of a state folder, which stays; one that is gone is not made anew."""
        self.processes.append(self.sleeper(f"{self.state}/cloud/machines/m3"))
        code, out, err = self.ran("ls")
        self.assertEqual((code, err), (0, ""))
        self.assertRegex(out, rf"(?m)^m1 +1 +\d+ +no daemon +{self.state}$")
        code, _, err = self.ran("rm", str(self.state))
        self.assertEqual(code, 4)
        self.assertIn("end all processes of m1, m2, m3 needs --yes", err)
        self.assertEqual(self.listed(), ["m1", "m2", "m3"])
        self.state.rmdir()
        self.assertEqual(self.ran("rm", "m1", "-y"), (0, "", "1 machine ended: m1\n"))
        self.assertEqual((self.listed(), self.state.exists()), (["m2", "m3"], False))
        self.state.mkdir()
        code, out, err = self.ran("rm", str(self.state), "--yes")
        self.assertEqual((code, out), (0, ""))
        self.assertTrue(err.startswith("2 machines ended: m2, m3\ntheir folders stay: "), err)
        self.assertEqual([each.wait(5) for each in self.processes], [-signal.SIGTERM] * 3)
        self.assertEqual((self.listed(), self.state.exists()), ([], True))

    def test_machines_of_a_daemon_that_runs_are_refused(self) -> None:
        """The command that ends them is named; without their folder it is another one."""
        lock = os.open(self.state / "cloud.lock", os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        code, _, err = self.ran("rm", "m1", "--yes")
        self.assertEqual(code, 4)
        self.assertIn(f"svcd cluster rm CLUSTER --state-dir {self.state} ends its machines", err)
        (self.state / "cloud.lock").unlink()
        self.state.rmdir()
        code, _, err = self.ran("rm", "m1", "--yes")
        self.assertEqual(code, 4)
        self.assertIn(f"kill {os.getpid()}, then svcd machines rm {self.state}", err)
        self.assertEqual(self.listed(), ["m1", "m2"])
