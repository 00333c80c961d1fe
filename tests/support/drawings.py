"""`python -m tests.support.drawings`: draw docs/house.svg from the import contract.

A row of the picture is a layer of the contract "rooms import downwards only" (pyproject.toml), a
box is a room. An arrow is an import between rooms; an arrow that follows from others is left out.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Mapping, Sequence, Set
from pathlib import Path

import grimp

from tests.support.states import Drawing, svg

ROOT = Path(__file__).parents[2]
PICTURE = ROOT / "docs" / "house.svg"
CONTRACT = "rooms import downwards only"

Room = str
Imports = Mapping[Room, Set[Room]]

_WIDTH = 960
_ROW = 84
_GAP = 110
_ASIDE: Mapping[Room, float] = {"web": 125}
"""Rooms that make way for arrows: how far right of the middle."""
_LETTER = 8.0
_STRAIGHT = 60.0
"""An arrow that is less aslant, and passes a row, bends around the boxes of that row."""


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


def house(rows: Sequence[Sequence[Room]], known: Imports, names: Mapping[Room, str]) -> str:
    """The picture as SVG. names: text of each room's box."""
    places = {
        room: place for number, row in enumerate(rows) for room, place in _row(row, number, names)
    }
    arrows = {room: sorted(others) for room, others in sorted(reduced(known).items())}
    bends = {}
    for room, others in arrows.items():
        for other in others:
            (x, y), (other_x, other_y) = places[room], places[other]
            if other_y - y > _ROW and abs(x - other_x) < _STRAIGHT:
                bends[names[room], names[other]] = 75.0 if x >= _WIDTH / 2 else -75.0
    drawing = Drawing(
        title="The rooms of svcd and their imports",
        size=(_WIDTH, _ROW * len(rows)),
        places={names[room]: place for room, place in places.items()},
        moves={names[room]: {names[o]: "" for o in others} for room, others in arrows.items()},
        bends=bends,
    )
    return svg(drawing)


def _row(
    row: Sequence[Room], number: int, names: Mapping[Room, str]
) -> Iterator[tuple[Room, tuple[float, float]]]:
    """The middle of each box of a row."""
    widths = [_LETTER * max(map(len, names[room].split("\n"))) + 28 for room in row]
    aside = _ASIDE.get(row[0], 0.0) if len(row) == 1 else 0.0
    x = (_WIDTH - sum(widths) - _GAP * (len(row) - 1)) / 2 + aside
    for room, width in zip(row, widths, strict=True):
        yield room, (x + width / 2, _ROW * (number + 0.5))
        x += width + _GAP


def _named(room: Room) -> str:
    """A room and its packages, for its box."""
    found = sorted(each.parent.name for each in (ROOT / "svcd" / room).glob("*/__init__.py"))
    return "\n".join([room, *([" · ".join(found)] if found else [])])


def drawn() -> str:
    """The picture of this tree."""
    rows = layers((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return house(rows, imports(), {room: _named(room) for row in rows for room in row})


if __name__ == "__main__":
    PICTURE.write_text(drawn(), encoding="utf-8")
    print(f"wrote {PICTURE}")
