"""Counters and histograms in plain dicts, which become metric families when they are read.

The library's own counters cost a microsecond each, on every request. Every tally bounds the number
of its label values, so that no peer and no plugin can grow the memory.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import Final

from prometheus_client.core import CounterMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector

OTHER: Final = "other"
"""The value of all labels beyond the bound."""
_MOST: Final = 2000
"""Most combinations of label values of one tally."""


class Counts(Collector):
    """A counter with labels.

    name: without `_total`. known: values of the labels that are shown from the start with 0,
    because an increase needs the 0 before the first one.
    """

    def __init__(
        self, name: str, text: str, labels: Sequence[str], known: Sequence[tuple[str, ...]] = ()
    ) -> None:
        self._name, self._text, self._labels = name, text, labels
        self._counts: dict[tuple[object, ...], float] = dict.fromkeys(known, 0)

    def add(self, *values: object, by: float = 1) -> None:
        """Count one more, or `by`. values: of the labels, in their order."""
        counts = self._counts
        if values not in counts and len(counts) >= _MOST:
            values = (OTHER,) * len(self._labels)
        counts[values] = counts.get(values, 0) + by

    def collect(self) -> Iterator[Metric]:
        """See Collector. Without labels there is always one value."""
        family = CounterMetricFamily(self._name, self._text, labels=self._labels)
        if not self._labels and not self._counts:
            family.add_metric([], 0)
        for values, count in sorted(self._counts.items(), key=_by_labels):
            family.add_metric([*map(str, values)], count)
        yield family


class Durations(Collector):
    """A histogram of seconds with labels. bounds: upper bounds of its buckets, ascending."""

    def __init__(
        self, name: str, text: str, labels: Sequence[str], bounds: Sequence[float]
    ) -> None:
        self._name, self._text, self._labels, self._bounds = name, text, labels, bounds
        self._slots: dict[tuple[object, ...], list[int]] = {}
        self._sums: dict[tuple[object, ...], float] = {}

    def add(self, seconds: float, *values: object) -> None:
        """Count one duration. values: of the labels, in their order."""
        slots = self._slots.get(values)
        if slots is None:
            slots, values = self._new(values)
        slots[bisect_left(self._bounds, seconds)] += 1
        self._sums[values] += seconds

    def _new(self, values: tuple[object, ...]) -> tuple[list[int], tuple[object, ...]]:
        if len(self._slots) >= _MOST:
            values = (OTHER,) * len(self._labels)
        self._sums.setdefault(values, 0.0)
        return self._slots.setdefault(values, [0] * (len(self._bounds) + 1)), values

    def collect(self) -> Iterator[Metric]:
        """See Collector."""
        family = HistogramMetricFamily(self._name, self._text, labels=self._labels)
        for values, slots in sorted(self._slots.items(), key=_by_labels):
            running, buckets = 0, []
            for bound, count in zip([*map(str, self._bounds), "+Inf"], slots, strict=True):
                running += count
                buckets.append((bound, running))
            family.add_metric([*map(str, values)], buckets, self._sums[values])
        yield family


def _by_labels(item: tuple[tuple[object, ...], object]) -> tuple[str, ...]:
    return tuple(map(str, item[0]))
