"""Turns of a reactor on a clock that a test moves."""

from __future__ import annotations

from twisted.internet.task import Clock


def turn(clock: Clock) -> None:
    """Make the calls that are due, as the reactor does in one turn: not those that they ask for."""
    now = clock.seconds()
    due = [call for call in clock.calls if call.getTime() <= now]
    for call in due:
        clock.calls.remove(call)
        call.called = 1
        call.func(*call.args, **call.kw)
