"""The state folder."""

import errno
import fcntl
import json
import os
import shutil
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.state_dir import StateFolder, StateFolderError, hold_database


class StateFolderTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.path = Path(self.mktemp())

    def test_second_holder_is_refused_until_the_first_lets_go(self) -> None:
        """The message names folder and process."""
        first = StateFolder(self.path)
        with self.assertRaises(StateFolderError) as raised:
            StateFolder(self.path)
        self.assertIn(str(self.path.absolute()), str(raised.exception))
        self.assertIn("in use by process", str(raised.exception))
        first.release()
        StateFolder(self.path).release()

    def test_an_existing_folder_becomes_private(self) -> None:
        """Its mode was chosen without svcd, which keeps keys and passwords there."""
        self.path.mkdir(mode=0o755)
        self.path.chmod(0o777)
        StateFolder(self.path).release()
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o700)

    def test_endpoints_come_and_go(self) -> None:
        """Whole or not at all; removing twice is fine."""
        folder = StateFolder(self.path)
        folder.write_endpoints({"api": "http://x"})
        read = json.loads((self.path / "endpoints.json").read_text())
        self.assertEqual(read, {"api": "http://x"})
        folder.remove_endpoints()
        folder.remove_endpoints()
        self.assertEqual([p.name for p in self.path.iterdir()], ["lock"])
        folder.release()

    def test_endpoints_of_another_process_are_kept(self) -> None:
        """A cloud and a daemon in one folder: the file tells of both, and then of who is left."""
        file = self.path / "endpoints.json"
        folder = StateFolder(self.path)
        self.addCleanup(folder.release)
        cloud = {"identity": "http://cloud", "pid": os.getppid()}
        file.write_text(json.dumps(cloud))
        folder.write_endpoints({"api": "http://x", "pid": os.getpid()})
        self.assertEqual(
            json.loads(file.read_text()),
            {"api": "http://x", "identity": "http://cloud", "pid": os.getpid()},
        )
        folder.remove_endpoints()
        self.assertEqual(json.loads(file.read_text()), cloud)
        folder.remove_endpoints()
        self.assertEqual(json.loads(file.read_text()), cloud)

    def test_endpoints_of_a_process_that_is_gone_are_not_kept(self) -> None:
        """It was killed and could not remove them."""
        file = self.path / "endpoints.json"
        folder = StateFolder(self.path)
        self.addCleanup(folder.release)
        file.write_text(json.dumps({"identity": "http://cloud", "pid": 2**30}))
        folder.write_endpoints({"api": "http://x", "pid": os.getpid()})
        self.assertEqual(json.loads(file.read_text()), {"api": "http://x", "pid": os.getpid()})
        folder.remove_endpoints()
        self.assertFalse(file.exists())

    def test_place_is_the_same_for_whoever_holds_the_folder(self) -> None:
        """And another one for a copy of it."""
        folder = StateFolder(self.path)
        first = folder.place
        folder.release()
        again = StateFolder(self.path)
        self.addCleanup(again.release)
        copy = Path(self.mktemp())
        shutil.copytree(self.path, copy)
        other = StateFolder(copy)
        self.addCleanup(other.release)
        self.assertEqual((again.place, len(first)), (first, 16))
        self.assertNotEqual(other.place, first)


class DatabaseLockTests(SynchronousTestCase):
    """The lock of a SQLite database."""

    def setUp(self) -> None:
        folder = Path(self.mktemp()).absolute()
        folder.mkdir()
        self.path = folder / "svcd.sqlite"

    def refusal(self, path: Path) -> str:
        with self.assertRaises(StateFolderError) as raised:
            hold_database(path)
        return str(raised.exception)

    def test_one_process_holds_a_database(self) -> None:
        """By whatever name, also before the file exists and after it is replaced."""
        release = hold_database(self.path)
        link = Path(self.mktemp()).absolute()
        link.symlink_to(self.path)
        self.assertIn(f"{self.path} is in use by process {os.getpid()};", self.refusal(self.path))
        self.assertIn(f"{link} is in use by process {os.getpid()};", self.refusal(link))
        draft = self.path.with_name("draft")
        draft.touch()
        draft.rename(self.path)
        self.assertIn(f"{self.path} is in use by process {os.getpid()};", self.refusal(self.path))
        self.assertEqual(self.path.with_name("svcd.sqlite.lock").stat().st_mode & 0o777, 0o600)
        release()
        hold_database(self.path)()

    def test_a_fault_of_the_file_system_is_told_as_such(self) -> None:
        """It is no other process."""

        def refuse(_: int, __: int) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        self.patch(fcntl, "flock", refuse)
        text = self.refusal(self.path)
        self.assertIn(f"its lock {self.path}.lock cannot be held: No locks available", text)
        self.assertNotIn("process", text)
