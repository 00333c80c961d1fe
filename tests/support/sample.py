"""The parts of the suite that only an exhaustive run takes.

`make test` runs a sample that does not keep a newcomer waiting; SVCD_TEST_EXHAUSTIVE=1 makes the
same target run everything. A slow suite sets `skip = SLOW` on its module, class or method; a suite
of many cases takes fewer of them while `SAMPLE` is true, and reports that by `leave_out`.
`tests.run` prints both. Tests that are named on the command line always run, with all their cases.
"""

import os

SAMPLE = bool(os.environ.get("SVCD_TEST_SAMPLE"))
"""`tests.run` sets the variable."""

SLOW = "slow: SVCD_TEST_EXHAUSTIVE=1 runs it" if SAMPLE else None
"""A value for trial's `skip`; trial runs a test whose `skip` is None."""

LEFT_OUT: list[str] = []
"""Lines for the end of the run, one for each suite that took fewer of its cases."""


def leave_out(suite: str, ran: int, known: int, unit: str) -> None:
    """Record that `suite` ran only some of its cases."""
    if ran < known:
        LEFT_OUT.append(f"{suite}: {known - ran} of {known} {unit}")
