"""`python -m tests.kills --seed N --kills N`: kill -9 of the daemon in the middle of real work.

Without `--platform` on an embedded cloud, one cycle after another, amid jobs of real Hadoop. With
`--platform PLATFORM_JSON` on the real OpenStack of that file: several users side by side with
clusters of plugin `fake` on real servers, and one with real Hadoop if SVCD_TEST_OS_VANILLA says
that the servers have it. Exit code 0: every cycle came to its right end, nothing was doubled and
nothing is left.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.task import react

from tests.kills.clouds import Cloud, EmbeddedCloud

BESIDE = 4
"""Users of small clusters at the same time on a real cloud, which mostly waits."""


def cloud_of(platform: Path | None, state: Path, image: Path | None) -> Cloud:
    """The environment tells the suites of a real OpenStack where it is, at their import."""
    if platform is None:
        return EmbeddedCloud(state, image or Path())
    os.environ["SVCD_TEST_OS_PLATFORM"] = str(platform.absolute())
    from tests.kills.real import RealCloud

    return RealCloud()


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=100, help="at least so many")
    parser.add_argument("--image", type=Path, default=Path("/opt/svcd/vanilla"))
    parser.add_argument("--platform", type=Path, help="platform.json of a real OpenStack")
    given = parser.parse_args(arguments)
    image: Path | None = given.image.absolute()
    if given.platform is not None:
        if not given.platform.is_file():
            parser.error(f"no file {given.platform}")
        tree = os.environ.get("SVCD_TEST_OS_VANILLA")
        image = Path(tree) if tree else None
    if image is not None and not (image / "hadoop").is_dir():
        parser.error(f"no software tree in {image}: svcd image build vanilla {image}")
    state = Path(tempfile.mkdtemp(prefix="svcd-kills-"))
    code = 1

    async def run() -> None:
        nonlocal code
        from tests.kills.run import Run

        cloud, rng = cloud_of(given.platform, state, image), random.Random(given.seed)
        alone = given.platform is None
        if await Run(cloud, state, rng, image, 1 if alone else BESIDE).to_end(given.kills, alone):
            code = 0

    def begin(_reactor: Any) -> Deferred[None]:
        return Deferred.fromCoroutine(run())

    try:
        react(begin)
    finally:
        if code == 0:
            shutil.rmtree(state, ignore_errors=True)
        else:
            print(f"state is kept in {state}, seed {given.seed}", flush=True)
        sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
