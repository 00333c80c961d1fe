"""The pictures of states are those of the tables."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.support.states import CLUSTER, DOCS, PICTURES, svg


class PicturesTests(SynchronousTestCase):
    def test_committed_pictures_are_drawn_from_the_tables(self) -> None:
        """`python -m tests.support.states`"""
        for name, drawing in PICTURES.items():
            self.assertEqual((DOCS / name).read_text("utf-8"), svg(drawing), name)

    def test_states_in_a_frame_have_the_same_moves(self) -> None:
        """The picture shows the moves of one of them for all."""
        work = [CLUSTER.moves[member] for member in CLUSTER.frames[0].members]
        self.assertEqual([moves for moves in work if moves != work[0]], [])
