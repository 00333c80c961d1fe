"""`python -m tests.kills --seed N --kills N`: kill -9 of the daemon in the middle of real work.

Exit code 0: every cycle came to its right end, nothing was doubled and nothing is left.
"""

from __future__ import annotations

import argparse
import random
import shutil
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.task import react

from tests.kills.cycles import Cycles
from tests.kills.service import Service
from tests.live import seconds

FAILURES = 3
"""After so many it is of no use to go on."""


@frozen
class Cycle:
    """One that was driven to its end. end_s: from the last restart to the right end."""

    kind: str
    kills: int
    failed: bool
    end_s: float


async def drive(seed: int, kills: int, state: Path, image: Path, only: Sequence[str]) -> int:
    """The exit code."""
    service = Service(state, image, random.Random(seed))
    cycles = Cycles(service, image)
    done: list[Cycle] = []
    began = seconds()
    failed = 0
    try:
        await service.begin()
        await cycles.prepare()
        print(f"[{seconds() - began:6.1f} s] the lasting cluster is Active", flush=True)
        chosen = [k for k in cycles.kinds if not only or k in only]
        weights = [cycles.kinds[kind][0] for kind in chosen]
        while service.kills < kills and failed < FAILURES:
            kind = service.rng.choices(chosen, weights)[0]
            cycle = await one(service, cycles, kind, seed)
            done.append(cycle)
            failed += cycle.failed
            print(
                f"[{seconds() - began:6.1f} s] {service.kills:4} kills, {kind}:"
                f" {'FAILED' if cycle.failed else 'right'} {cycle.end_s:.1f} s after the restart",
                flush=True,
            )
        failed += await last(service, cycles, seed)
    finally:
        await service.daemon.remove()
        await service.cloud.remove()
    table(done, seconds() - began)
    if service.counted:
        print(f"at the lasting cluster: {service.counted}")
    return 1 if failed else 0


async def one(service: Service, cycles: Cycles, kind: str, seed: int) -> Cycle:
    """One cycle of a kind; a failing one tells its story."""
    before = service.kills
    service.story.clear()
    service.say(kind)
    right = True
    end_s = 0.0
    try:
        await cycles.kinds[kind][1]()
        end_s = seconds() - service.ready_at
        await cycles.ended()
    except Exception:
        right = False
        tell(service, seed, kind)
    return Cycle(kind, service.kills - before, not right, end_s)


async def last(service: Service, cycles: Cycles, seed: int) -> int:
    """How many of the last looks failed."""
    service.story.clear()
    failed = 0
    for look in (cycles.everything, cycles.finish, service.daemon.stop, service.check_left):
        try:
            await look()
        except Exception:
            failed += 1
            tell(service, seed, look.__name__)
    return failed


def tell(service: Service, seed: int, kind: str) -> None:
    """What happened, for a person."""
    print(f"seed {seed}, {kind}, after {service.kills} kills: FAILED")
    print("\n".join(service.story))
    traceback.print_exc(file=sys.stdout)
    print("the daemon said last:", service.daemon.said[-6000:], sep="\n", flush=True)


def table(done: Sequence[Cycle], took_s: float) -> None:
    """kind, cycles, kills, outcome, and the time from the restart to the right end."""
    print(
        f"\n{'kind':28}{'cycles':>7}{'kills':>7}{'failed':>7}   seconds from restart to right end"
    )
    for kind in sorted({c.kind for c in done}):
        mine = [c for c in done if c.kind == kind]
        times = sorted(c.end_s for c in mine if not c.failed) or [0.0]
        print(
            f"{kind:28}{len(mine):7}{sum(c.kills for c in mine):7}{sum(c.failed for c in mine):7}"
            f"   median {times[len(times) // 2]:.1f}, most {times[-1]:.1f}"
        )
    kills, failed = sum(c.kills for c in done), sum(c.failed for c in done)
    print(f"{'all':28}{len(done):7}{kills:7}{failed:7}   {took_s:.0f} s altogether")


def main(arguments: Sequence[str]) -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.kills", description=__doc__)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--kills", type=int, default=100, help="at least so many")
    parser.add_argument("--image", type=Path, default=Path("/opt/svcd/vanilla"))
    parser.add_argument("--only", action="append", default=[], help="kind of cycles, repeatable")
    given = parser.parse_args(arguments)
    if not (given.image / "hadoop").is_dir():
        parser.error(f"no software tree in {given.image}: svcd image build vanilla {given.image}")
    state = Path(tempfile.mkdtemp(prefix="svcd-kills-"))
    code = 1

    def begin(_reactor: Any) -> Deferred[None]:
        async def run() -> None:
            nonlocal code
            image = given.image.absolute()
            code = await drive(given.seed, given.kills, state, image, given.only)

        return Deferred.fromCoroutine(run())

    try:
        react(begin)
    finally:
        if code == 0:
            shutil.rmtree(state, ignore_errors=True)
        else:
            print(f"state is kept in {state}", flush=True)
        sys.exit(code)


if __name__ == "__main__":
    main(sys.argv[1:])
