"""What a benchmark gives: figures with their rounds, shown as a table or as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

from attrs import frozen

_HEADINGS: Final = ("figure", "unit", "minimum", "median", "target", "met")


@frozen(kw_only=True)
class Figure:
    """One figure. rounds: a value each; target: the median shall not be over it."""

    benchmark: str
    name: str
    unit: str
    rounds: tuple[float, ...]
    target: float | None = None

    @property
    def minimum(self) -> float:
        """The best round."""
        return min(self.rounds)

    @property
    def median(self) -> float:
        """The middle of the rounds."""
        return median(self.rounds)

    @property
    def met(self) -> bool:
        """Whether the target is kept; true without one."""
        return self.target is None or self.median <= self.target

    def as_json(self) -> Mapping[str, object]:
        """For `--json`."""
        return {
            "benchmark": self.benchmark,
            "name": self.name,
            "unit": self.unit,
            "minimum": self.minimum,
            "median": self.median,
            "rounds": self.rounds,
            "target": self.target,
            "met": self.met,
        }


def ratio(
    benchmark: str,
    name: str,
    above: Sequence[float],
    below: Sequence[float],
    target: float | None = None,
) -> Figure:
    """`above` over `below`, round by round."""
    rounds = tuple(a / b for a, b in zip(above, below, strict=True))
    return Figure(benchmark=benchmark, name=name, unit="x", rounds=rounds, target=target)


def quantile(values: Sequence[float], share: float) -> float:
    """The value that `share` of `values` do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def table(figures: Sequence[Figure]) -> str:
    """All figures, one a line."""
    lines: list[Sequence[str]] = [_HEADINGS]
    for each in figures:
        target = "" if each.target is None else f"<= {_short(each.target)}"
        met = "" if each.target is None else ("yes" if each.met else "NO")
        lines.append(
            (
                f"{each.benchmark}: {each.name}",
                each.unit,
                _short(each.minimum),
                _short(each.median),
                target,
                met,
            )
        )
    widths = [max(len(line[i]) for line in lines) for i in range(len(_HEADINGS))]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if 1 < i < 5 else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    )


def as_json(figures: Sequence[Figure], machine: Mapping[str, object]) -> str:
    """All figures with what they were taken on."""
    return json.dumps({"machine": machine, "figures": [f.as_json() for f in figures]}, indent=1)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
