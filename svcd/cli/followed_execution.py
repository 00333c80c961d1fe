"""Follows a job execution on the terminal: its programs' log on stdout, its story on stderr.

The daemon keeps one text for each execution, and answers the part after an offset of it. It leaves
out the lines of the workflow engine, of its launcher, of Hadoop and of Pig, unless the user asks
for all.
"""

from __future__ import annotations

import sys
import time
from typing import Any, Final

from svcd.cli.client import safe
from svcd.cli.exits import INTERRUPTED, NOT_FOUND, REFUSED, UNREACHABLE, CommandError, OutOfTime
from svcd.cli.job_story import Look, changes, is_over, outcome, state
from svcd.cli.session import Session
from svcd.cli.waiting import ClusterFollower, rests

_PATIENCE_S: Final = 120.0
"""Seconds for which the command waits for an absent daemon, which may restart."""
_LOOK_S: Final = 0.5
"""Time between two requests for the status and for the log; the daemon reads the log less often."""
_LAST_S: Final = 15.0
"""Time for the end of the log after the end of the job."""


class Followed:
    """One execution that a command follows. shows_all: its log is shown as the API answers it."""

    def __init__(self, session: Session, id_: str, shows_all: bool = False) -> None:
        self._session = session
        self._id = id_
        self._shows_log = True
        self._shows_all = shows_all
        self._offset = 0
        self._left_out = 0
        self._complete = False
        self._refreshes = True
        self._cluster: ClusterFollower | None = None
        self._shows_cluster = True

    def to_its_end(self) -> int:
        """Follow until the execution has ended; return the exit code of its result.

        Raises CommandError: interrupted, out of time, or the API is away. The job goes on then.
        """
        session = self._session
        session.api.be_patient(_PATIENCE_S)
        try:
            look = self._until_over()
        except KeyboardInterrupt:
            raise CommandError(f"interrupted; {self._goes_on()}", INTERRUPTED) from None
        except OutOfTime as error:
            raise OutOfTime(f"{error}; {self._goes_on()}", error.code) from None
        except CommandError as error:
            if error.code == UNREACHABLE:
                raise CommandError(f"{error}; {self._goes_on()}", error.code) from None
            raise
        except OSError:  # a fault of the output: its reader has gone, or the disk is full
            session.note(self._goes_on())
            raise
        finally:
            session.clear()
        self._tell_left_out()
        code, lines = outcome(look)
        for line in lines:
            session.note(line)
        if code:
            session.note(f"its history: svcd job why {self._id}")
        return code

    def _goes_on(self) -> str:
        return (
            f"the job goes on: svcd job logs -f {self._id} follows it,"
            f" svcd job cancel {self._id} cancels it"
        )

    def _until_over(self) -> Look:
        before: Look | None = None
        end = 0.0
        while True:
            look = self._look(before)
            for line in changes(before, look):
                self._session.note(line)
            before = look
            over = is_over(look)
            if over:
                end = end or time.monotonic() + _LAST_S
            self._read_log()
            if over and (self._complete or not self._shows_log):
                return look
            if over and time.monotonic() > end:
                self._session.note(
                    f"the daemon has not completed the log within {_LAST_S:g} s; the rest of it"
                    f" comes later: svcd job logs {self._id}"
                )
                return look
            if not over and not self._waits_for_cluster(look.execution):
                self._session.draw(state(look, self._session.now()))
            time.sleep(_LOOK_S)

    def _waits_for_cluster(self, execution: Any) -> bool:
        """Whether the job waits for its cluster, whose progress is shown then."""
        id_ = execution.get("cluster_id")
        if not id_ or not self._shows_cluster or execution["info"]["status"] != "Pending":
            return False
        try:
            return self._cluster_works(id_)
        except CommandError as error:
            if error.code == UNREACHABLE or isinstance(error, OutOfTime):
                raise
            self._session.note(f"the progress of the cluster cannot be read: {error}")
            self._shows_cluster = False
            return False

    def _cluster_works(self, id_: str) -> bool:
        """Whether svcd works on the cluster. Shows its progress. Raises CommandError."""
        if self._cluster is None:
            body = self._session.api.get(f"/clusters/{safe(id_)}")
            if body is None or rests(body):
                return False
            self._cluster = ClusterFollower(self._session, id_)
        body = self._cluster.look()
        if body is None or rests(body):
            return False
        self._cluster.draw(body)
        return True

    def _look(self, before: Look | None) -> Look:
        """The execution now with its story, which is asked for when the execution has changed."""
        execution = self._execution(before)
        if before is not None and execution == before.execution:
            return before
        api, path = self._session.api, f"/job-executions/{safe(self._id)}"
        answer = None if execution is None else api.get(f"{path}/story")
        if answer is None:
            raise CommandError(f"job execution {self._id} was deleted", NOT_FOUND)
        return Look(execution=execution, story=answer["story"])

    def _execution(self, before: Look | None) -> Any:
        """The execution now. Its status is read from the engine: svcd itself reads it later."""
        api, path = self._session.api, f"/job-executions/{safe(self._id)}"
        if self._refreshes and before is not None:
            patience_s, api.patience_s = api.patience_s, 0.0
            try:
                answer = api.call("POST", f"{path}/refresh-status")
                if answer.status == 200:
                    return answer.json
            except OutOfTime:
                raise
            except CommandError as error:
                # a user with a role of readers may not refresh
                self._refreshes = error.code != REFUSED
            finally:
                api.patience_s = patience_s
        return api.get(path)

    def _read_log(self) -> None:
        """Show the new part of the log."""
        if not self._shows_log:
            return
        try:
            self._show_part()
        except CommandError as error:
            if error.code == UNREACHABLE or isinstance(error, OutOfTime):
                raise
            self._session.note(f"the log cannot be read: {error}")
            self._shows_log = False

    def _show_part(self) -> bool:
        """Show the next part of the log. False: the API has no log. Raises CommandError."""
        programs = "" if self._shows_all else "&programs=true"
        path = f"/job-executions/{safe(self._id)}/log?offset={self._offset}{programs}"
        answer = self._session.api.call("GET", path, headers={"Accept": "text/plain"})
        if answer.status == 404:
            return False
        self._offset = int(answer.headers["x-log-offset"])
        self._complete = answer.headers["x-log-complete"] == "true"
        self._left_out += int(answer.headers.get("x-log-left-out", 0))
        if answer.body:
            self._session.clear()
            sys.stdout.write(answer.body.decode("utf-8", "replace"))
            sys.stdout.flush()
        return True

    def _tell_left_out(self) -> None:
        number = self._left_out
        if number:
            lines = "1 line" if number == 1 else f"{number:,} lines"
            self._session.note(
                f"left out: {lines} of Oozie, Hadoop, Pig, Spark and Java;"
                f" all: svcd job logs --all {self._id}"
            )

    def once(self) -> None:
        """Show the present log. Raises CommandError, also when the API knows none."""
        if not self._show_part():
            text = f"the API knows no log of job execution {self._id}"
            raise CommandError(f"{text}: svcd job ls shows whether it exists", NOT_FOUND)
        self._tell_left_out()
