# mypy: allow-untyped-calls
"""The audit log: one JSON line for each accepted change and for each refusal of authority.

The door says what has happened; this module writes it, to a file that only the daemon's user can
read, or to standard output. It never holds a request back.

Note: floods. A line for each refused request would let anybody fill the disk, or push the records
of changes out of the file. So in one second at most `MOST_REFUSALS` refusals without a user are
written, and as many with one; of the latter at most `MOST_OF_ONE` of one user in one project. So
callers without a token hide no refusal of a user, and a user hides at most a part of another's.
The next line of the same kind has the number of those left out. Changes are always written.

Note: a file that cannot be written. The daemon continues, as with its log. The log says so once,
and the number of lost records when the file can be written again.
"""

from __future__ import annotations

import datetime
import json
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.logfile import LogFile

log = Logger()

STDOUT: Final = "-"
"""The value of `log.audit` for standard output."""
OFF: Final = "off"
"""The value of `log.audit` for no audit log."""
MOST_REFUSALS: Final = 20
"""Refusals without a user that svcd writes in one second, and as many with a user."""
MOST_OF_ONE: Final = 5
"""Refusals of one user in one project that svcd writes in one second."""
_OLDER_FILES: Final = 9
"""Full files that svcd keeps: NAME.1 is the newest."""


class AuditError(Exception):
    """The file cannot be used: one line that says why and what to do."""


class Audit:
    """Writes records. write: takes a line; raises OSError or ValueError when it cannot."""

    def __init__(self, clock: IReactorTime, write: Callable[[str], object]) -> None:
        self._clock = clock
        self._write = write
        self._anonymous = _Budget(MOST_REFUSALS)
        self._known = _Budget(MOST_OF_ONE)
        self._lost = 0

    def change(self, record: Mapping[str, object]) -> None:
        """Write the record of a change, or of a change that may have happened."""
        self._line(record)

    def refusal(self, record: Mapping[str, object]) -> None:
        """Write the record of a refusal, unless there were too many in this second."""
        who = f"{record.get('user', '')} {record.get('project', '')}"
        budget = self._known if record.get("user") else self._anonymous
        if not budget.spend(int(self._clock.seconds()), who):
            return
        if budget.left_out:
            record = {**record, "left_out": budget.left_out}
            budget.left_out = 0
        self._line(record)

    def _line(self, record: Mapping[str, object]) -> None:
        now = datetime.datetime.fromtimestamp(self._clock.seconds(), datetime.UTC)
        time = now.replace(tzinfo=None).isoformat(timespec="milliseconds") + "Z"
        line = json.dumps({"time": time, **record}) + "\n"
        try:
            self._write("\n" + line if self._lost else line)
        except (OSError, ValueError) as error:
            if not self._lost:
                log.error("An audit record could not be written: {error}", error=error)
            self._lost += 1
            return
        if self._lost:
            log.error("{lost} audit records were lost", lost=self._lost)
            self._lost = 0


class _Budget:
    """Refusals of one kind: `MOST_REFUSALS` a second, and `most_of_one` of one caller.

    left_out: refusals without a line since the last one.
    """

    def __init__(self, most_of_one: int) -> None:
        self._most_of_one = most_of_one
        self._second = 0
        self._spent: dict[str, int] = {}  # only callers that have a line: MOST_REFUSALS at most
        self.left_out = 0

    def spend(self, second: int, who: str) -> bool:
        """Whether svcd writes the refusal of `who`."""
        if second != self._second:
            self._second, self._spent = second, {}
        spent = self._spent.get(who, 0)
        if spent >= self._most_of_one or sum(self._spent.values()) >= MOST_REFUSALS:
            self.left_out += 1
            return False
        self._spent[who] = spent + 1
        return True


def opened(clock: IReactorTime, target: str, folder: Path, most_bytes: int) -> Audit | None:
    """The audit log of the setting `log.audit`; None when it is off. Raises AuditError.

    folder: holds a file whose name is relative. most_bytes: size at which a new file begins.
    """
    if target == OFF:
        return None
    if target == STDOUT:
        return Audit(clock, _to_stdout)
    path = folder / target
    try:
        return Audit(clock, _File(path, most_bytes).write)
    except OSError as error:
        raise AuditError(
            f"log.audit: cannot write {path}: {error.strerror}; name another file, or: {STDOUT}"
            " for standard output"
        ) from None


def _to_stdout(line: str) -> None:
    stream = sys.__stdout__  # twistd has replaced sys.stdout by its log
    if stream is None:
        raise ValueError("the process has no standard output")
    stream.write(line)
    stream.flush()


class _File:
    """A rotated file, opened again after a fault."""

    def __init__(self, path: Path, most_bytes: int) -> None:
        self._path = path
        self._most_bytes = most_bytes
        self._file: LogFile | None = self._open()

    def _open(self) -> LogFile:
        return LogFile(
            self._path.name,
            str(self._path.parent),
            rotateLength=self._most_bytes,
            defaultMode=0o600,
            maxRotatedFiles=_OLDER_FILES,
        )

    def write(self, line: str) -> None:
        """Append a line. Raises OSError."""
        file = self._file or self._open()
        self._file = None
        file.write(line.encode())
        self._file = file
