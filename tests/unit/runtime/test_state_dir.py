"""The state folder."""

import json
import os
import shutil
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.state_dir import StateFolder, StateFolderError


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

    def test_folder_is_private(self) -> None:
        """Only the owner may look into it."""
        StateFolder(self.path).release()
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o700)

    def test_an_existing_folder_becomes_private(self) -> None:
        """Its mode was chosen without svcd, which keeps keys and passwords there."""
        self.path.mkdir(mode=0o755)
        self.path.chmod(0o777)
        StateFolder(self.path).release()
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o700)

    def test_unusable_folder_is_named(self) -> None:
        """A file in its place is an error of one line."""
        self.path.write_text("x")
        with self.assertRaises(StateFolderError) as raised:
            StateFolder(self.path)
        self.assertIn("choose another server.state_dir", str(raised.exception))

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
