"""Handlers that Klein holds and runs."""

from __future__ import annotations

from typing import Any

from klein import Klein
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from svcd.web.routing import Endpoint, Routed, endpoints, route


class Counted(Klein):
    """A Klein that notes what it runs."""

    ran: tuple[str, ...] = ()

    def execute_endpoint(self, endpoint: str, *args: Any, **more: Any) -> Any:
        """See Klein."""
        type(self).ran += (endpoint,)
        return super().execute_endpoint(endpoint, *args, **more)


class Shelf:
    """A resource class."""

    app = Counted()

    def __init__(self) -> None:
        self.waiting: Deferred[str] = Deferred()

    @route(app, ["GET"], "/books", "/volumes")
    async def list(self, call: str) -> str:
        return f"all for {call}"

    @route(app, ["GET", "DELETE"], "/books/<book_id>")
    def one(self, call: str, book_id: str) -> str:
        return book_id

    @route(app, ["POST"], "/books")
    async def wait(self, call: str) -> str:
        return await self.waiting


class Serving(Routed[Endpoint]):
    """Serves endpoints as they are."""

    endpoints_of = staticmethod(endpoints)

    def render(self, request: Any) -> Any:
        """See IResource."""
        return b""


class RoutingTests(SynchronousTestCase):
    def setUp(self) -> None:
        Counted.ran = ()
        self.shelf = Shelf()
        self.serving = Serving(self.shelf)

    def run_(self, method: bytes, *segments: bytes) -> Any:
        hit = self.serving.tree.find(segments, method)
        assert hit is not None
        made = hit[0].methods[method]
        values = dict(zip(made.names, [v.decode() for v in hit[1]], strict=True))
        return made.run("me", **values)

    def test_what_klein_knows_is_what_is_served(self) -> None:
        """Every rule and method of the map, by Klein's own `execute_endpoint`."""
        self.assertEqual(self.successResultOf(self.run_(b"GET", b"books")), "all for me")
        self.assertEqual(self.successResultOf(self.run_(b"HEAD", b"volumes")), "all for me")
        self.assertEqual(self.run_(b"DELETE", b"books", b"7"), "7")
        self.assertEqual(Counted.ran, ("list", "list", "one"))
        rules = [(each.pattern, each.method, each.methods) for each in endpoints(self.shelf)]
        self.assertEqual(
            rules,
            [
                ("/books", "GET", ["GET", "HEAD"]),
                ("/volumes", "GET", ["GET", "HEAD"]),
                ("/books/<book_id>", "DELETE", ["DELETE", "GET", "HEAD"]),
                ("/books", "POST", ["POST"]),
            ],
        )

    def test_a_handler_that_waits_is_a_deferred(self) -> None:
        """One that does not wait costs none."""
        waits = self.run_(b"POST", b"books")
        self.assertNoResult(waits)
        self.shelf.waiting.callback("done")
        self.assertEqual(self.successResultOf(waits), "done")

    def test_handlers_are_bound_to_their_object(self) -> None:
        """Two objects of a class do not meet."""
        other, waits = Shelf(), self.run_(b"POST", b"books")
        other.waiting.callback("done")
        self.assertNoResult(waits)

    def test_routes_that_cannot_be_served_are_refused(self) -> None:
        """Klein would serve every method of a rule without one, and of two only the first."""

        class Loose:
            app = Klein()

        Loose.app.route("/a")(lambda self, call: None)
        self.assertRaises(ValueError, Serving(Loose()).routes)
        self.assertRaises(ValueError, Serving(self.shelf, Shelf()).routes)

    def test_several_objects_are_served(self) -> None:
        """Their routes follow those of the first object."""

        class Late:
            app = Klein()

            @route(app, ["GET"], "/late")
            def late(self, call: str) -> str:
                return f"late for {call}"

        self.serving = Serving(self.shelf, Late())
        self.assertEqual(self.run_(b"GET", b"late"), "late for me")
        self.assertEqual([r.pattern for r in self.serving.routes()][-1], "/late")
