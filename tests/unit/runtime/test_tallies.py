"""Counters and histograms in plain dicts."""

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.registry import Collector
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime import tallies
from svcd.runtime.tallies import Counts, Durations


def shown(collector: Collector) -> list[str]:
    registry = CollectorRegistry()
    registry.register(collector)
    text = generate_latest(registry).decode()
    return [line for line in text.splitlines() if not line.startswith("#")]


class CountsTests(SynchronousTestCase):
    def test_values_are_counted_by_their_labels(self) -> None:
        """In the order of the labels' values."""
        counts = Counts("x", "Things.", ["colour", "size"])
        counts.add("red", 2)
        counts.add("blue", 1, by=2.5)
        counts.add("red", 2)
        self.assertEqual(
            shown(counts),
            ['x_total{colour="blue",size="1"} 2.5', 'x_total{colour="red",size="2"} 2.0'],
        )

    def test_label_values_are_bounded(self) -> None:
        """All others are one."""
        counts = Counts("x", "Things.", ["id"])
        for number in range(tallies._MOST + 5):
            counts.add(number)
        counts.add(3)
        lines = shown(counts)
        self.assertEqual(len(lines), tallies._MOST + 1)
        self.assertIn('x_total{id="other"} 5.0', lines)
        self.assertIn('x_total{id="3"} 2.0', lines)


class DurationsTests(SynchronousTestCase):
    def test_a_duration_counts_in_all_buckets_above_it(self) -> None:
        """A bound belongs to its bucket."""
        times = Durations("x_seconds", "Times.", ["who"], (0.5, 1.0))
        for seconds in (0.25, 0.5, 0.75, 8.0):
            times.add(seconds, "me")
        self.assertEqual(
            shown(times),
            [
                'x_seconds_bucket{le="0.5",who="me"} 2.0',
                'x_seconds_bucket{le="1.0",who="me"} 3.0',
                'x_seconds_bucket{le="+Inf",who="me"} 4.0',
                'x_seconds_count{who="me"} 4.0',
                'x_seconds_sum{who="me"} 9.5',
            ],
        )
