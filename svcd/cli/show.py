"""Forms of a body of the API: tables that fit the terminal, JSON, YAML, names. Pure.

JSON and YAML have the body exactly as the API wraps it. A table shows its columns for each row; on
a terminal it is made to fit, elsewhere never. Control characters of texts are shown, not sent.

Note: a table that is made to fit. In this order, until it fits: an id becomes its shortest unique
beginning, unless it is the only one; long cells are cut; spare columns are left out; the names of
the rows are cut; all is cut. A person must be able to name a row in the next command, and to see
its status.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from svcd.cli.times import duration, seconds
from svcd.model.controls import visible

Row = Mapping[str, Any]

_COLOURS: Final = {"good": "32", "bad": "31", "busy": "33", "head": "1", "faint": "2"}
_GOOD: Final = frozenset({"Active", "SUCCEEDED", "ACTIVE", "done", "ok"})
_BAD: Final = frozenset({"Error", "FAILED", "KILLED", "ERROR", "failed", "killed", "DONEWITHERROR"})
_UNSAFE: Final = re.compile("[\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
GAP: Final = "  "
"""The blanks between two columns."""
_LEAST: Final = 8
"""Fewest columns of a cell that is cut, and of the beginning of an id."""


class Style(NamedTuple):
    """Whether texts get colours."""

    colour: bool = False

    def paint(self, text: str, kind: str) -> str:
        """`text` in the colour of `kind`; "" is no colour."""
        code = _COLOURS.get(kind) if self.colour else None
        return f"\x1b[{code}m{text}\x1b[0m" if code else text


class Column(NamedTuple):
    """A column. text: the cell of a row, at a time in epoch seconds.

    wide: only with `-o wide`. cut: the cell may be cut to fit. status: coloured as a status.
    key: names the row, so it is cut last. id: an id, of which a beginning is enough when it is
    unique. spare: not 0 when the column may be left out to fit; the highest goes first.
    """

    title: str
    text: Callable[[Row, float], str]
    wide: bool = False
    cut: bool = True
    status: bool = False
    key: bool = False
    id: bool = False
    spare: int = 0


class Table(NamedTuple):
    """The form of bodies of one kind. many, one: their keys in a list and alone.

    name: the text of a row for `-o name`. empty: what to say of an empty list. known: further
    ids and names; the shown beginning of an id is the beginning of none of them.
    """

    many: str
    one: str
    columns: Sequence[Column]
    name: Callable[[Row], str] = lambda row: plain(row.get("name") or row.get("id"))
    empty: str = ""
    known: Callable[[], Iterable[str]] = tuple


def rows_of(body: Any, table: Table) -> Sequence[Row]:
    """The rows of a body, whether it is a list or one resource."""
    if isinstance(body, dict) and table.many in body:
        return list(body[table.many])
    return [body[table.one] if isinstance(body, dict) and table.one in body else body]


def printed(body: Any, table: Table, form: str, width: int | None, now: float, style: Style) -> str:
    """The text of `body` in the form of `-o`, with a newline at its end."""
    if form in ("json", "yaml"):
        return as_text(body, form)
    rows = rows_of(body, table)
    if form == "name":
        return "".join(f"{visible(table.name(row))}\n" for row in rows)
    if not rows and table.empty:
        return f"{table.empty}\n"
    columns = [column for column in table.columns if form == "wide" or not column.wide]

    def known() -> Iterable[str]:
        yield from table.known()
        for row in rows:
            yield from (get(row, "id"), get(row, "name"))

    return "".join(f"{line}\n" for line in table_lines(columns, rows, width, now, style, known))


def table_lines(
    columns: Sequence[Column],
    rows: Sequence[Row],
    width: int | None,
    now: float,
    style: Style,
    known: Callable[[], Iterable[str]] = tuple,
) -> list[str]:
    """The lines of a table, its head first. width: of the terminal; None: nothing is cut.

    known: ids and names among which the beginning of an id must be unique.
    """
    parts = [
        Part(column, [column.title, *(_cell(column.text(row, now)) for row in rows)])
        for column in columns
    ]
    if width is not None:
        parts = fitting(parts, width, known)
    widths = [part.width for part in parts]
    lines = [_line([part.cells[0] for part in parts], widths, ["head"] * len(parts), style)]
    for number in range(1, len(rows) + 1):
        cells = [part.cells[number] for part in parts]
        kinds = [
            colour_of(cell) if part.column.status else ""
            for cell, part in zip(cells, parts, strict=True)
        ]
        lines.append(_line(cells, widths, kinds, style))
    return lines


class Part:
    """A column with its cells, the title first. width: of the widest cell, until it is cut."""

    def __init__(self, column: Column, cells: Sequence[str]) -> None:
        self.column = column
        self.cells = cells
        self.width = max(map(measure, cells))


def measure(text: str) -> int:
    """Columns that `text` takes on a terminal."""
    if text.isascii():
        return len(text)
    import unicodedata

    wide = sum(unicodedata.east_asian_width(character) in "WF" for character in text)
    return len(text) + wide - sum(unicodedata.combining(character) != 0 for character in text)


def cut(text: str, most: int) -> str:
    """`text` in at most `most` columns, with an ellipsis when something is left out."""
    if measure(text) <= most:
        return text
    kept = text[: max(most - 1, 0)]
    while kept and measure(kept) > most - 1:
        kept = kept[:-1]
    return f"{kept}…"


def colour_of(status: str) -> str:
    """The colour of a status."""
    return "good" if status in _GOOD else "bad" if status in _BAD else "busy" if status else ""


def as_text(body: Any, form: str) -> str:
    """The text of `body` in the form `json` or `yaml`."""
    return as_json(body) if form == "json" else as_yaml(body)


def as_json(body: Any) -> str:
    """JSON text that a terminal can show and every parser reads."""
    text = json.dumps(body, indent=2, ensure_ascii=False)
    return _UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text) + "\n"


def as_yaml(body: Any) -> str:
    """YAML text, with the keys in the order of the API."""
    import yaml

    # PyYAML represents no subclass of dict, such as the answer to a POST
    plain_body = dict(body) if isinstance(body, dict) else body

    def dumped(unicode: bool) -> str:
        text: str = yaml.safe_dump(plain_body, sort_keys=False, allow_unicode=unicode, width=120)
        return text

    text = dumped(unicode=True)
    return dumped(unicode=False) if _UNSAFE.search(text) else text


def plain(value: Any) -> str:
    """The text of a value: lists with commas, objects as JSON, "" for null."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ",".join(plain(item) for item in value)
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict) else str(value)


def get(row: Any, path: str, default: str = "") -> str:
    """The text at a path such as `info.status`; `default` when it is not there or null."""
    for key in path.split("."):
        row = row.get(key) if isinstance(row, dict) else None
    return default if row is None or row == "" else plain(row)


def field(title: str, path: str, **more: Any) -> Column:
    """A column of the value at a path."""
    return Column(title=title, text=lambda row, now: get(row, path), **more)


def ago(title: str, path: str, **more: Any) -> Column:
    """A column of the time since a timestamp."""
    return Column(title=title, text=lambda row, now: since(get(row, path), now), cut=False, **more)


def since(stamp: str, now: float) -> str:
    """`3 min 05 s ago` for a timestamp of the API; "" for none."""
    at = seconds(stamp)
    return "" if at is None else f"{duration(now - at)} ago"


def _cell(text: str) -> str:
    return visible(" ".join(text.split())) if text else "-"


def _line(cells: Sequence[str], widths: Sequence[int], kinds: Sequence[str], style: Style) -> str:
    made = []
    last = len(cells) - 1
    for number, (cell, width, kind) in enumerate(zip(cells, widths, kinds, strict=True)):
        shown = cut(cell, width)
        pad = "" if number == last else " " * (width - measure(shown))
        made.append(style.paint(shown, kind) + pad)
    return GAP.join(made).rstrip()


# ---- tables that fit ----------------------------------------------------------------------------


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
        _cut([shown for shown in left if _may_be_cut(shown)], _LEAST, _over(left, most))
        spare = [shown for shown in left if shown.column.spare]
        if _over(left, most) <= 0 or not spare:
            break
        for part, width in zip(left, whole, strict=True):
            part.width = width
        left.remove(max(reversed(spare), key=lambda shown: shown.column.spare))
    _cut([shown for shown in left if shown.column.key], _LEAST, _over(left, most))
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
