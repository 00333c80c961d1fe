"""`python -m tests.kills.dead`: a part of the cluster dies in the middle of a running job.

For each of Oozie, ResourceManager, NameNode, DataNode, NodeManager, a whole worker and a full disk:
a new cluster, a job whose task runs, and the blow. What the API and `svcd why` say is printed for a
person, and is asserted: the code of what is told and its deadline, of the job and of one that is
begun after it, that the job ends (by a cancel, or given up), that the cluster can be deleted, and
that nothing is left. The exit code is 1 when any of it was not so.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.task import react

from tests.kills.outage import CANCELLED_S, Outage
from tests.support.live import seconds

GIVES_UP_S = 120.0
LONG_S = 600.0
SHORT_S = 45.0
"""Of a job that is to need HDFS after the blow: its end does."""


@frozen(kw_only=True)
class Part:
    """What must be said.

    says: any of these codes, of the job that runs, within_s after the blow; also: of one begun
    later. ends_s: within it the job ends by itself, with a code of `says`; None: it is cancelled.
    """

    says: frozenset[str]
    within_s: float
    also: frozenset[str]
    also_s: float = 120.0
    ends_s: float | None = None
    sleep_s: float = LONG_S


def _of(*codes: str) -> frozenset[str]:
    return frozenset(codes)


PARTS = {
    "oozie": Part(
        says=_of("ENGINE_UNREACHABLE"), within_s=30.0, also=_of("ENGINE_UNREACHABLE"), also_s=60.0
    ),
    "resourcemanager": Part(
        says=_of("RESOURCES_UNREACHABLE"),
        within_s=180.0,
        also=_of("RESOURCES_UNREACHABLE", "STEP_WAITS"),
        ends_s=300.0,
    ),
    "namenode": Part(
        says=_of("RESOURCES_UNREACHABLE", "FILE_SYSTEM"),
        within_s=300.0,
        also=_of("STAGING_FAILED"),
        sleep_s=SHORT_S,
    ),
    "datanode": Part(
        says=_of("FILE_SYSTEM"),
        within_s=400.0,
        also=_of("STAGING_FAILED"),
        ends_s=300.0,
        sleep_s=SHORT_S,
    ),
    "nodemanager": Part(
        says=_of("NO_WORKERS"), within_s=120.0, also=_of("NO_WORKERS"), ends_s=GIVES_UP_S + 90.0
    ),
    "worker": Part(
        says=_of("NO_WORKERS"), within_s=120.0, also=_of("STAGING_FAILED", "NO_WORKERS")
    ),
    "disk": Part(
        says=_of("NO_SPACE"),
        within_s=180.0,
        also=_of("STAGING_FAILED"),  # the name node takes no changes on a full disk
        ends_s=GIVES_UP_S + 90.0,
    ),
}


async def happens(outage: Outage, name: str, part: Part) -> None:
    """One outage from its beginning to the last look. Raises Wrong."""
    if name == "disk":
        outage.small_disk()
    await outage.begin()
    execution = await outage.running(part.sleep_s)
    if name == "worker":
        await outage.remove_worker()
    elif name == "disk":
        outage.fill_disk()
    else:
        outage.kill(name)
    await outage.explained(execution, await outage.told(execution, part.says, part.within_s))
    await outage.explained(outage.cluster_id, "outage")
    other = await outage.execute(LONG_S)
    await outage.explained(other, await outage.told(other, part.also, part.also_s))
    if part.ends_s is None:
        # a dead engine kills nothing: given up, it is KILLED as wished
        await outage.cancelled(execution, CANCELLED_S + GIVES_UP_S)
    else:
        info = await outage.ended(execution, part.ends_s)
        assert info["failure"]["code"] in part.says, info
    await outage.deleted()


async def drive(names: Sequence[str], state: Path, image: Path) -> None:
    """One after the other; SystemExit tells those that were wrong."""
    wrong = []
    for name in names:
        print(f"\n==== {name}", flush=True)
        began = seconds()
        outage = Outage(state / name, image, GIVES_UP_S)
        try:
            await happens(outage, name, PARTS[name])
            print(f"==== {name}: as it must be, in {seconds() - began:.0f} s", flush=True)
        except AssertionError as error:
            wrong.append(name)
            print(f"==== {name}: WRONG: {error}", flush=True)
        finally:
            await outage.end()
    if wrong:
        raise SystemExit(f"wrong: {', '.join(wrong)}")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kills.dead", description=__doc__)
    parser.add_argument(
        "parts", nargs="*", default=list(PARTS), metavar="PART", help=", ".join(PARTS)
    )
    parser.add_argument("--image", type=Path, default=Path("/opt/svcd/vanilla"))
    given = parser.parse_args(arguments)
    unknown = sorted(set(given.parts) - set(PARTS))
    if unknown:
        parser.error(f"no such part: {', '.join(unknown)}")
    with tempfile.TemporaryDirectory(prefix="svcd-dead-") as state:
        work = drive
        react(
            lambda _reactor: Deferred.fromCoroutine(
                work(given.parts, Path(state), given.image.absolute())
            )
        )


if __name__ == "__main__":
    main(sys.argv[1:])
