"""`python -m tests.support.drawings`: draw docs/house.svg from the import contract.

A row of the picture is a layer of the contract "rooms import downwards only" (pyproject.toml), a
box is a room. An arrow is an import between rooms; an arrow that follows from others is left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

import grimp
from attrs import frozen

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "house.svg"
CONTRACT = "rooms import downwards only"

Room = str
Imports = Mapping[Room, Set[Room]]

_WIDTH = 960
_ROW = 84
_BOX = 46
_GAP = 110
_ASIDE: Mapping[Room, float] = {"web": 125}
"""Rooms that make way for arrows: how far right of the middle."""
_LETTER = 8.4
_SMALL_LETTER = 6.6
_HEAD = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
font-family="sans-serif" text-anchor="middle">
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" \
orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#667"/></marker></defs>
<rect width="{width}" height="{height}" fill="#fff"/>"""


@frozen
class Box:
    """x: of its middle; y: of its upper edge. inside: names of its packages."""

    room: Room
    x: float
    y: float
    width: float
    inside: str


def layers(pyproject: str) -> Sequence[Sequence[Room]]:
    """The rooms of each layer, the uppermost first, by the text of pyproject.toml."""
    contracts = tomllib.loads(pyproject)["tool"]["importlinter"]["contracts"]
    found = next(each["layers"] for each in contracts if each["name"] == CONTRACT)
    return [[room.strip() for room in layer.split("|")] for layer in found]


def imports() -> Imports:
    """Room -> the rooms that it imports."""
    graph = grimp.build_graph("svcd", cache_dir=None)
    found: dict[Room, set[Room]] = {}
    for module in sorted(graph.modules):
        room = _room(module)
        if room:
            wanted = {_room(each) for each in graph.find_modules_directly_imported_by(module)}
            found.setdefault(room, set()).update(wanted - {room, ""})
    return found


def _room(module: str) -> Room:
    return module.split(".")[1] if "." in module else ""


def reduced(known: Imports) -> Imports:
    """The imports that do not follow from others. `known` has no circle."""
    reach: dict[Room, set[Room]] = {}

    def below(room: Room) -> set[Room]:
        if room not in reach:
            direct = known.get(room, frozenset())
            reach[room] = set(direct).union(*(below(each) for each in direct))
        return reach[room]

    return {
        room: {
            each
            for each in direct
            if not any(each in below(other) for other in direct if other != each)
        }
        for room, direct in known.items()
    }


def house(rows: Sequence[Sequence[Room]], known: Imports, inside: Mapping[Room, str]) -> str:
    """The picture as SVG."""
    boxes = {box.room: box for box in _boxes(rows, inside)}
    arrows = [(a, b) for a, others in sorted(reduced(known).items()) for b in sorted(others)]
    count = sum(len(others) for others in known.values())
    height = _ROW * len(rows) + 40
    lines = [_HEAD.format(width=_WIDTH, height=height)]
    lines += [_arrow(boxes[a], boxes[b]) for a, b in arrows]
    for box in boxes.values():
        lines += _drawn(box)
    text = f"{len(boxes)} rooms, {count} imports between them, {len(arrows)} of them drawn"
    lines.append(
        f'<text x="{_WIDTH / 2:g}" y="{height - 14}" font-size="12" fill="#667">{text}</text>'
    )
    return "\n".join([*lines, "</svg>", ""])


def _boxes(rows: Sequence[Sequence[Room]], inside: Mapping[Room, str]) -> Iterator[Box]:
    for number, row in enumerate(rows):
        widths = [
            max(_LETTER * len(room), _SMALL_LETTER * len(inside.get(room, ""))) + 28 for room in row
        ]
        aside = _ASIDE.get(row[0], 0.0) if len(row) == 1 else 0.0
        x = (_WIDTH - sum(widths) - _GAP * (len(row) - 1)) / 2 + aside
        for room, width in zip(row, widths, strict=True):
            yield Box(room, x + width / 2, 16 + _ROW * number, width, inside.get(room, ""))
            x += width + _GAP


def _arrow(a: Box, b: Box) -> str:
    """From the lower edge of `a` to the upper edge of `b`; around what lies straight below."""
    y1, y2 = a.y + _BOX, b.y - 1
    side = 0.0
    if b.y - a.y > _ROW and abs(a.x - b.x) < 60:
        side = 150.0 if a.x >= _WIDTH / 2 else -150.0
    bend = (y2 - y1) / 2
    path = f"M{a.x:.0f},{y1:.0f} C{a.x + side:.0f},{y1 + bend:.0f}"
    path += f" {b.x + side:.0f},{y2 - bend:.0f} {b.x:.0f},{y2:.0f}"
    return f'<path d="{path}" fill="none" stroke="#667" marker-end="url(#head)"/>'


def _drawn(box: Box) -> Iterator[str]:
    left, middle = box.x - box.width / 2, box.y + (18 if box.inside else 28)
    yield (
        f'<rect x="{left:.0f}" y="{box.y:.0f}" width="{box.width:.0f}" height="{_BOX}" rx="5"'
        ' fill="#eef3fb" stroke="#345"/>'
    )
    yield f'<text x="{box.x:.0f}" y="{middle:.0f}" font-size="15">{box.room}</text>'
    if box.inside:
        yield (
            f'<text x="{box.x:.0f}" y="{box.y + 37:.0f}" font-size="12" fill="#667">'
            f"{box.inside}</text>"
        )


def packages(room: Room) -> str:
    """The packages of a room, for its box."""
    folder = ROOT / "svcd" / room
    found = sorted(each.parent.name for each in folder.glob("*/__init__.py"))
    return " · ".join(found)


def drawn() -> str:
    """The picture of this tree."""
    rows = layers((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return house(rows, imports(), {room: packages(room) for row in rows for room in row})


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
    print(f"wrote {PICTURE}")
