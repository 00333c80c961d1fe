"""The pages of the documentation: links, the site, and the parts that are made from code."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import ClassVar

from twisted.trial.unittest import SynchronousTestCase

from svcd.errors import SvcdError
from svcd.settings import schema
from tests.support.promlint import families
from tests.system.test_monitoring import exposition

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SITE_S = 300.0
_LINK = re.compile(r"!?\[[^\]]*\]\(([^)\s]+)\)")
_BLOCK = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_TITLE = re.compile(r"^#+ (.+)$", re.MULTILINE)


def pages() -> list[Path]:
    """README.md and all pages of the site."""
    return [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]


def anchors(text: str) -> set[str]:
    """The anchors of a page, as a view of the repository makes them."""
    titles = _TITLE.findall(_BLOCK.sub("", text))
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def broken(page: Path) -> Iterator[str]:
    """The links of a page to files or anchors that do not exist."""
    for target in _LINK.findall(_BLOCK.sub("", page.read_text("utf-8"))):
        if re.match(r"\w+:", target):
            continue
        path, _, anchor = target.partition("#")
        there = (page.parent / path).resolve() if path else page
        if not there.exists() or (anchor and anchor not in anchors(there.read_text("utf-8"))):
            yield f"{page.relative_to(ROOT)}: {target}"


class LinkTests(SynchronousTestCase):
    def test_links_lead_to_files_and_titles(self) -> None:
        """In a view of the repository, without the site."""
        self.assertEqual([link for page in pages() for link in broken(page)], [])

    def test_each_page_of_the_site_is_in_a_list_of_pages(self) -> None:
        """So that a reader finds it from the first page."""
        listed = set()
        for page in DOCS.rglob("*.md"):
            for block in re.findall(
                r"^```{toctree}\n(.*?)^```$", page.read_text("utf-8"), re.M | re.S
            ):
                names = (line for line in block.splitlines() if line and not line.startswith(":"))
                listed |= {(page.parent / f"{name}.md").resolve() for name in names}
        self.assertEqual(
            {page.resolve() for page in DOCS.rglob("*.md")} - listed, {DOCS / "index.md"}
        )

    def test_each_page_is_in_the_list_of_the_first_page(self) -> None:
        """Once, with what a reader finds there."""
        text = (DOCS / "index.md").read_text("utf-8")
        rows = re.findall(r"^- \[[^\]]+\]\((\S+\.md)\): (.+)$", text, re.M)
        pages = {str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")} - {"index.md"}
        self.assertEqual(sorted(page for page, _ in rows), sorted(pages))


class _Words(HTMLParser):
    """The text of a page, and what it loads."""

    LOADING: ClassVar = {"script": "src", "img": "src", "link": "href"}

    def __init__(self) -> None:
        super().__init__()
        self.text: list[str] = []
        self.loaded: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.loaded += [value or "" for name, value in attrs if name == self.LOADING.get(tag)]

    def handle_data(self, data: str) -> None:
        self.text.append(data)


class SiteTests(SynchronousTestCase):
    def test_site(self) -> None:
        """Sphinx makes it without a warning, with the reference, and it loads from itself only."""
        with tempfile.TemporaryDirectory() as place:
            command = [sys.executable, "-m", "sphinx", "-q", "-W", "--keep-going", str(DOCS), place]
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=SITE_S, check=False
            )
            self.assertEqual((done.returncode, done.stderr), (0, ""))
            read = {page: _Words() for page in Path(place).rglob("*.html")}
            for page, words in read.items():
                words.feed(page.read_text("utf-8"))
            texts = {
                str(page.relative_to(place)): "".join(words.text) for page, words in read.items()
            }
            loaded = {each for words in read.values() for each in words.loaded}
        self.assertEqual([each for each in loaded if re.match(r"(\w+:)?//", each)], [])
        absent = [key for key in schema() if key not in texts["reference/settings.html"]]
        self.assertEqual(absent, [])
        kinds = [kind for kind in _kinds(SvcdError) if kind.__module__.startswith("svcd.")]
        names = {kind.name for kind in kinds if "name" in vars(kind)}
        self.assertEqual([n for n in names if n not in texts["reference/errors.html"]], [])
        shown = {family.name for family in families(exposition(self))}
        own = {name for name in shown if name.startswith("svcd_")}
        listed = texts["reference/metrics.html"]
        self.assertEqual([name for name in own if name not in listed], [])
        for page, word in (
            ("metrics", "svcd_lease_held"),
            ("cli", "svcd cluster create"),
            ("api", "createCluster"),
            ("api", "GivenCredentials"),
        ):
            self.assertIn(word, texts[f"reference/{page}.html"])


def _kinds(kind: type[SvcdError]) -> Iterator[type[SvcdError]]:
    yield kind
    for each in kind.__subclasses__():
        yield from _kinds(each)
