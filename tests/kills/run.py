"""A whole run: users with their cycles, one after another or side by side, and the last looks."""

from __future__ import annotations

import random
import sys
import traceback
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path

from svcd.runtime.tasks import gather
from tests.kills.clouds import Cloud
from tests.kills.cycles import GONE_S, Cycles, Step
from tests.kills.jobs import Jobs
from tests.kills.lives import Lives
from tests.kills.service import Service
from tests.kills.things import Wrong, check_said
from tests.support.live import seconds
from tests.support.processes import until

FAILURES = 3
"""After so many it is of no use to go on."""
LOOSE_S = 600.0
"""svcd looks after a loose trust when it is 5 minutes old."""


class Run:
    """image: software tree of real Hadoop; None: no such cluster. beside: users of small ones."""

    def __init__(
        self, cloud: Cloud, state: Path, rng: random.Random, image: Path | None, beside: int
    ) -> None:
        self.service = Service(state, cloud, rng)
        self.jobs: Jobs | None = None
        self.users: list[Cycles] = []
        if image is not None:
            self.jobs = Jobs(self.service, "hadoop", self._rng(rng), image)
            self.users.append(self.jobs)
        self.lives = [Lives(self.service, f"small{n}", self._rng(rng)) for n in range(beside)]
        self.users += self.lives
        self.failed = 0
        self._began = seconds()

    @staticmethod
    def _rng(rng: random.Random) -> random.Random:
        return random.Random(rng.random())

    async def to_end(self, kills: int, in_turn: bool) -> bool:
        """Whether all was right. in_turn: one cycle after another, else the users side by side."""
        try:
            await self.service.begin()
            for each in (self.jobs, *self.lives):
                if each is not None:
                    await each.prepare()
            self._print("prepared")
            chosen = [(u, k, w) for u in self.users for k, (w, _) in u.kinds.items()]
            if in_turn:
                await self._in_turn(chosen, kills)
            else:
                await self._beside(chosen, kills)
            await self._last()
        finally:
            await self.service.end()
        self._table()
        return not self.failed

    async def _in_turn(self, chosen: Sequence[tuple[Cycles, str, int]], kills: int) -> None:
        weights = [weight for *_, weight in chosen]
        while self._goes_on(kills):
            ((user, kind, _),) = self.service.rng.choices(chosen, weights)
            if await self._cycle(user, kind):
                await self._look("the cloud after the cycle", self._check)

    async def _beside(self, chosen: Sequence[tuple[Cycles, str, int]], kills: int) -> None:
        async def work(user: Cycles) -> None:
            mine = [(kind, weight) for each, kind, weight in chosen if each is user]
            kinds, weights = [kind for kind, _ in mine], [weight for _, weight in mine]
            while mine and self._goes_on(kills):
                await self._cycle(user, user.rng.choices(kinds, weights)[0])

        for each in await gather([partial(work, user) for user in self.users], len(self.users)):
            if isinstance(each, BaseException):
                raise each

    def _goes_on(self, kills: int) -> bool:
        return self.service.kills < kills and self.failed < FAILURES

    async def _cycle(self, user: Cycles, kind: str) -> bool:
        before = len(user.steps)
        right = await self._look(f"{user.name}, {kind}", user.kinds[kind][1])
        steps = ", ".join(f"{s.kind} {s.took_s:.0f} s" for s in user.steps[before:])
        self._print(f"{self.service.kills:4} kills, {user.name}: {steps}")
        return right

    async def _look(self, what: str, work: Callable[[], Awaitable[None]]) -> bool:
        """Whether it was right; a failing one tells its story."""
        try:
            await work()
        except Exception:
            self.failed += 1
            print(f"{what}, after {self.service.kills} kills: FAILED")
            print("\n".join(self.service.story))
            traceback.print_exc(file=sys.stdout)
            print("the daemon said last:", self.service.daemon.said[-8000:], sep="\n", flush=True)
            return False
        return True

    async def _last(self) -> None:
        """When nobody asks for anything any more."""
        looks: list[tuple[str, Callable[[], Awaitable[None]]]] = []
        if self.jobs is not None:
            looks += [("the lasting cluster", self.jobs.lasting)]
            looks += [("the engine", self.jobs.everything)]
        looks += [("what is there", self._check)]
        if self.failed:
            looks += [("what failed cycles have left", self._clear)]
        if self.jobs is not None:
            looks += [("the end of the lasting cluster", self.jobs.finish)]
        looks += [("what is left", self._loose)]
        looks += [("the daemon's stop", self._stop), ("the cloud", self.service.cloud.swept)]
        for what, work in looks:
            await self._look(what, work)

    async def _check(self) -> None:
        await self.service.check()

    async def _clear(self) -> None:
        """Clusters of cycles that broke off."""
        tenant = self.service.tenant
        kept = self.jobs.cluster_id if self.jobs is not None else ""
        for each in (await tenant.done("GET", "/clusters"))["clusters"]:
            if each["id"] != kept:
                await tenant.done("DELETE", f"/clusters/{each['id']}?force=true")
                await tenant.until_gone(each["id"], GONE_S)

    async def _loose(self) -> None:
        """The trusts of creates that were not taken are given back, after some minutes."""
        loose = await self.service.check()
        if not loose:
            return
        self._print(f"{len(loose)} trusts to be given back")

        async def none() -> bool:
            return not await self.service.check()

        await until(none, "no trust without a row", LOOSE_S, 5.0)

    async def _stop(self) -> None:
        ended = await self.service.daemon.stop()
        if ended.code != 0:
            raise Wrong(f"the daemon ended with {ended.code}")
        check_said(self.service.daemon.said)

    def _print(self, text: str) -> None:
        print(f"[{seconds() - self._began:6.1f} s] {text}", flush=True)

    def _table(self) -> None:
        """kind, how often, kills meanwhile, failures, and how long one took with its kills."""
        steps: list[Step] = [step for user in self.users for step in user.steps]
        print(f"\n{'step':28}{'done':>6}{'kills':>7}{'failed':>7}   seconds, with the kills")
        for kind in sorted({s.kind for s in steps}):
            mine = [s for s in steps if s.kind == kind]
            times = sorted(s.took_s for s in mine if not s.failed) or [0.0]
            kills, failed = sum(s.kills for s in mine), sum(s.failed for s in mine)
            print(
                f"{kind:28}{len(mine):6}{kills:7}{failed:7}"
                f"   median {times[len(times) // 2]:.1f}, most {times[-1]:.1f}"
            )
        print(
            f"{'all':28}{len(steps):6}{self.service.kills:7}{self.failed:7}"
            f"   {seconds() - self._began:.0f} s altogether (side by side a kill counts for each)"
        )
        if self.jobs is not None and self.jobs.counted:
            print(f"at the lasting cluster: {self.jobs.counted}")
