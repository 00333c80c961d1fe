"""The pictures of states are those of the tables."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from tests.support.states import CLUSTER, DOCS, EXECUTION, PICTURES, SUBMIT, arrows, svg


class PicturesTests(SynchronousTestCase):
    def test_committed_pictures_are_drawn_from_the_tables(self) -> None:
        """`python -m tests.support.states`"""
        for name, drawing in PICTURES.items():
            self.assertEqual((DOCS / name).read_text("utf-8"), svg(drawing), name)

    def test_states_with_the_same_moves_share_a_frame(self) -> None:
        """An arrow from a frame stands for each of its states."""
        found = arrows(CLUSTER)
        self.assertEqual(found["work", "Active"], "settle")
        self.assertEqual(found["Active", "Validating"], "scale")
        work = [CLUSTER.moves[member] for member in CLUSTER.frames[0].members]
        self.assertEqual([each for each in work if each != work[0]], [])

    def test_an_arrow_to_a_frame_stands_for_all_ends(self) -> None:
        """An execution may end from each status."""
        ending = [before for before, after in arrows(EXECUTION) if after == "end"]
        self.assertEqual(ending, ["Pending", "PREP", "RUNNING", "SUSPENDED"])
        self.assertNotIn(("Pending", "KILLED"), arrows(EXECUTION))

    def test_moves_between_the_same_states_share_an_arrow(self) -> None:
        """With both names."""
        self.assertEqual(arrows(SUBMIT)["sent", "idle"], "turn away, end")
