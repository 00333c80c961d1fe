"""The texts that svcd reads about a failed job, besides the engine's record of it. Pure.

`act.containers` reads them, `causes` and `failures` decide by them. All of them are bounded,
because programs of tenants write them. They are not masked: svcd masks the failure that it makes
of them.
"""

from __future__ import annotations

from collections.abc import Sequence

from attrs import field, frozen

LAUNCHER: str = "launcher"
"""The place of the program that the engine itself starts."""


@frozen(kw_only=True)
class LogFile:
    """The end of a file that a container wrote.

    place: `LAUNCHER`, or the attempt or application that the container belongs to. name: of the
    file.
    """

    place: str
    name: str
    text: str = field(repr=False)


@frozen(kw_only=True)
class Ended:
    """An application of the job, in YARN's words. state: FINISHED, FAILED, KILLED, or another.

    is_spark: its files are those of the driver, which is the program.
    """

    id: str
    state: str
    text: str = ""
    is_launcher: bool = False
    is_spark: bool = False


@frozen(kw_only=True)
class Evidence:
    """The texts about a failed job; every part may be missing.

    attempts: diagnostics of the attempts of failed tasks, in order. jobs: those of map-reduce jobs.
    files: ends of logs, the launcher's first. silent: why the resource manager does not answer.
    """

    attempts: Sequence[str] = ()
    jobs: Sequence[str] = ()
    files: Sequence[LogFile] = ()
    applications: Sequence[Ended] = ()
    silent: str = ""

    def of_launcher(self, name: str) -> str:
        """The text of a file of the launcher."""
        return next((f.text for f in self.files if (f.place, f.name) == (LAUNCHER, name)), "")

    def of_drivers(self, name: str) -> Sequence[str]:
        """The texts of the file of that name of each driver of Spark."""
        ids = [application.id for application in self.applications if application.is_spark]
        return [f.text for f in self.files if f.place in ids and f.name == name]

    def of_masters(self, name: str) -> Sequence[str]:
        """The texts of the file of that name of each other application's master."""
        ids = [
            application.id
            for application in self.applications
            if not application.is_spark and not application.is_launcher
        ]
        return [f.text for f in self.files if f.place in ids and f.name == name]

    def of_tasks(self, name: str) -> Sequence[str]:
        """The texts of the file of that name of each task."""
        return [f.text for f in self.files if f.place != LAUNCHER and f.name == name]
