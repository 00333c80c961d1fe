"""A secret text that cannot be printed by accident: every way to format it shows stars.

Note: tracebacks. The text of an exception may quote any value, and a traceback shows this text. So
the log reads the secrets that are alive in the process, and removes them from tracebacks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol, final
from weakref import WeakValueDictionary


@final
class Secret:
    """Holds a password, token or private key; only `reveal` returns it."""

    __slots__ = ("__weakref__", "_value")

    def __init__(self, value: str) -> None:
        self._value = value
        watch(self)

    def reveal(self) -> str:
        """The text itself: call it only where the value leaves for its destination."""
        return self._value

    def __repr__(self) -> str:
        return "Secret(***)"

    __str__ = __repr__

    def __format__(self, spec: str) -> str:
        return "***"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and other._value == self._value

    def __hash__(self) -> int:
        return hash(("Secret", self._value))

    def __bool__(self) -> bool:
        return bool(self._value)


class Revealing(Protocol):
    """An object that holds a secret."""

    def reveal(self) -> str: ...


_living: WeakValueDictionary[int, Revealing] = WeakValueDictionary()
_latest: OrderedDict[str, None] = OrderedDict()  # Twisted logs an unhandled failure late
_MOST_LATEST = 256
"""Most secrets that svcd keeps after their holders are gone."""
_LONGEST_LATEST = 8192
"""Most characters of such a secret: keys and tokens are shorter."""


def watch(holder: Revealing) -> None:
    """Remove the secret of `holder` from tracebacks while `holder` exists, and a little longer.

    A secret of more than 8,192 characters (such as a job's argument) only while `holder` exists.
    """
    _living[id(holder)] = holder
    text = holder.reveal()
    if len(text) > _LONGEST_LATEST:
        return
    _latest[text] = None
    _latest.move_to_end(text)
    if len(_latest) > _MOST_LATEST:
        _latest.popitem(last=False)


def living() -> Sequence[str]:
    """The secrets of all existing holders, and the latest of former holders."""
    return list({*_latest, *(holder.reveal() for holder in list(_living.values()))})
