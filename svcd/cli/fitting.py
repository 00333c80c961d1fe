"""Makes a table fit the terminal. Pure.

In this order, until it fits: an id becomes its shortest unique beginning, unless it is the only
one; long cells are cut; spare columns are left out; the names of the rows are cut; all is cut.
A person must be able to name a row in the next command, and to see its status.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final

from svcd.cli.show import GAP, Part

_LEAST: Final = 8
"""Fewest columns of a cell that is cut, and of the beginning of an id."""


def fitting(
    parts: Sequence[Part], most: int, known: Callable[[], Iterable[str]] = tuple
) -> list[Part]:
    """The parts that fit into `most` columns, with their widths.

    known: ids and names; the beginning of an id is the beginning of no other one of them.
    """
    left = list(parts)
    if _over(left, most) <= 0:
        return left
    for number, part in enumerate(left):
        if part.column.id and len(part.cells) > 2:
            ids = part.cells[1:]
            length = unique_length(ids, known())
            left[number] = Part(part.column, [part.cells[0], *(id_[:length] for id_ in ids)])
    while True:
        whole = [part.width for part in left]
        _cut([each for each in left if _may_be_cut(each)], _LEAST, _over(left, most))
        spare = [each for each in left if each.column.spare]
        if _over(left, most) <= 0 or not spare:
            break
        for part, width in zip(left, whole, strict=True):
            part.width = width
        left.remove(max(reversed(spare), key=lambda each: each.column.spare))
    _cut([each for each in left if each.column.key], _LEAST, _over(left, most))
    _cut(left, 1, _over(left, most))
    return left


def unique_length(ids: Collection[str], known: Iterable[str]) -> int:
    """The characters of `ids` that tell each of them from all others and from `known`."""
    wanted = set(ids)
    ordered = sorted({*wanted, *known})
    length = _LEAST
    for before, after in itertools.pairwise(ordered):
        if before in wanted or after in wanted:
            pairs = zip(before, after, strict=False)
            same = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
            length = max(length, same + 1)
    return length


def _may_be_cut(part: Part) -> bool:
    column = part.column
    return column.cut and not (column.status or column.key or column.id)


def _over(parts: Sequence[Part], most: int) -> int:
    """The columns that are too many."""
    return sum(part.width for part in parts) + len(GAP) * (len(parts) - 1) - most


def _cut(parts: Sequence[Part], least: int, over: int) -> None:
    """Take `over` columns from `parts`, always from the widest one, down to `least` each."""
    for _ in range(over):
        able = [part for part in parts if part.width > least]
        if not able:
            return
        max(able, key=lambda part: part.width).width -= 1
