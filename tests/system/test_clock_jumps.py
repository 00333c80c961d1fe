"""The clock of the daemon's machine is set while everything goes on: forward, back, by years.

Time is that of the others (`svcd.runtime.clock`); `set_clock` moves only what the daemon's machine
shows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from svcd.runtime.clock import STEER
from tests.support.cloud_watch import WatchedCloudTestCase
from tests.support.fakes import RUNNING

HOUR_S = 3600.0
TEN_YEARS_S = 315_576_000.0
BACK: Mapping[str, float] = {"-1 h": -HOUR_S, "-10 y": -TEN_YEARS_S}
JUMPS: Mapping[str, float] = {"+1 h": HOUR_S, "+10 y": TEN_YEARS_S, **BACK}
SERVERS = "compute POST /v2.1/servers"
MOMENTS_S = (0.0, 0.3, 2.0, 5.5, 7.0)
"""After the request: accepted, asked for, in BUILD, prepared, started."""


class JumpCase(WatchedCloudTestCase):
    settings = {"embedded.boot_s": "5", "embedded.list_lag_s": "2"}

    def restart(self, jump: float) -> None:
        """The daemon is killed, the clock is set, the daemon starts again."""
        self.svcd.kill()
        self.svcd.set_clock(jump)
        self.svcd.restart()

    def took(self, work: Callable[[], object]) -> float:
        """Seconds that everybody else has counted."""
        began = self.svcd.clock.seconds()
        work()
        return self.svcd.clock.seconds() - began

    def until_settled(self, cluster_id: str, limit_s: float) -> str:
        settled = ("Active", "Error")
        self.until(lambda: self.api.cluster(cluster_id)["status"] in settled, limit_s, 0.5)
        return str(self.api.cluster(cluster_id)["status"])

    def in_order(self, shown: Mapping[str, Any]) -> None:
        """No time of a record is before the one that it follows."""
        created = shown["created_at"]
        self.assertLessEqual(created, shown.get("updated_at") or created)


class RunningTests(JumpCase):
    """The daemon goes on through the jump: everything ends as it would have, and when it would."""

    def test_create(self) -> None:
        """Three servers, and Active after the same time."""
        usual = self.took(lambda: self.active(self.create()))
        for name, jump in JUMPS.items():
            for moment in MOMENTS_S:
                self.begin()
                cluster_id = self.create()
                self.svcd.advance(moment)
                self.svcd.set_clock(jump)
                took = moment + self.took(lambda: self.active(cluster_id))  # noqa: B023
                self.assertLess(abs(took - max(usual, moment + 60)), 3.0, (name, moment))
                self.assertEqual(self.made(SERVERS), 3, (name, moment))
                self.in_order(self.api.cluster(cluster_id))

    def test_scale_up_and_down(self) -> None:
        """One server more, then two fewer."""
        for name, jump in JUMPS.items():
            for moment in (0.3, 6.0):
                self.begin()
                cluster_id = self.create()
                self.active(cluster_id)
                self.scale(cluster_id, 3)
                self.svcd.advance(moment)
                self.svcd.set_clock(jump)
                self.assertEqual(self.until_settled(cluster_id, 60.0), "Active", (name, moment))
                self.scale(cluster_id, 1)
                self.svcd.advance(moment / 10)
                self.svcd.set_clock(-jump)
                self.active(cluster_id, 60.0)
                self.assertEqual(self.made(SERVERS), 4, (name, moment))
                self.assertEqual(len(self.servers()), 2, (name, moment))

    def test_time_out_comes_when_it_would_have_come(self) -> None:
        """A server that never boots is given up after its half hour, neither sooner nor later."""
        for name, jump in JUMPS.items():
            self.begin(embedded__boot_s="1e9")
            cluster_id = self.create()
            self.svcd.advance(600)
            self.svcd.set_clock(jump)
            took = 600 + self.took(lambda: self.until_settled(cluster_id, 7200.0))  # noqa: B023
            self.assertLess(abs(took - 1800.0), 1800.0 * STEER + 2.0, name)

    def test_callers_tokens_are_known(self) -> None:
        """Keystone's tokens say when they end by Keystone's clock."""
        self.settings = {**self.settings, "auth.mode": "keystone"}
        for jump in JUMPS.values():
            self.begin()
            self.svcd.set_clock(jump)
            self.assertEqual(self.api.get("/clusters")["clusters"], [])
            self.svcd.restart()
            self.active(self.create(workers=1), 120.0)


class RestartTests(JumpCase):
    """The clock is set between the death of a daemon and the next start."""

    def test_create_when_the_clock_was_ahead(self) -> None:
        """Its rows lie in the future: no wait is longer for that, and nothing is made twice."""
        for name, jump in BACK.items():
            for moment in MOMENTS_S:
                self.begin()
                cluster_id = self.create()
                self.svcd.advance(moment)
                self.restart(jump)
                self.active(cluster_id, 120.0)
                self.assertEqual(self.made(SERVERS), 3, (name, moment))
                self.in_order(self.api.cluster(cluster_id))

    def test_create_when_the_clock_was_behind(self) -> None:
        """Nobody can tell it from a stop of an hour: it goes on or it ends, never doubled."""
        for moment in MOMENTS_S:
            self.begin()
            cluster_id = self.create()
            self.svcd.advance(moment)
            self.restart(HOUR_S)
            self.until_settled(cluster_id, 300.0)
            self.svcd.advance(120)
            self.assertLessEqual(self.made(SERVERS), 3, moment)
            self.assertIn(len(self.servers()), (0, 3), moment)

    def test_time_out_when_the_clock_was_ahead(self) -> None:
        """Half an hour from the restart at most, not from a moment ten years ahead."""
        for name, jump in BACK.items():
            self.begin(embedded__boot_s="1e9")
            cluster_id = self.create()
            self.svcd.advance(600)
            self.restart(jump)
            took = self.took(lambda: self.until_settled(cluster_id, 3000.0))  # noqa: B023
            self.assertLess(took, 1802.0, name)

    def test_lists_are_complete_in_pages(self) -> None:
        """What was made later bears an earlier time: each is on one page all the same."""
        made = []
        for number, jump in enumerate((0.0, -HOUR_S, HOUR_S, -TEN_YEARS_S)):
            self.restart(jump)
            made.append(self.create(name=f"mine-{number}", workers=1))
        found: list[str] = []
        marker = ""
        while page := self.api.get(f"/clusters?limit=1{marker}")["clusters"]:
            found.append(page[0]["id"])
            marker = f"&marker={page[0]['id']}"
            self.assertLessEqual(len(found), len(made))
        self.assertEqual(sorted(found), sorted(made))


class DeletionTests(JumpCase):
    def test_deletion_through_a_jump_or_a_restart(self) -> None:
        """Everything goes, and nobody waits for an hour."""
        for moment in (0.0, 0.3):
            for name, jump in JUMPS.items():
                self.begin()
                cluster_id = self.create(workers=1)
                self.active(cluster_id)
                self.api.delete(f"/clusters/{cluster_id}")
                self.svcd.advance(moment)
                self.svcd.set_clock(jump)
                if moment and name in BACK:
                    self.svcd.restart()
                self.gone(cluster_id, 60.0)


class EndingTests(JumpCase):
    """Of an idle cluster with idle_delete_s 600, after a job."""

    def idle(self) -> str:
        cluster_id = self.create(idle_delete_s=600)
        self.active(cluster_id)
        self.api.until_over(
            self.api.execute(self.api.new_job(), cluster_id, self.api.new_sources())
        )
        self.until(lambda: "idle_since" in self.api.cluster(cluster_id), 70, 1.0)
        return cluster_id

    def test_deletion_comes_when_it_would_have_come(self) -> None:
        for name, jump in JUMPS.items():
            self.begin()
            cluster_id = self.idle()
            self.svcd.advance(100)
            self.svcd.set_clock(jump)
            took = 100 + self.took(lambda: self.gone(cluster_id, 900.0))  # noqa: B023
            self.assertLess(abs(took - 600), 600 * STEER + 65.0, name)

    def test_deletion_after_a_restart(self) -> None:
        """A clock that was ahead: the whole time again. One that was behind: after a warning."""
        for name, jump in JUMPS.items():
            self.begin()
            cluster_id = self.idle()
            self.svcd.advance(100)
            self.restart(jump)
            took = self.took(lambda: self.gone(cluster_id, 900.0))  # noqa: B023
            least, most = (595, 680) if name in BACK else (60, 140)
            self.assertTrue(least < took < most, (name, took))


class JobTests(JumpCase):
    def job(self, run_s: int = 20) -> str:
        """The id of an execution on a new Active cluster."""
        self.cluster_id = self.create()
        self.active(self.cluster_id)
        configs = {"svcd.fake.run_s": str(run_s)}
        sources = self.api.new_sources()
        return self.api.execute(self.api.new_job(), self.cluster_id, sources, configs)

    def ended(self, execution_id: str, limit_s: float) -> Any:
        shown = self.api.until_over(execution_id, limit_s)
        self.in_order(shown)
        if shown["start_time"]:
            self.assertLessEqual(shown["start_time"], shown["end_time"])
        return shown

    def test_job_through_a_jump(self) -> None:
        """Pending, submitted, running: it succeeds after its 20 s, submitted once."""
        for name, jump in JUMPS.items():
            for moment in (0.0, 0.5, 10.0):
                self.begin()
                execution_id = self.job()
                self.svcd.advance(moment)
                self.svcd.set_clock(jump)
                shown = self.ended(execution_id, 60.0)
                self.assertEqual(shown["info"]["status"], "SUCCEEDED", (name, moment))
                self.assertEqual(len(self.svcd.engines.engine(self.cluster_id).jobs), 1)

    def test_cancel_after_a_jump(self) -> None:
        """Killed at once; its end is not before its start, whichever clock has told them."""
        for name, jump in JUMPS.items():
            self.begin()
            execution_id = self.job(run_s=600)
            self.svcd.advance(10)
            self.svcd.set_clock(jump)
            self.svcd.restart()
            self.api.get(f"/job-executions/{execution_id}/cancel")
            shown = self.ended(execution_id, 10.0)
            self.assertEqual(shown["info"]["status"], "KILLED", name)

    def test_silent_engine_when_the_clock_was_ahead(self) -> None:
        """The next try seems to be years away: the job begins soon, or fails after 15 minutes."""
        for name, jump in BACK.items():
            for comes_back in (True, False):
                self.begin()
                cluster_id = self.create()
                self.active(cluster_id)
                silent = self.fault("engine", effect="refused")
                sources = self.api.new_sources()
                execution_id = self.api.execute(self.api.new_job(), cluster_id, sources)
                self.svcd.advance(40)
                self.svcd.set_clock(jump)
                self.svcd.restart()
                if comes_back:
                    silent.remove()
                shown = self.ended(execution_id, 180.0 if comes_back else 1000.0)
                status = shown["info"]["status"]
                self.assertEqual(status == "SUCCEEDED", comes_back, (name, shown["info"]))
                self.assertNotIn(status, RUNNING)
