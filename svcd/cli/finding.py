"""The form of the checks of `svcd doctor`: their input and their results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

from attrs import field, frozen

from svcd.settings import Settings

if TYPE_CHECKING:
    from svcd.cli.cloud_doctor import CloudUser


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


@frozen
class Scene:
    """The input of the checks: a daemon's settings, and the login of a user of its cloud.

    unknown: see `svcd.settings.Loaded`. known: the content of `endpoints.json` of the running
    daemon, {} without one.
    """

    settings: Settings
    user: CloudUser | None = None
    unknown: Sequence[str] = ()
    known: Mapping[str, Any] = field(factory=dict, repr=False)


Check: TypeAlias = Callable[[Scene], Iterable[Finding]]
"""A check only reads, or removes its own objects at once."""
