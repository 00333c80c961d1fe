"""One look of `svcd doctor`."""

from __future__ import annotations

from attrs import frozen


@frozen
class Finding:
    """What was looked at, what was seen, and the cure when it is not good.

    warning: it is not good, but svcd works without it.
    """

    what: str
    good: bool
    text: str
    cure: str = ""
    warning: bool = False

    @property
    def word(self) -> str:
        """ok, warn or fail."""
        if self.good:
            return "ok"
        return "warn" if self.warning else "fail"
