"""The result of one check of `svcd doctor`, in one form for all checks."""

from __future__ import annotations

from attrs import frozen


@frozen
class Finding:
    """The subject of a check, its result as text, and the remedy when the result is not good.

    warning: the result is not good, but svcd works without the subject.
    """

    what: str
    good: bool
    text: str
    remedy: str = ""
    warning: bool = False

    @property
    def word(self) -> str:
        """The result in one word: ok, warn or fail."""
        if self.good:
            return "ok"
        return "warn" if self.warning else "fail"


def ok(what: str, text: str) -> Finding:
    """A good result."""
    return Finding(what, True, text)


def warn(what: str, text: str, remedy: str = "") -> Finding:
    """A result that is not good, with which svcd works."""
    return Finding(what, False, text, remedy, warning=True)


def fail(what: str, text: str, remedy: str = "") -> Finding:
    """A result that keeps svcd, or a part of it, from its work."""
    return Finding(what, False, text, remedy)
