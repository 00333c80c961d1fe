"""docs/architecture.md agrees with the tree."""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from tests.support import drawings

PAGE = drawings.ROOT / "docs" / "architecture.md"


class ReducedTests(SynchronousTestCase):
    def test_an_import_that_follows_from_others_is_left_out(self) -> None:
        """a imports c by b already."""
        known = {"a": {"b", "c"}, "b": {"c"}, "c": set()}
        self.assertEqual(drawings.reduced(known), {"a": {"b"}, "b": {"c"}, "c": set()})


class LayersTests(SynchronousTestCase):
    def test_a_layer_names_its_rooms(self) -> None:
        """Of the one contract that orders the rooms."""
        text = """
            [[tool.importlinter.contracts]]
            name = "other"
            [[tool.importlinter.contracts]]
            name = "rooms import downwards only"
            layers = ["a", "b | c"]
        """
        self.assertEqual(drawings.layers(text), [["a"], ["b", "c"]])


class PictureTests(SynchronousTestCase):
    def test_the_committed_picture_is_the_present_one(self) -> None:
        """Draw it anew with: python -m tests.support.drawings."""
        self.assertEqual(drawings.PICTURE.read_text(encoding="utf-8"), drawings.drawn())


class PageTests(SynchronousTestCase):
    def test_every_named_file_is_there(self) -> None:
        """`svcd/...` and `tests/...` in the page; NAME and 000N stand for a name of one's own."""
        text = PAGE.read_text(encoding="utf-8")
        named = set(re.findall(r"`((?:svcd|tests|docs)/[\w./-]+)`", text))
        self.assertGreater(len(named), 20)
        made = {each for each in named if "NAME" in each or "000N" in each}
        absent = [each for each in sorted(named - made) if not (drawings.ROOT / each).exists()]
        self.assertEqual(absent, [])
