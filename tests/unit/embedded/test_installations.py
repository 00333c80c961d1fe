"""The machines that run, by state folder, and whose daemon is gone."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import time
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.installations import (
    Installation,
    Machine,
    MachineProcess,
    installations,
    leftovers,
    lock_holders,
    locked_folders,
    running,
    state_of,
    usage,
    warning,
)

MIB = 1 << 20
M1, M2 = "/a/state/cloud/machines/m1", "/a/state/cloud/machines/m2"


def installation(state: str, daemon: int = 0, exists: bool = True, count: int = 1) -> Installation:
    """Machines of 300 MiB with one process each."""
    machines = [
        Machine(f"{state}/cloud/machines/m{n}", f"first-worker-{n}", [n], 300, 5.0)
        for n in range(1, count + 1)
    ]
    return Installation(state, machines, daemon, exists)


class GroupingTest(SynchronousTestCase):
    """Processes by machine and state folder."""

    def test_a_machine_has_the_sums_of_its_processes(self) -> None:
        """Machines and installations are in the order of their paths."""
        processes = [
            MachineProcess(12, M1, 200 * MIB, 50.0),
            MachineProcess(11, M1, 100 * MIB, 60.0),
            MachineProcess(13, "/b/machines/x", 3 * MIB, 70.0),
            MachineProcess(14, M2, 5 * MIB, 80.0),
        ]
        master = Machine(M1, "first-master", [11, 12], 300, 50.0)
        found = installations(processes, {"/b": 7}, ["/a/state"], {M1: "first-master"})
        self.assertEqual(
            found,
            [
                Installation("/a/state", [master, Machine(M2, "", [14], 5, 80.0)], 0, exists=True),
                Installation("/b", [Machine("/b/machines/x", "", [13], 3, 70.0)], 7, exists=False),
            ],
        )  # fmt: skip
        self.assertEqual([each.state for each in found], ["no daemon", "folder deleted"])

    def test_state_folder_of_a_machine(self) -> None:
        """With a cloud in it, and of a test without one."""
        self.assertEqual(state_of(M1), "/a/state")
        self.assertEqual(state_of("/tmp/test/machines/m"), "/tmp/test")

    def test_leftovers_lack_a_daemon_or_their_folder(self) -> None:
        """The folder of the asking daemon does not count."""
        well, alone = installation("/well", daemon=5), installation("/alone")
        deleted, served = installation("/gone", exists=False), installation("/x", 6, exists=False)
        found = [well, alone, deleted, served]
        self.assertEqual(leftovers(found), [alone, deleted, served])
        self.assertEqual(leftovers(found, but="/alone"), [deleted, served])
        self.assertEqual(
            [each.remedy for each in found[1:]],
            [
                "svcd machines rm /alone",
                "svcd machines rm /gone",
                "kill 6, then svcd machines rm /x",
            ],
        )

    def test_the_warning_names_folders_and_commands(self) -> None:
        """In one line; none without leftovers."""
        self.assertEqual(warning([]), "")
        left = [installation("/a b", count=2), installation("/gone", exists=False)]
        self.assertEqual(
            warning(left),
            "Left over: /a b: 2 machines with 600 MiB run without a daemon; /gone: 1 machine with"
            " 300 MiB runs although the folder is deleted. svcd machines rm STATE_DIR ends them,"
            " svcd machines ls lists them",
        )
        self.assertEqual(left[0].remedy, "svcd machines rm '/a b'")


class KernelTextTest(SynchronousTestCase):
    """Texts of /proc."""

    def test_usage_of_a_program_with_any_name(self) -> None:
        """A name may have blanks and brackets."""
        after = "S 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 4711 20 99 22"
        self.assertEqual(usage(f"7 (a) b) {after}\n"), (99, 4711))

    def test_holders_of_file_locks(self) -> None:
        """Not those of other kinds, of waiting processes' owners, and outside the namespace."""
        text = (
            "1: FLOCK  ADVISORY  WRITE 31 fe:00:77 0 EOF\n"
            "2: POSIX  ADVISORY  READ 32 fe:00:78 0 EOF\n"
            "2: -> FLOCK  ADVISORY  WRITE 33 fe:00:77 0 EOF\n"
            "3: FLOCK  ADVISORY  WRITE 0 fe:00:79 0 EOF\n"
        )
        self.assertEqual(lock_holders(text), [31])

    def test_folders_of_the_lock(self) -> None:
        """Also of a deleted one; other files do not count."""
        links = ["/s/cloud.lock", "/t/cloud.lock (deleted)", "/s/lock", "socket:[1]"]
        self.assertEqual(locked_folders(links, "cloud.lock"), {"/s": True, "/t": False})


class RealTest(SynchronousTestCase):
    """Processes and locks of this system."""

    def only(self, state: Path) -> Installation | None:
        return next((each for each in running() if each.state_dir == str(state)), None)

    def test_a_machine_its_daemon_and_its_folder(self) -> None:
        """While the lock is held there is a daemon, also when its folder is deleted."""
        state = Path(self.mktemp()).absolute()
        root = state / "cloud" / "machines" / "m1"
        (root / "etc").mkdir(parents=True)
        (root / "etc" / "hostname").write_text("first-master\n")
        process = subprocess.Popen(
            ["sleep", "60"], env={**os.environ, "SVCD_MACHINE_ROOT": str(root)}
        )
        self.addCleanup(process.wait)
        self.addCleanup(process.kill)
        found = self.only(state)
        assert found is not None
        (machine,) = found.machines
        self.assertEqual((found.daemon, found.state), (0, "no daemon"))
        self.assertEqual((machine.name, machine.pids), ("first-master", [process.pid]))
        self.assertLess(abs(time.time() - machine.since), 60)  # noqa: TID251 - the kernel's own
        lock = os.open(state / "cloud.lock", os.O_RDWR | os.O_CREAT)
        self.addCleanup(os.close, lock)
        fcntl.flock(lock, fcntl.LOCK_EX)
        served = self.only(state)
        assert served is not None
        self.assertEqual((served.daemon, served.state), (os.getpid(), "daemon runs"))
        shutil.rmtree(state)
        deleted = self.only(state)
        assert deleted is not None
        self.assertEqual((deleted.daemon, deleted.state), (os.getpid(), "folder deleted"))
