"""Files that appear whole."""

from __future__ import annotations

import errno
import fcntl
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.drafts import draft_of


class DraftTests(SynchronousTestCase):
    def test_a_draft_that_cannot_be_locked_leaves_nothing(self) -> None:
        """The error names the file that was to be written."""

        def refuse(_: int, __: int) -> None:
            raise OSError(errno.ENOLCK, "No locks available")

        folder = Path(self.mktemp())
        folder.mkdir()
        self.patch(fcntl, "flock", refuse)
        with self.assertRaises(OSError) as raised, draft_of(folder / "file"):
            self.fail("it was not locked")
        self.assertEqual(raised.exception.filename, str(folder / "file"))
        self.assertEqual(list(folder.iterdir()), [])
