"""Makes the failures of executions: a code of the closed list, a text and its advice. Pure."""

from __future__ import annotations

from typing import Final

from svcd.model.failures import Code
from svcd.model.job import Failure

MOST_TEXT: Final = 2000
"""The longest text of a failure, in characters."""


def failure(code: Code, step: str, reason: str) -> Failure:
    """A failure with its advice. reason: what happened; line ends become blanks, cut to size."""
    text = (" ".join(reason.split()) or "the engine gave no reason")[:MOST_TEXT]
    advice = code.advice
    return Failure(code=code.value, step=step, text=f"{text}; {advice}" if advice else text)
