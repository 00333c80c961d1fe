"""The costliest bodies of a megabyte are taken or refused in bounded time.

Calls of Python functions are counted, not seconds: what is done for every value of a body would be
a hundred thousand of them, and half a second in which nobody else is answered.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from benchmarks.bodies import BODY_BYTES, WORST, checked
from svcd.errors import ValidationError

MOST_CALLS = 100_000


def _calls_of(work: Callable[[], object]) -> tuple[int, object]:
    count = 0

    def note(frame: Any, event: str, argument: Any) -> None:
        nonlocal count
        count += event == "call"

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        result = work()
    finally:
        sys.setprofile(before)
    return count, result


class WorstBodyTests(SynchronousTestCase):
    def test_no_body_of_the_largest_size_costs_much(self) -> None:
        """Whether it is all right, wrong in one place, or wrong everywhere; answers stay short."""
        for body in WORST:
            data = body.bytes()
            self.assertGreater(len(data), BODY_BYTES * 0.9, body.name)
            check = checked(body)
            calls, result = _calls_of(lambda check=check, data=data: check(data))  # type: ignore[misc]
            self.assertLess(calls, MOST_CALLS, body.name)
            if isinstance(result, ValidationError):
                self.assertLess(len(result.message), 40_000, body.name)
            else:
                self.assertIsInstance(result, body.cls, body.name)
