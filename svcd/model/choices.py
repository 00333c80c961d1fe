"""Suggests valid names for the text of a fault: the nearest one, or a few. Pure."""

from __future__ import annotations

import difflib
from collections.abc import Collection, Iterable, Sequence

_MOST_NAMED = 10
"""Most names in a list for people."""
_MOST_COMPARED = 60
"""Most characters of a wrong name in a comparison: its sender must not choose the cost."""


def nearest(name: str, known: Iterable[str], cutoff: float = 0.6) -> str | None:
    """The known name most similar to `name`; None when no similarity reaches `cutoff` (0 to 1).

    Upper and lower case count as the same.
    """
    by_key: dict[str, str] = {}
    for word in known:
        by_key.setdefault(word.lower(), word)
    wrong = name[:_MOST_COMPARED].lower()
    near = difflib.get_close_matches(wrong, list(by_key), n=1, cutoff=cutoff)
    return by_key[near[0]] if near else None


def listed(names: Collection[str], most: int = _MOST_NAMED) -> str:
    """The first `most` of `names` as a text, and the number of further names."""
    shown: Sequence[str] = list(names)[:most]
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(shown) + more or "none"
