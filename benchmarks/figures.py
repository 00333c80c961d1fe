"""Figures of benchmarks, with their rounds, shown as a table."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import Final

from attrs import frozen

_HEADINGS: Final = ("figure", "unit", "minimum", "median", "target", "met")


@frozen(kw_only=True)
class Figure:
    """One figure. rounds: a value for each; target: the most that the median may be."""

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
    for figure in figures:
        target = "" if figure.target is None else f"<= {_short(figure.target)}"
        met = "" if figure.target is None else ("yes" if figure.met else "NO")
        lines.append(
            (
                f"{figure.benchmark}: {figure.name}",
                figure.unit,
                _short(figure.minimum),
                _short(figure.median),
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


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 1000 else f"{value:.3g}"
