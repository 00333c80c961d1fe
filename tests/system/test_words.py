"""The texts for users keep to plain words."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.main import root
from svcd.model.failures import Code
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


def usages(command: click.Command, ctx: click.Context) -> Iterator[tuple[str, str]]:
    """The help of a command and of its subcommands."""
    yield ctx.command_path, command.get_help(ctx)
    if isinstance(command, click.Group):
        for word in command.list_commands(ctx):
            each = command.get_command(ctx, word)
            if each is not None:
                yield from usages(each, click.Context(each, parent=ctx, info_name=word))


def texts() -> Iterator[tuple[str, str]]:
    """Each text for users with the name of its place."""
    pages = [ROOT / "README.md", ROOT / "NEWS.md", *sorted((ROOT / "docs").rglob("*.md"))]
    for page in (*pages, *sorted((ROOT / "newsfragments").glob("*.md"))):
        for number, line in enumerate(page.read_text("utf-8").splitlines(), 1):
            yield f"{page.relative_to(ROOT)}:{number}", line
    for command, usage in usages(
        root, click.Context(root, info_name="svcd", **root.context_settings)
    ):
        yield f"help of {command}", usage
    for key, declared in schema().items():
        yield f"setting {key}", declared.text
    for code in Code:
        yield f"failure {code}", f"{code.meaning} {code.advice}"


class WordsTests(SynchronousTestCase):
    def test_texts_for_users_use_plain_words(self) -> None:
        """Docs, news, settings and failures."""
        found = [f"{place}: {hit[0]}" for place, text in texts() for hit in _FOUND.finditer(text)]
        self.assertEqual(found, [])
