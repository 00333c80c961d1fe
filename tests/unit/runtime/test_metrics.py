"""What `/metrics` says of the database's connections."""

from twisted.trial.unittest import SynchronousTestCase

from svcd.ports.store import DatabaseFigures
from svcd.runtime.metrics import Metrics


class DatabaseMetricsTests(SynchronousTestCase):
    def test_figures_are_shown(self) -> None:
        """As they are when somebody looks."""
        metrics = Metrics()
        figures = [
            DatabaseFigures(
                busy=3,
                idle=2,
                most=8,
                waiting=4,
                reachable=True,
                opened=9,
                lost=1,
                refused=5,
                repeated=6,
                waits=7,
                waited_s=1.5,
            )
        ]
        metrics.watch_database(lambda: figures[0])
        shown = metrics.exposition().decode().splitlines()
        for line in (
            'svcd_database_connections{state="busy"} 3.0',
            'svcd_database_connections{state="idle"} 2.0',
            "svcd_database_connections_most 8.0",
            "svcd_database_waiting 4.0",
            "svcd_database_reachable 1.0",
            "svcd_database_connections_opened_total 9.0",
            "svcd_database_connections_lost_total 1.0",
            "svcd_database_refused_total 5.0",
            "svcd_database_transactions_repeated_total 6.0",
            "svcd_database_waits_total 7.0",
            "svcd_database_wait_seconds_total 1.5",
        ):
            self.assertIn(line, shown)
