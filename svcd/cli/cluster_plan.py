"""The plan of a dry run of `svcd cluster create` as tables for people. Pure.

`-o json` and `-o yaml` have the whole plan, with the contents of the files.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from svcd.cli.show import Column, Row, Style, field, get, table_lines
from svcd.cli.times import duration

Json = Mapping[str, Any]

_MACHINES: Final = (
    field("MACHINE", "name", key=True),
    field("CHANGE", "change", cut=False),
    field("GROUP", "node_group"),
    field("FLAVOR", "flavor"),
    field("PROCESSES", "node_processes"),
)
_VOLUMES: Final = (
    field("VOLUME OF", "machine", key=True),
    field("CHANGE", "change", cut=False),
    Column(title="SIZE", text=lambda row, _: f"{get(row, 'size_gib')} GiB", cut=False),
    field("FOLDER", "mount_point"),
)
_ADDRESSES: Final = (
    field("FLOATING IP OF", "machine", key=True),
    field("CHANGE", "change", cut=False),
    field("POOL", "floating_ip_pool"),
)
_QUOTA: Final = (
    field("QUOTA", "resource", key=True),
    field("NEEDED", "needed", cut=False),
    Column(title="LEFT", text=lambda row, _: _left(row, "left"), cut=False),
    Column(title="AFTER", text=lambda row, _: _left(row, "left_after"), cut=False),
)
_STAGES: Final = (
    field("STAGE", "name", key=True),
    Column(title="FILES", text=lambda row, _: _actions(row["files"]), cut=False),
    Column(title="COMMANDS", text=lambda row, _: _actions(row["commands"]), cut=False),
    Column(title="CHECKS", text=lambda row, _: _actions(row["awaited"]), cut=False),
    Column(title="AT MOST", text=lambda row, _: duration(row["deadline_s"]), cut=False),
)


def lines(plan: Json, flavors: Json, width: int | None, style: Style) -> Iterator[str]:
    """The tables of a plan. flavors: names by id. width: of the terminal; None: nothing is cut."""
    machines = [
        {**machine, "flavor": flavors.get(get(machine, "flavor_id")) or get(machine, "flavor_id")}
        for machine in plan["machines"]
    ]
    tables: Sequence[tuple[Sequence[Column], Sequence[Row]]] = (
        (_MACHINES, machines),
        (_VOLUMES, plan["volumes"]),
        (_ADDRESSES, plan["addresses"]),
        (_QUOTA, [row for row in plan["quota"] if row["needed"]]),
        (_STAGES, plan["stages"]),
    )
    gap = False
    for columns, rows in tables:
        if rows:
            if gap:
                yield ""
            gap = True
            yield from table_lines(columns, rows, width, 0.0, style)


def _left(row: Row, key: str) -> str:
    return "unlimited" if row[key] is None else str(row[key])


def _actions(works: Iterable[Json]) -> str:
    """The number of runs of a stage's works: each work runs on each of its machines."""
    return str(sum(len(work["machines"]) for work in works))
