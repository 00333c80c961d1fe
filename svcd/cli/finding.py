"""The result of one check of `svcd doctor`."""

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
