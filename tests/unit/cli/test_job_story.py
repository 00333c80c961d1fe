"""How a command follows a job execution: the lines on what has changed, and on its end."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.job_story import changes, outcome, state


def execution(status: str, **more: Any) -> dict[str, Any]:
    info = {"status": status, **more.pop("info", {})}
    return {
        "id": "e1",
        "info": info,
        "workflow_job_id": None,
        "progress": None,
        "return_code": None,
        "created_at": "2026-01-01 00:00:00.000000",
        "end_time": None,
        **more,
    }


class StoryTests(SynchronousTestCase):
    def test_changes(self) -> None:
        """A line for each new status, step and wait; none when nothing has changed."""
        pending = execution("Pending")
        waits = {"code": "ENGINE_UNREACHABLE", "step": "submit", "text": "no answer", "until": None}
        waiting = execution("Pending", info={"waiting": waits})
        action = {"name": "job-node", "type": "pig", "externalId": "-"}
        prep = execution("RUNNING", info={"actions": [action]}, workflow_job_id="w1")
        runs = execution(
            "RUNNING",
            info={"actions": [{**action, "externalId": "application_1"}]},
            workflow_job_id="w1",
        )
        self.assertEqual(list(changes(None, pending)), ["job is Pending"])
        self.assertEqual(list(changes(pending, pending)), [])
        self.assertEqual(list(changes(pending, waiting)), ["waits in step submit: no answer"])
        self.assertEqual(list(changes(waiting, prep)), ["goes on", "job is RUNNING, workflow w1"])
        self.assertEqual(list(changes(prep, runs)), ["step job-node runs as application_1"])
        self.assertEqual(list(changes(runs, execution("SUCCEEDED"))), [])

    def test_state_on_one_line(self) -> None:
        """Status, progress and time."""
        begun = 1_767_225_600.0
        self.assertEqual(state(execution("Pending"), None), "job is Pending")
        self.assertEqual(
            state(execution("RUNNING", progress=0.5), begun + 12), "job is RUNNING, 50%, 12 s"
        )
        waits = {"code": "ENGINE_UNREACHABLE", "step": "submit", "text": "Oozie: refused"}
        self.assertEqual(
            state(execution("Pending", info={"waiting": waits}), begun + 12),
            "job is Pending, 12 s; step submit waits: Oozie: refused",
        )

    def test_outcome_of_a_success(self) -> None:
        """Exit code 0 and one line."""
        done = execution("SUCCEEDED", end_time="2026-01-01T00:00:41")
        self.assertEqual(outcome(done), (0, ["job SUCCEEDED after 41 s"]))

    def test_outcome_of_a_failure(self) -> None:
        """Exit code 1, with reason, meaning, advice and the program's own code."""
        failure = {"code": "OUTPUT_EXISTS", "step": "job-node", "text": "/out exists"}
        code, lines = outcome(execution("KILLED", info={"failure": failure}, return_code=2))
        self.assertEqual(code, 1)
        self.assertEqual(
            lines[:3], ["job failed", "failure: OUTPUT_EXISTS in step job-node", "  /out exists"]
        )
        self.assertTrue(lines[3].startswith("  OUTPUT_EXISTS means: "))
        self.assertTrue(lines[4].startswith("  what to do: "))
        self.assertEqual(
            lines[5],
            "  either remove it, or name another place: svcd job rerun e1 --output URL",
        )
        self.assertEqual(lines[6], "its program ended with exit code 2")

    def test_advice_names_the_execution(self) -> None:
        """The command can be copied."""
        failure = {"code": "EXIT_CODE", "step": "job-node", "text": "exit code [1]"}
        _, lines = outcome(execution("KILLED", info={"failure": failure}))
        self.assertTrue(lines[-1].endswith(" in its log: svcd job logs e1"), lines)

    def test_outcome_of_a_cancel(self) -> None:
        """It is no success."""
        self.assertEqual(
            outcome(execution("KILLED", end_time="2026-01-01T00:00:41")),
            (1, ["job cancelled by a request to svcd after 41 s"]),
        )
        failure = {"code": "KILLED_ELSEWHERE", "step": "workflow", "text": "was killed"}
        code, lines = outcome(execution("KILLED", info={"failure": failure}))
        self.assertEqual(
            (code, lines[:3]),
            (
                1,
                [
                    "job killed",
                    "failure: KILLED_ELSEWHERE in step workflow",
                    "  was killed",
                ],
            ),
        )
