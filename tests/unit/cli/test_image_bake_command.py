"""The refusals of `svcd image bake` before it asks the cloud for anything."""

from __future__ import annotations

import io
import os
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.image_bake import Screen
from svcd.cli.images import IMAGES
from svcd.cli.session import Session
from tests.support.commands import RunCase, Said

BAKE = ("image", "bake", "vanilla", "--base", "plain", "--flavor", "m1.small")


class ScreenTests(SynchronousTestCase):
    def test_a_reader_that_has_gone(self) -> None:
        """As `| tee` after Ctrl-C: the bake goes on, and removes what it has made."""
        read, write = os.pipe()
        os.close(read)
        with redirect_stderr(io.TextIOWrapper(io.FileIO(write, "w"), write_through=True)):
            screen = Screen(Session())
            screen.note("removing")
            self.assertRaises(BrokenPipeError, print, "x", file=sys.stderr)


class CommandTests(RunCase):
    def refused(self, *more: str, known: bool = True) -> Said:
        said = self.shown.run(*BAKE, *more, known=known)
        self.assertEqual(
            (said.out, said.err.splitlines()[-1][:17]), ("", "svcd image bake: "), said
        )
        return said

    def test_no_login(self) -> None:
        """It comes before the build of the tree; no daemon is needed."""
        said = self.refused("--tree", "/nowhere", known=False)
        self.assertEqual(said.code, 2)
        self.assertIn("no login at a cloud: set OS_AUTH_URL and the other OS_ variables", said.err)

    def test_words_that_the_registry_refuses(self) -> None:
        """They would fail at the end of a long bake."""
        self.assertIn("--user 'a b' is no login name", self.refused("--user", "a b").err)
        self.assertIn("--tag 'x y' is no tag", self.refused("--tag", "x y").err)

    def test_no_tree(self) -> None:
        """With the command that builds it."""
        said = self.refused("--tree", "/nowhere")
        self.assertEqual(said.code, 1)
        self.assertIn("/nowhere does not exist; build it: svcd image build vanilla /now", said.err)

    def test_the_result_needs_no_daemon(self) -> None:
        """The bake shows the image with the login at the cloud alone."""
        out = io.StringIO()
        row = {"id": "i", "name": "baked", "tags": ["vanilla"], "status": "ACTIVE"}
        with Session(state_dir=str(self.folder / "none")) as session, redirect_stdout(out):
            session.show({"image": row}, IMAGES)
        self.assertIn("baked", out.getvalue())

    def test_an_incomplete_tree(self) -> None:
        """The first fault is named."""
        tree = Path(self.mktemp())
        tree.mkdir()
        said = self.refused("--tree", str(tree))
        self.assertIn(f"{tree.absolute()}/bin/hadoop is missing; build it", said.err)
