"""docs/architecture.md and docs/take-it-over.md agree with the tree."""

from __future__ import annotations

import re

from twisted.trial.unittest import SynchronousTestCase

from tests.support import drawings

PAGES = [drawings.ROOT / "docs" / name for name in ("architecture.md", "take-it-over.md")]


class PictureTests(SynchronousTestCase):
    def test_the_committed_picture_is_the_present_one(self) -> None:
        """Draw it anew with: python -m tests.support.drawings."""
        self.assertEqual(drawings.PICTURE.read_text(encoding="utf-8"), drawings.drawn())


class PageTests(SynchronousTestCase):
    def test_every_named_file_is_there(self) -> None:
        """`svcd/...` and `tests/...` in the pages; NAME and 00N stand for a name of one's own."""
        for page in PAGES:
            text = page.read_text(encoding="utf-8")
            named = set(re.findall(r"`((?:svcd|tests|docs|scripts)/[\w./-]+)`", text))
            self.assertGreater(len(named), 20)
            own = {name for name in named if "NAME" in name or "00N" in name}
            root = drawings.ROOT
            absent = [name for name in sorted(named - own) if not (root / name).exists()]
            files = [*root.glob("*.py"), *(root / "svcd").rglob("*.*")]
            known = {file.name for file in files}
            short = set(re.findall(r"`([\w/]+\.(?:py|js))`", text)) - named - own
            absent += sorted(name for name in short if name.rpartition("/")[2] not in known)
            self.assertEqual(absent, [], page)
