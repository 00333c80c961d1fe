"""The machines that run, by state folder, and whose daemon is gone."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.installations import Installation, Machine, leftovers, running


def installation(state: str, daemon: int = 0, exists: bool = True, count: int = 1) -> Installation:
    """Machines of 300 MiB with one process each."""
    machines = [
        Machine(f"{state}/cloud/machines/m{n}", f"first-worker-{n}", [n], 300)
        for n in range(1, count + 1)
    ]
    return Installation(state, machines, daemon, exists)


class ReadTest(SynchronousTestCase):
    """A made-up /proc."""

    def setUp(self) -> None:
        self.proc, self.state = Path(self.mktemp()).absolute(), Path(self.mktemp()).absolute()
        self.proc.mkdir()
        self.state.mkdir()

    def process(self, pid: int, root: str, mib: int) -> None:
        folder = self.proc / str(pid)
        folder.mkdir()
        (folder / "environ").write_text(f"SVCD_MACHINE_ROOT={root}\0")
        pages = mib * (1 << 20) // os.sysconf("SC_PAGE_SIZE")
        (folder / "statm").write_text(f"9999999 {pages} 0 0 0 0 0\n")

    def holds(self, pid: int, *files: str) -> None:
        """The open files of a process."""
        (self.proc / str(pid) / "fd").mkdir(parents=True)
        for number, file in enumerate(files):
            (self.proc / str(pid) / "fd" / str(number)).symlink_to(file)

    def test_a_machine_has_the_sums_of_its_processes(self) -> None:
        """Machines are in the order of their paths."""
        m1, m2 = (f"{self.state}/cloud/machines/{name}" for name in ("m1", "m2"))
        self.process(12, m1, 200)
        self.process(11, m1, 100)
        self.process(13, "/no/machines/x", 3)
        self.process(14, m2, 5)
        Path(m1, "etc").mkdir(parents=True)
        Path(m1, "etc", "hostname").write_text("first-master\n")
        machines = [Machine(m1, "first-master", [11, 12], 300), Machine(m2, "", [14], 5)]
        gone = Installation("/no", [Machine("/no/machines/x", "", [13], 3)], 0, exists=False)
        here = Installation(str(self.state), machines, 0, exists=True)
        found = {each.state_dir: each for each in running(self.proc)}
        self.assertEqual(found, {"/no": gone, str(self.state): here})
        self.assertEqual(list(found), sorted(found))
        self.assertEqual((gone.state, here.state), ("folder deleted", "no daemon"))

    def test_the_daemon_of_a_folder_holds_its_lock(self) -> None:
        """A lock of another kind, a waiting process, and a deleted lock beside another are none."""
        self.process(10, f"{self.state}/cloud/machines/m", 1)
        lock, old = f"{self.state}/cloud.lock", f"{self.state}/cloud.lock (deleted)"
        locks = (
            "1: FLOCK  ADVISORY  WRITE 31 fe:00:77 0 EOF\n"
            "2: POSIX  ADVISORY  READ 32 fe:00:78 0 EOF\n"
            "2: -> FLOCK  ADVISORY  WRITE 33 fe:00:77 0 EOF\n"
            "3: FLOCK  ADVISORY  WRITE 0 fe:00:79 0 EOF\n"
            "4: FLOCK  ADVISORY  WRITE 34 fe:00:7a 0 EOF\n"
        )
        self.holds(31, "socket:[1]", lock)
        self.holds(32, lock)
        self.holds(33, lock)
        self.holds(34, old)
        (self.proc / "locks").write_text(locks)
        self.assertEqual([each.daemon for each in running(self.proc)], [31])
        (self.proc / "locks").write_text(locks.partition("\n")[2])
        self.assertEqual([each.daemon for each in running(self.proc)], [34])


class LeftoverTest(SynchronousTestCase):
    """Installations without a daemon or a folder."""

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

    def test_the_warning_names_folder_and_command(self) -> None:
        """In one line."""
        left = [installation("/a b", count=2), installation("/gone", exists=False)]
        self.assertEqual(
            [each.warning for each in left],
            [
                "Left over: /a b: 2 machines with 600 MiB run without a daemon;"
                " start its daemon to use them, or end them: svcd machines rm '/a b'",
                "Left over: /gone: 1 machine with 300 MiB runs although the folder is deleted;"
                " end them: svcd machines rm /gone",
            ],
        )
