"""Finds the place in a Pig script that a failure is about: file, line and column. Pure.

Pig writes the place of a fault (`<file top.pig, line 4, column 6>`) only into the outer one of two
exceptions, when the inner one says what is wrong. It stops at the first fault of a script, so the
place that its log names last belongs to the fault.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Final

from svcd.workflow.decide.evidence import Evidence

_PLACE: Final = re.compile(
    r"<file ([^<>\n]{1,300}?)(?:\.substituted)?, (line [1-9]\d{0,8}(?:, column \d{1,9})?)>"
)
_NOWHERE: Final = re.compile(r"<file [^<>\n]{1,300}, line 0, column 0> ?")
"""Pig's words when the part with the fault has no place of its own."""
_TOLD: Final = re.compile(r"[\d-]{10} [\d:,.]{8,12} \[\w{1,40}\] (?:INFO|WARN|DEBUG) ")
"""The beginning of a line of the log that is no error."""


def named(reasons: Sequence[str], evidence: Evidence) -> Sequence[str]:
    """The reasons of a Pig job, each with the place in the script, if the launcher's log has it."""
    if all(_PLACE.search(reason) for reason in reasons):
        return reasons
    place = _last(evidence.of_launcher(name) for name in ("stdout", "stderr"))
    return [
        reason if not place or _PLACE.search(reason) else f"{_NOWHERE.sub('', reason)} ({place})"
        for reason in reasons
    ]


def _last(logs: Iterable[str]) -> str:
    """The last place of the first log that names one outside of its warnings; "" without one."""
    for log in logs:
        places = [
            ", ".join(place.groups())
            for line in log.splitlines()
            if "<file " in line and not _TOLD.match(line)
            for place in _PLACE.finditer(line)
        ]
        if places:
            return places[-1]
    return ""
