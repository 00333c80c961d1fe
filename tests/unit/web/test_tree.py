"""The segment tree and the decoding of paths."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.web.tree import Tree, allowed, names_in, segments_of


def tree_of(*rules: tuple[str, str]) -> Tree[str]:
    """A tree in which every route is served by its own text."""
    tree: Tree[str] = Tree()
    for method, rule in rules:
        tree.add(rule, [method], f"{method} {rule}")
    return tree


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

    def test_the_rest_of_a_path_comes_last(self) -> None:
        """It holds one segment at least, and empty ones as they are."""
        tree = tree_of(
            ("GET", "/a/<path:rest>"),
            ("GET", "/a/<id>"),
            ("GET", "/a/b"),
            ("PUT", "/a/<path:rest>"),
        )
        self.assertEqual(self.found(tree, b"GET", b"/a/b"), ("GET /a/b", ()))
        self.assertEqual(self.found(tree, b"GET", b"/a/c"), ("GET /a/<id>", (b"c",)))
        self.assertEqual(self.found(tree, b"PUT", b"/a/b"), ("PUT /a/<path:rest>", (b"b",)))
        self.assertEqual(self.found(tree, b"GET", b"/a/b//c"), ("GET /a/<path:rest>", (b"b//c",)))
        self.assertIsNone(tree.find([b"a"], b"GET"))

    def test_a_miss_is_none(self) -> None:
        """Too short, too long, empty segments."""
        tree = tree_of(("GET", "/a/<id>"))
        for segments in ([b"a"], [b"a", b""], [b"a", b"1", b"2"], [b"b", b"1"]):
            self.assertIsNone(tree.find(segments, b"GET"))

    def test_a_rule_that_is_more_than_segments_is_refused(self) -> None:
        """Converters, parts of segments, a rest in the middle, a slash at the end."""
        for rule in ("/a/<int:id>", "/a/x<id>", "/<path:a>/b", "/a/", "a", ""):
            self.assertRaises(ValueError, tree_of, ("GET", rule))

    def test_a_route_that_is_served_already_is_refused(self) -> None:
        """Klein would serve the first and never the second."""
        self.assertRaises(ValueError, tree_of, ("GET", "/a/<id>"), ("GET", "/a/<name>"))

    def test_names(self) -> None:
        """In order."""
        self.assertEqual(names_in("/a/<b>/c/<path:d>"), ("b", "d"))
        self.assertEqual(names_in("/"), ())

    def test_allow(self) -> None:
        """The methods of the path, and always OPTIONS."""
        self.assertEqual(allowed({b"POST": 1, b"GET": 1}), "GET, OPTIONS, POST")


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
