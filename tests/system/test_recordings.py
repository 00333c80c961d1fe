"""The recordings of docs/jobs.md: each is made by the script, and is short."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.support.recordings import PAGE, RECORDINGS, names, shortened, written


class RecordingTests(SynchronousTestCase):
    def test_page_has_the_recordings_of_the_script(self) -> None:
        """Each with its commands, as they are run now."""
        page = PAGE.read_text(encoding="utf-8")
        self.assertEqual(names(page), list(RECORDINGS))
        for commands in RECORDINGS.values():
            for command in commands:
                self.assertIn(f"\n$ {command}\n", page)

    def test_written(self) -> None:
        """Only the text at the marks changes."""
        page = "a\n<!-- recording: run -->\n```\nold\n```\nb\n```\nc\n```\n"
        self.assertEqual(
            written(page, {"run": "new"}),
            "a\n<!-- recording: run -->\n```\nnew\n```\nb\n```\nc\n```\n",
        )

    def test_long_output(self) -> None:
        """Its beginning, its end, and the number of lines between."""
        text = "\n".join(str(n) for n in range(40))
        lines = shortened(text).splitlines()
        self.assertEqual((lines[8], lines[9], lines[10]), ("8", "[… 23 lines …]", "32"))
        self.assertEqual(shortened("x" * 200), "x" * 115 + "…")
