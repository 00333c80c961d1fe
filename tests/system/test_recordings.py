"""The recordings of docs/jobs.md: each is made by the script, and is short."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.support.recordings import PAGE, RECORDINGS, names


class RecordingTests(SynchronousTestCase):
    def test_page_has_the_recordings_of_the_script(self) -> None:
        """Each with its commands, as they are run now."""
        page = PAGE.read_text(encoding="utf-8")
        self.assertEqual(names(page), list(RECORDINGS))
        for commands in RECORDINGS.values():
            for command in commands:
                self.assertIn(f"\n$ {command}\n", page)
