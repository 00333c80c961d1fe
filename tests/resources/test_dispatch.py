"""The segment tree and the decoding of paths."""

from __future__ import annotations

from klein import Klein
from klein.resource import KleinResource
from twisted.trial.unittest import SynchronousTestCase

from svcd.resources._dispatch import Tree, allowed, segments_of
from tests.support import StandInService


def tree_of(*rules: tuple[str, str]) -> Tree[str]:
    """A tree whose routes are their own endpoints."""
    app = Klein()
    routes = {}
    for method, rule in rules:
        endpoint = f"{method} {rule}"
        app.route(rule, methods=[method], endpoint=endpoint)(lambda request: b"")
        routes[endpoint] = endpoint
    return Tree(app, routes)


class TreeTests(SynchronousTestCase):
    def found(self, tree: Tree[str], method: bytes, path: bytes) -> tuple[str, tuple[bytes, ...]]:
        segments = segments_of(path)
        assert segments is not None
        hit = tree.find(segments, method)
        assert hit is not None
        return hit[0].methods[method], hit[1]

    def test_static_wins_over_variable(self) -> None:
        """Whatever the order of the routes."""
        tree = tree_of(("GET", "/j/<id>/x"), ("GET", "/j/hints/<type>"))
        self.assertEqual(self.found(tree, b"GET", b"/j/hints/x"), ("GET /j/hints/<type>", (b"x",)))
        self.assertEqual(self.found(tree, b"GET", b"/j/1/x"), ("GET /j/<id>/x", (b"1",)))

    def test_the_method_decides_between_leaves(self) -> None:
        """A static leaf that does not know the method gives way."""
        tree = tree_of(("POST", "/j/<id>/execute"), ("GET", "/j/hints/<type>"))
        self.assertEqual(
            self.found(tree, b"POST", b"/j/hints/execute"), ("POST /j/<id>/execute", (b"hints",))
        )

    def test_a_miss_is_none(self) -> None:
        """Too short, too long, empty segments."""
        tree = tree_of(("GET", "/a/<id>"))
        for segments in ([b"a"], [b"a", b""], [b"a", b"1", b"2"], [b"b", b"1"]):
            self.assertIsNone(tree.find(segments, b"GET"))

    def test_a_rule_that_is_more_than_segments_is_refused(self) -> None:
        """At compile time."""
        self.assertRaises(ValueError, tree_of, ("GET", "/a/<int:id>"))
        self.assertRaises(ValueError, tree_of, ("GET", "/a/x<id>"))

    def test_allow(self) -> None:
        """OPTIONS always, HEAD with GET."""
        self.assertEqual(allowed({b"GET": 1, b"POST": 1}), "GET, HEAD, OPTIONS, POST")

    def test_the_tree_agrees_with_klein(self) -> None:
        """Every route of the service is found by both, with the same values."""
        service = StandInService()
        self.addCleanup(service.close)
        urls = service.rest.app.url_map.bind("a")
        for route in service.rest.routes():
            path = "/".join(
                f"v{n}" if s.startswith("<") else s for n, s in enumerate(route.pattern.split("/"))
            )
            endpoint, values = urls.match(path, route.method)
            segments = segments_of(path.encode())
            assert segments is not None
            hit = service.rest.tree.find(segments, route.method.encode())
            assert hit is not None
            self.assertIs(hit[0].methods[route.method.encode()], route)
            self.assertEqual(endpoint, f"{route.method} {route.pattern}")
            self.assertEqual(
                dict(zip(route.names, [v.decode() for v in hit[1]], strict=True)), values
            )

    def test_klein_serves_the_same_routes(self) -> None:
        """Its own resource leads to the same handlers."""
        service = StandInService()
        self.addCleanup(service.close)
        service.agent.serve("http://api.memory", KleinResource(service.rest.app))
        answer = service.call("GET", "/v1.1/demo/clusters")
        self.assertEqual((answer.status, answer.body), (200, b'{"clusters":[]}'))
        missing = service.call("GET", "/v1.1/demo/clusters/nope")
        self.assertEqual((missing.status, missing.json["error_name"]), (404, "NOT_FOUND"))


class SegmentsTests(SynchronousTestCase):
    def test_paths(self) -> None:
        """Trailing slash, encodings, absolute form; broken ones are None."""
        for path, segments in (
            (b"/", [b""]),
            (b"/a/b", [b"a", b"b"]),
            (b"/a/b/", [b"a", b"b"]),
            (b"/a//b", [b"a", b"", b"b"]),
            (b"/a%20b", [b"a b"]),
            (b"/%c3%A9", [b"\xc3\xa9"]),
            (b"http://host:1/a", [b"a"]),
            (b"/a%2Fb", None),
            (b"/a%2", None),
            (b"/a%zz", None),
            (b"/%", None),
            (b"*", None),
        ):
            self.assertEqual(segments_of(path), segments, path)
