"""`python -m tests.support.states`: draw the pictures of states and of trust for the docs.

The moves come from the tables of states, the places of the boxes from here. States with the same
moves share a frame, and an arrow from or to a frame stands for all states in it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from math import hypot
from pathlib import Path
from typing import Final

from attrs import frozen

from svcd.provisioning.decide.lifecycle import MOVES as CLUSTER_MOVES
from svcd.workflow.decide.lifecycle import MOVES as EXECUTION_MOVES
from svcd.workflow.decide.lifecycle import SUBMITS

DOCS: Final = Path(__file__).parents[2] / "docs"
Moves = Mapping[str, Mapping[str, str]]
"""State -> next state -> the inputs that lead there."""

_HALF_HEIGHT: Final = 18.0
_LETTER: Final = 8.0
_INK, _LINE, _PALE = "#222", "#556", "#eef3fb"
_HEAD: Final = """<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" \
font-family="sans-serif" text-anchor="middle" role="img">
<title>{title}</title>
<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" \
orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="#556"/></marker></defs>
<rect width="{width}" height="{height}" fill="#fff"/>"""


@frozen(kw_only=True)
class Frame:
    """A frame around boxes. name: of the frame in arrows; text: its title."""

    name: str
    members: Sequence[str]
    text: str


@frozen(kw_only=True)
class Drawing:
    """A picture. places: middle of each box; bends: how far an arrow leaves its straight line."""

    title: str
    size: tuple[int, int]
    places: Mapping[str, tuple[float, float]]
    moves: Moves
    bends: Mapping[tuple[str, str], float] = {}
    frames: Sequence[Frame] = ()
    within: Sequence[tuple[str, str]] = ()
    """Arrows between boxes of one frame that are drawn: the usual way."""


@frozen
class _Box:
    x: float
    y: float
    half_width: float
    half_height: float

    def edge(self, x: float, y: float) -> tuple[float, float]:
        """Where the line from the middle to (x, y) leaves the box."""
        right, down = x - self.x, y - self.y
        scale = min(
            (self.half_width + 3) / abs(right) if right else 9e9,
            (self.half_height + 3) / abs(down) if down else 9e9,
        )
        return self.x + right * scale, self.y + down * scale


def svg(drawing: Drawing) -> str:
    """The picture as SVG."""
    width, height = drawing.size
    boxes = {
        name: _Box(x, y, max(len(line) for line in name.split("\n")) * _LETTER / 2 + 14,
                   _HALF_HEIGHT + 8 * name.count("\n"))
        for name, (x, y) in drawing.places.items()
    }  # fmt: skip
    for frame in drawing.frames:
        boxes[frame.name] = _around([boxes[member] for member in frame.members])
    lines = [_HEAD.format(width=width, height=height, title=drawing.title)]
    for frame in drawing.frames:
        lines += _framed(frame, boxes[frame.name])
    labels: list[str] = []
    for (before, after), text in arrows(drawing).items():
        back = 16.0 if (after, before) in arrows(drawing) else 0.0
        bend = drawing.bends.get((before, after), back)
        line, label = _arrow(boxes[before], boxes[after], bend, text)
        lines.append(line)
        labels += label
    for name in drawing.places:
        lines += _drawn(name, boxes[name])
    return "\n".join([*lines, *labels, "</svg>", ""])


def arrows(drawing: Drawing) -> Mapping[tuple[str, str], str]:
    """The arrows with their texts: those of the table, with frames for their members."""
    members = {each: frame.name for frame in drawing.frames for each in frame.members}
    sizes = {frame.name: len(frame.members) for frame in drawing.frames}
    found: dict[tuple[str, str], str] = dict.fromkeys(drawing.within, "")
    for before, ways in drawing.moves.items():
        whole = {name: {after for after in ways if members.get(after) == name} for name in sizes}
        for after, text in ways.items():
            frame = members.get(after, "")
            all_of_it = frame and len(whole[frame]) == sizes[frame]
            pair = (members.get(before, before), frame if all_of_it else after)
            if before != after and members.get(before, before) != (frame or after):
                found[pair] = "" if all_of_it else text
    return found


def _around(inside: Sequence[_Box]) -> _Box:
    left = min(box.x - box.half_width for box in inside) - 14
    right = max(box.x + box.half_width for box in inside) + 14
    top = min(box.y - box.half_height for box in inside) - 34
    bottom = max(box.y + box.half_height for box in inside) + 14
    return _Box((left + right) / 2, (top + bottom) / 2, (right - left) / 2, (bottom - top) / 2)


def _framed(frame: Frame, box: _Box) -> Iterator[str]:
    yield _rectangle(box, "#fbfbfd", ' stroke-dasharray="5 4"')
    y = box.y - box.half_height + 22
    yield f'<text x="{box.x:.0f}" y="{y:.0f}" font-size="12" fill="{_LINE}">{frame.text}</text>'


def _drawn(name: str, box: _Box) -> Iterator[str]:
    yield _rectangle(box, _PALE, "")
    lines = name.split("\n")
    for number, line in enumerate(lines):
        y = box.y + 5 + 17 * (number - (len(lines) - 1) / 2)
        yield f'<text x="{box.x:.0f}" y="{y:.0f}" font-size="14" fill="{_INK}">{line}</text>'


def _rectangle(box: _Box, fill: str, more: str) -> str:
    return (
        f'<rect x="{box.x - box.half_width:.0f}" y="{box.y - box.half_height:.0f}"'
        f' width="{2 * box.half_width:.0f}" height="{2 * box.half_height:.0f}" rx="6"'
        f' fill="{fill}" stroke="#345"{more}/>'
    )


def _arrow(a: _Box, b: _Box, bend: float, text: str) -> tuple[str, Sequence[str]]:
    """A curve whose middle is `bend` to the left of the straight line, and its label."""
    start_x, start_y = _level(a, b)
    end_x, end_y = _level(b, a)
    long = hypot(end_x - start_x, end_y - start_y) or 1.0
    x = (start_x + end_x) / 2 + 2 * bend * (end_y - start_y) / long
    y = (start_y + end_y) / 2 - 2 * bend * (end_x - start_x) / long
    (x1, y1), (x2, y2) = (
        _Box(start_x, start_y, *_half(a, start_x, start_y)).edge(x, y),
        _Box(end_x, end_y, *_half(b, end_x, end_y)).edge(x, y),
    )
    line = f'<path d="M{x1:.0f},{y1:.0f} Q{x:.0f},{y:.0f} {x2:.0f},{y2:.0f}" fill="none"'
    line += f' stroke="{_LINE}" stroke-width="1.3" marker-end="url(#head)"/>'
    if not text:
        return line, ()
    at_x, at_y = (x1 + 2 * x + x2) / 4, (y1 + 2 * y + y2) / 4
    pieces = text.split("\n")
    return line, [
        f'<text x="{at_x:.0f}" y="{at_y + 4 + 14 * (n - (len(pieces) - 1) / 2):.0f}"'
        f' font-size="12" fill="{_INK}" paint-order="stroke" stroke="#fff" stroke-width="5">'
        f"{piece}</text>"
        for n, piece in enumerate(pieces)
    ]


def _level(box: _Box, other: _Box) -> tuple[float, float]:
    """The middle of a box, moved along a frame to stand opposite of the other box."""
    x = min(max(other.x, box.x - box.half_width + 30), box.x + box.half_width - 30)
    y = min(max(other.y, box.y - box.half_height + 15), box.y + box.half_height - 15)
    return (x if box.half_width > 100 else box.x), (y if box.half_height > 40 else box.y)


def _half(box: _Box, x: float, y: float) -> tuple[float, float]:
    """How far a box reaches around a point in it."""
    return box.half_width - abs(x - box.x), box.half_height - abs(y - box.y)


# ---- the pictures -------------------------------------------------------------------------------


def _by_state(table: Mapping[str, Mapping[str, str]]) -> Moves:
    """State -> input -> state as a table by next states."""
    found: dict[str, dict[str, str]] = {}
    for before, moves in table.items():
        ways = found.setdefault(str(before), {})
        for move, after in moves.items():
            ways[str(after)] = ", ".join(filter(None, (ways.get(str(after), ""), str(move))))
    return found


_WORK: Final = (
    "Validating", "Spawning", "Preparing", "Configuring", "Starting", "Decommissioning",
)  # fmt: skip
CLUSTER: Final = Drawing(
    title="The states of a cluster",
    size=(900, 400),
    places={
        "Waiting": (70, 330),
        "Validating": (110, 120),
        "Spawning": (250, 120),
        "Preparing": (390, 120),
        "Configuring": (535, 120),
        "Starting": (675, 120),
        "Decommissioning": (460, 185),
        "Active": (835, 150),
        "Error": (330, 330),
        "Deleting": (620, 330),
    },
    moves=_by_state(CLUSTER_MOVES),
    frames=[Frame(name="work", members=_WORK, text="at work: from each of these to each other")],
    within=list(pairwise(_WORK[:5])),
    bends={
        ("Waiting", "Deleting"): -42,
        ("Waiting", "Spawning"): 15,
        ("Active", "Validating"): -62,
    },
)
EXECUTION: Final = Drawing(
    title="The statuses of a job execution",
    size=(760, 330),
    places={
        "Pending": (80, 60),
        "PREP": (250, 60),
        "RUNNING": (420, 60),
        "SUSPENDED": (620, 60),
        "SUCCEEDED": (230, 260),
        "KILLED": (380, 260),
        "FAILED": (520, 260),
    },
    moves={str(a): {str(b): "" for b in sorted(bs)} for a, bs in EXECUTION_MOVES.items()},
    frames=[Frame(name="end", members=("SUCCEEDED", "KILLED", "FAILED"), text="the end")],
    bends={("Pending", "RUNNING"): 22, ("Pending", "SUSPENDED"): 34, ("PREP", "SUSPENDED"): 18},
)
SUBMIT: Final = Drawing(
    title="The submit of a Pending execution",
    size=(760, 430),
    places={
        "idle": (90, 200),
        "sent": (270, 60),
        "denied": (480, 140),
        "fenced": (380, 260),
        "unheard": (270, 370),
        "taken": (680, 230),
    },
    moves=_by_state(SUBMITS),
    bends={("sent", "taken"): 45, ("idle", "taken"): -10},
)
TRUST: Final = Drawing(
    title="Who trusts whom",
    size=(900, 400),
    places={
        "caller": (80, 90),
        "svcd": (400, 90),
        "identity service": (750, 40),
        "services of the cloud": (750, 150),
        "machines of a cluster": (400, 250),
        "jobs": (400, 350),
        "object store": (750, 350),
    },
    moves={
        "caller": {"svcd": "token, with a role\nin the project"},
        "svcd": {
            "identity service": "asks if the token is valid",
            "services of the cloud": "acts in the caller's name,\nby a trust",
            "machines of a cluster": "SSH with the cluster's own key,\nto a pinned host key",
        },
        "machines of a cluster": {"jobs": "run as a user without sudo"},
        "jobs": {"object store": "application credential,\nuntil the job ends"},
    },
)
PICTURES: Final[Mapping[str, Drawing]] = {
    "cluster-life.svg": CLUSTER,
    "job-life.svg": EXECUTION,
    "submit.svg": SUBMIT,
    "trust.svg": TRUST,
}

if __name__ == "__main__":
    for each, picture in PICTURES.items():
        (DOCS / each).write_text(svg(picture), encoding="utf-8")
        print(f"wrote {DOCS / each}")
