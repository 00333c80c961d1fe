"""The exit codes of commands, and the error by which a command refuses."""

from __future__ import annotations

from typing import Final

DONE: Final = 0
FAILED: Final = 1
"""The remote work failed, the output could not be written, or svcd has a fault."""
USAGE: Final = 2
NOT_FOUND: Final = 3
REFUSED: Final = 4
"""The API refused the request: login, role, quota, conflict, invalid content."""
UNREACHABLE: Final = 5
"""The API does not answer, or something else answers in its place."""
TIMED_OUT: Final = 124
"""`--timeout` ran out."""
INTERRUPTED: Final = 130


class CommandError(Exception):
    """A command cannot continue: a line with failure, place, reason and remedy, and an exit code.

    name: the `error_name` of the API's refusal, "" for other reasons.
    """

    def __init__(self, text: str, code: int = FAILED, name: str = "") -> None:
        super().__init__(text)
        self.code = code
        self.name = name


class OutOfTime(CommandError):
    """`--timeout` ran out, which ends the command: code that goes on after errors lets it pass."""
