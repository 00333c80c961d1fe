"""The texts for users keep to plain words."""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.main import _parser
from svcd.model.failures import KNOWN
from svcd.settings import schema

ROOT = Path(__file__).parent.parent.parent

AVOIDED = (
    "any more",
    "comes to light",
    "cures?",
    "gone on with",
    "goes on with",
    "heeds?",
    "is to be",
    "are to be",
    "nobody",
    "ought to",
    "somebody",
    "tells?",
    "that which",
    "told",
    "whoever",
)
"""Words of riddles: the plain text names who acts, the thing, and the field's term."""

_FOUND = re.compile(rf"\b({'|'.join(AVOIDED)})\b", re.IGNORECASE)


def usages(parser: argparse.ArgumentParser, name: str) -> Iterator[tuple[str, str]]:
    """The help of a command and of its subcommands."""
    yield name, parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for word, each in action.choices.items():
                yield from usages(each, f"{name} {word}")


def texts() -> Iterator[tuple[str, str]]:
    """Each text for users with the name of its place."""
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    for page in (*pages, *sorted((ROOT / "newsfragments").glob("*.md"))):
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            yield f"{page.relative_to(ROOT)}:{number}", line
    for command, usage in usages(_parser(), "svcd"):
        yield f"help of {command}", usage
    for key, (_, description, _) in schema().items():
        yield f"setting {key}", description
    for code, known in KNOWN.items():
        yield f"failure {code}", f"{known.meaning} {known.advice}"


class WordsTests(SynchronousTestCase):
    def test_texts_for_users_use_plain_words(self) -> None:
        """Docs, news, settings and failures."""
        found = [f"{place}: {hit[0]}" for place, text in texts() for hit in _FOUND.finditer(text)]
        self.assertEqual(found, [])
