"""The list of trees that were built on this machine."""

from __future__ import annotations

from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from svcd.provisioning.distributions.vanilla.image.trees import (
    MOST_TREES,
    add_tree,
    read_trees,
)


class TreesTest(SynchronousTestCase):
    """One file, one folder a line."""

    def setUp(self) -> None:
        self.base = Path(self.mktemp()).absolute()
        self.file = self.base / "cache" / "svcd" / "trees"
        self.said: list[str] = []

    def tree(self, name: str) -> Path:
        (self.base / name).mkdir(parents=True)
        return self.base / name

    def test_last_built_first(self) -> None:
        """Each tree once; those that are gone are left out."""
        one, two = self.tree("one"), self.tree("two")
        self.assertEqual(read_trees(self.file), ())
        for tree in (one, self.base / "gone", two, one):
            add_tree(self.file, tree, self.said.append)
        self.assertEqual(read_trees(self.file), (one, two))
        self.assertEqual(self.said, [])

    def test_bound(self) -> None:
        """The oldest are forgotten."""
        trees = [self.tree(str(number)) for number in range(MOST_TREES + 1)]
        for tree in trees:
            add_tree(self.file, tree, self.said.append)
        self.assertEqual(read_trees(self.file), tuple(reversed(trees[1:])))
