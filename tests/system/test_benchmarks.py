# mypy: allow-untyped-calls
"""The figures of the benchmarks, their client, and the life that they measure."""

from __future__ import annotations

import socket

from twisted.trial.unittest import SynchronousTestCase

from benchmarks import lives
from benchmarks.client import Connection, Refused, request
from benchmarks.figures import Figure, quantile, ratio, table
from svcd.testing import FakeServiceMixin

ONE = Figure(benchmark="b", name="one", unit="ms", rounds=(3.0, 1.0, 2.0), target=1.5)


class FiguresTests(SynchronousTestCase):
    def test_a_figure_is_judged_by_its_median(self) -> None:
        """The best round alone does not meet a target."""
        self.assertEqual((ONE.minimum, ONE.median, ONE.met), (1.0, 2.0, False))

    def test_ratios_are_taken_round_by_round(self) -> None:
        """Not of the medians."""
        figure = ratio("b", "r", [2.0, 9.0], [1.0, 3.0], 3.0)
        self.assertEqual((figure.rounds, figure.met), ((2.0, 3.0), True))

    def test_quantiles(self) -> None:
        """Of any order, the last one for the whole."""
        values = [float(n) for n in range(100, 0, -1)]
        self.assertEqual(
            [quantile(values, share) for share in (0.0, 0.5, 0.99, 1.0)], [1.0, 51.0, 100.0, 100.0]
        )

    def test_table(self) -> None:
        """One line a figure, numbers to the right."""
        self.assertEqual(
            table([ONE]).splitlines(),
            [
                "figure  unit  minimum  median  target  met",
                "b: one  ms          1       2  <= 1.5  NO",
            ],
        )


class ClientTests(SynchronousTestCase):
    """Over a pair of sockets, the answer already in it."""

    def answered(self, answer: bytes) -> Connection:
        ours, theirs = socket.socketpair()
        self.addCleanup(theirs.close)
        connection = Connection(ours)
        self.addCleanup(connection.close)
        theirs.sendall(answer)
        theirs.shutdown(socket.SHUT_WR)
        return connection

    def test_the_length_ends_the_body(self) -> None:
        """Whatever the case of its header."""
        connection = self.answered(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\n12345")
        self.assertEqual(connection.exchange(request("GET", "/")), b"12345")
        connection = self.answered(b"HTTP/1.1 202 Accepted\r\ncontent-length: 0\r\n\r\n")
        self.assertEqual(connection.exchange(request("PUT", "/", b"x")), b"")

    def test_no_content(self) -> None:
        """204 has no length."""
        connection = self.answered(b"HTTP/1.1 204 No Content\r\n\r\n")
        self.assertEqual(connection.exchange(request("DELETE", "/")), b"")

    def test_an_error_is_told(self) -> None:
        """A benchmark of refusals would measure nothing."""
        connection = self.answered(b"HTTP/1.1 404 Not Found\r\nContent-Length: 4\r\n\r\ngone")
        error = self.assertRaises(Refused, connection.exchange, request("GET", "/"))
        self.assertIn("404", str(error))

    def test_a_broken_connection(self) -> None:
        """Also in the middle of a body."""
        connection = self.answered(b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n12")
        self.assertRaises(ConnectionError, connection.exchange, request("GET", "/"))


class LivesTests(FakeServiceMixin, SynchronousTestCase):
    def test_a_whole_life(self) -> None:
        """It ends without a cluster and with a finished execution."""
        service = self.fake_service()
        lives.whole_life(service)
        self.assertEqual(lives.asked(service, "GET", "/clusters"), {"clusters": []})
        (found,) = lives.asked(service, "GET", "/job-executions")["job_executions"]
        self.assertEqual(found["info"]["status"], "SUCCEEDED")

    def test_an_error_ends_the_wait(self) -> None:
        """It is told with the cluster."""
        service = self.fake_service({"embedded.quota_instances": "1"})
        body = lives.new_cluster(service, "small")
        error = self.assertRaises(lives.Unexpected, lives.asked, service, "POST", "/clusters", body)
        self.assertIn("QUOTA", str(error))
