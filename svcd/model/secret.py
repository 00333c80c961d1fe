"""A text that cannot be formatted by accident: every way to print it shows stars.

Note: the last net. The text of an exception may quote anything, and a traceback shows it. So the
log asks for the secrets that are alive in the process, and takes them out of tracebacks.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Protocol, final
from weakref import WeakValueDictionary


@final
class Secret:
    """Holds a password, token or private key; only `reveal` gives it out."""

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
    """Holds a secret."""

    def reveal(self) -> str: ...


_living: WeakValueDictionary[int, Revealing] = WeakValueDictionary()
_latest: OrderedDict[str, None] = OrderedDict()  # a failure that nobody took is told late
_MOST_LATEST = 256
_LONGEST_LATEST = 8192  # keys and tokens are shorter


def watch(holder: Revealing) -> None:
    """While `holder` lives, and a little longer, its secret is taken out of tracebacks.

    One of more than 8,192 characters, as a job's argument may be, only while it lives.
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
    """The secrets that somebody still holds, and the latest of the others."""
    return list({*_latest, *(holder.reveal() for holder in list(_living.values()))})
