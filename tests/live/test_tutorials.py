"""The commands of the tutorials, run block after block as a reader runs them."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from tests.live.test_main_job import vanilla_prefix
from tests.support.processes import ROOT, Daemon, DaemonCase
from tests.support.sample import SLOW
from tests.support.walkthrough import Block, blocks, faults, ordered, script

TUTORIALS: Final = tuple(
    f"docs/tutorials/{name}.md"
    for name in ("first-cluster", "word-count", "failure", "scaling", "pyspark", "templates",
                 "transient", "tests")
)  # fmt: skip
ELSEWHERE: Final[Mapping[str, str]] = {
    "make demo ": "tests.live.test_main_job, the door",
    "PASSWORD=$(": "tests.live.test_daemon",
    "from twisted.trial.unittest": "tests.unit.test_testing",
    "twistd -n --pidfile= svcd --config": "tests.live.test_tap; tests.unit.cli.test_main",
    "make lint ": "the door; below, that the targets exist",
    "svcd image build vanilla state/": "tests.live.test_release",
    "{toctree}": "tests.system.test_docs",
}
"""Begin of a block that no walk runs -> the test that runs it."""
WALK_S: Final = 840.0


def of(pages: Sequence[str]) -> Sequence[Block]:
    """All blocks of some pages."""
    return [block for page in pages for block in blocks(page, (ROOT / page).read_text("utf-8"))]


class BlockTests(SynchronousTestCase):
    def test_every_block_is_run_by_a_test(self) -> None:
        """By a walk, or by the test that the table names."""
        left = [block.text for block in of(["README.md", *TUTORIALS]) if not block.runs]
        self.assertEqual([t for t in left if not t.startswith(tuple(ELSEWHERE))], [])

    def test_all_tutorials_are_run(self) -> None:
        """Each page of the folder."""
        found = {str(p.relative_to(ROOT)) for p in (ROOT / "docs" / "tutorials").glob("*.md")}
        self.assertEqual(found - {"docs/tutorials/index.md"}, set(TUTORIALS))

    def test_named_targets_of_make_exist(self) -> None:
        """On all pages."""
        known = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
        for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))):
            found = set(re.findall(r"(?:^|`)make ([a-z]+)", page.read_text("utf-8"), re.MULTILINE))
            self.assertEqual(found - known, set(), page)

    def test_script_and_its_faults(self) -> None:
        """A line that is missing, and a block that fails, are named."""
        page = (
            "```sh\necho a  b\n```\n```text\na b\n```\n<!-- exit code 3 -->\n```sh\nexit 3\n```\n"
            "```sh at the end\nfalse\n```\n```python x.py\n1\n```\n```sh\ncat x.py\n```\n"
        )
        steps = ordered(blocks("page", page), real=False)
        self.assertEqual(
            [s.text for s in steps], ["echo a  b\n", "exit 3\n", "1\n", "cat x.py\n", "false\n"]
        )
        said = "@@@ step 0\na  b\n@@@ step 1\n@@@ step 2\n@@@ step 3\n1\n@@@ step 4\noh\n"
        self.assertEqual(list(faults(steps, said, {})), ["page: this block failed\nfalse\noh\n"])
        self.assertIn("no line 'a b'", next(faults(steps, said.replace("a  b", "c"), {})))


class _Walk(DaemonCase):
    async def walk(
        self,
        pages: Sequence[str],
        real: bool,
        replaced: Mapping[str, str],
        first: Sequence[Block] = (),
        **settings: str,
    ) -> None:
        """Run the blocks of `pages` beside a daemon whose state folder is `state`.

        first: blocks that run before them.
        """
        place = Path(self.mktemp()).absolute()
        place.mkdir()
        for name in ("README.md", "docs"):
            (place / name).symlink_to(ROOT / name)
        daemon = Daemon(place / "state", **settings)
        self.addCleanup(lambda: Deferred.fromCoroutine(daemon.remove()))
        await daemon.start()
        everything = {"http://127.0.0.1:8386": str(daemon.endpoints["api"]), **replaced}
        steps = [*first, *ordered(of(pages), real)]
        (place / "walk.sh").write_text(script(steps, everything))
        program = self.program(
            "/bin/bash", "-c", "cd $0 && exec bash walk.sh 2>&1 </dev/null", str(place),
            environment={"PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"},
        )  # fmt: skip
        ended = await program.end(WALK_S)
        if found := list(faults(steps, ended.out, everything)):
            self.fail("\n".join(found))


class FakeTests(_Walk):
    timeout = 900

    async def test_tutorials(self) -> None:
        """Without Hadoop: the distribution `fake` takes the place of vanilla."""
        image = Block(
            page="-", language="sh", title="", text="svcd image register plain --user svcd\n"
        )
        await self.walk(TUTORIALS, False, {"vanilla": "fake", "3.5.0": "0.1"}, [image])


class RealTests(_Walk):
    timeout = 900
    skip = SLOW

    async def test_tutorials(self) -> None:
        """Those that show results of jobs, and what these build on. The README: test_release."""
        pages = [p for p in TUTORIALS if any(b.real for b in of([p])) or p.endswith("templates.md")]
        prefix = str(vanilla_prefix())
        await self.walk(pages, True, {}, plugins__enabled="vanilla", embedded__image_prefix=prefix)
