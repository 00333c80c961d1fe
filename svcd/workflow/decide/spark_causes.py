"""Reads what Spark's application master says about the end of a program. Pure.

Source: Spark 4.2.0 `yarn.ApplicationMaster`; recorded failures of real jobs.
"""

from __future__ import annotations

import re
from typing import Final

THREW: Final = "User class threw exception: "
"""Spark's words before the exception of a program."""
NO_SESSION: Final = ", in which the program made no SparkSession on YARN"

_RECORD: Final = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d", re.MULTILINE)
"""The beginning of a record in a log of Spark."""
_WAITED: Final = re.compile(
    r"ApplicationMaster: Uncaught exception: ?\n"
    r"(java\.util\.concurrent\.TimeoutException: Future timed out after \[\d{1,12} milliseconds\])"
)
"""The master waits for the session of the program."""


def thrown(log: str) -> str:
    """The exception of a driver's program alone: other threads write theirs while it ends."""
    _, begins, rest = log.partition(f"{THREW}\n")
    return _RECORD.split(rest, maxsplit=1)[0] if begins else log


def waited(log: str) -> str:
    """The words of a master whose wait for the program's session ended; "" for others."""
    found = _WAITED.search(log)
    return "" if found is None else f"{found[1]}{NO_SESSION}"
