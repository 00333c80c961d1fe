"""How a command follows a job execution: the lines on what has changed, and on its end."""

from __future__ import annotations

from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from svcd.cli.job_story import Look, changes, is_over, outcome, state

STORY = ("failure", "steps")


def look(status: str, *, outcome: str = "going on", **more: Any) -> Look:
    """An execution and its story. wait: for what it waits; failure, steps: of the story."""
    story_part = {"failure": None, "steps": [], **{k: more.pop(k) for k in STORY if k in more}}
    wait, progress = more.pop("wait", None), more.pop("progress", None)
    work = {"kind": "run", "since": None, "until": None, "progress": progress, "wait": wait}
    execution = {
        "id": "e1",
        "info": {"status": status},
        "workflow_job_id": None,
        "return_code": None,
        "created_at": "2026-01-01 00:00:00.000000",
        "end_time": None,
        **more,
    }
    is_over = outcome != "going on"
    story = {"status": status, "outcome": outcome, "work": None if is_over else work, **story_part}
    return Look(execution=execution, story=story)


def fault(code: str, step: str, text: str, **more: str) -> dict[str, str]:
    return {"code": code, "step": step, "text": text, "meaning": "", "advice": "", **more}


class StoryTests(SynchronousTestCase):
    def test_changes(self) -> None:
        """A line for each new status, step and wait; none when nothing has changed."""
        pending = look("Pending")
        waiting = look("Pending", wait=fault("ENGINE_UNREACHABLE", "submit", "no answer"))
        step = {"name": "job-node", "external_id": ""}
        prep = look("RUNNING", steps=[step], workflow_job_id="w1")
        runs = look(
            "RUNNING", steps=[{**step, "external_id": "application_1"}], workflow_job_id="w1"
        )
        self.assertEqual(list(changes(None, pending)), ["job is Pending"])
        self.assertEqual(list(changes(pending, pending)), [])
        self.assertEqual(list(changes(pending, waiting)), ["waits in step submit: no answer"])
        self.assertEqual(list(changes(waiting, prep)), ["goes on", "job is RUNNING, workflow w1"])
        self.assertEqual(list(changes(prep, runs)), ["step job-node runs as application_1"])
        self.assertEqual(list(changes(runs, look("SUCCEEDED", outcome="succeeded"))), [])

    def test_state_on_one_line(self) -> None:
        """Status, progress and time."""
        begun = 1_767_225_600.0
        self.assertEqual(state(look("Pending"), None), "job is Pending")
        self.assertEqual(
            state(look("RUNNING", progress=0.5), begun + 12), "job is RUNNING, 50%, 12 s"
        )
        wait = fault("ENGINE_UNREACHABLE", "submit", "Oozie: refused", advice="look at it")
        self.assertEqual(
            state(look("Pending", wait=wait), begun + 12),
            "job is Pending, 12 s; step submit waits: Oozie: refused; look at it",
        )

    def test_outcome_of_a_failure(self) -> None:
        """Exit code 1, with reason, meaning, advice as a command, and the program's own code."""
        failure = fault("OUTPUT_EXISTS", "job-node", "/out exists", meaning="M", advice="A")
        code, lines = outcome(look("KILLED", outcome="failed", failure=failure, return_code=2))
        self.assertEqual(code, 1)
        self.assertEqual(
            lines[:3], ["job failed", "failure: OUTPUT_EXISTS in step job-node", "  /out exists"]
        )
        self.assertTrue(lines[3].startswith("  OUTPUT_EXISTS means: "))
        self.assertTrue(lines[4].startswith("  what to do: "))
        another = "  either remove it, or name another place: svcd job rerun e1 --output URL"
        self.assertEqual(lines[5:7], [another, "its program ended with exit code 2"])

    def test_other_outcomes(self) -> None:
        """A success is code 0; a cancel is none, nor is a kill by others, which has a reason."""
        failure = fault("KILLED_ELSEWHERE", "workflow", "was killed")
        reason = ["failure: KILLED_ELSEWHERE in step workflow", "  was killed"]
        for status, more, code, lines in (
            ("SUCCEEDED", {"outcome": "succeeded"}, 0, ["job SUCCEEDED after 41 s"]),
            ("KILLED", {"outcome": "cancelled"}, 1,
             ["job cancelled by a request to svcd after 41 s"]),
            ("KILLED", {"outcome": "killed", "failure": failure}, 1,
             ["job killed after 41 s", *reason]),
        ):  # fmt: skip
            over = look(status, end_time="2026-01-01T00:00:41", **more)
            ended, told = outcome(over)
            self.assertEqual((ended, told[:3]), (code, lines))
            self.assertTrue(is_over(over))
            # the story may be newer than the execution
            self.assertFalse(is_over(Look(execution=look("RUNNING").execution, story=over.story)))
