"""Who gets one more connection or forward of the loopback machines."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.machine_limits import Room, Share, Waiting


def taken(share: Share, most: int = 10_000) -> int:
    """How many `share` gets of `most`."""
    return next((n for n in range(most) if not share.take()), most)


class ShareTests(SynchronousTestCase):
    def test_a_login_has_at_most_half_of_its_machine(self) -> None:
        """The next one has a part of the rest, and a third one still gets some."""
        shares, _ = Room(4096).machine()
        logins = [shares.part() for _ in range(3)]
        self.assertEqual([taken(each.relays) for each in logins], [256, 128, 64])
        self.assertEqual([taken(each.connections) for each in logins], [64, 32, 16])
        self.assertEqual([taken(each.sessions) for each in logins], [64, 32, 16])
        self.assertEqual(shares.relays.used, 448)

    def test_all_machines_together_stay_below_the_files_for_them(self) -> None:
        """And a machine that has nothing yet gets some."""
        room = Room(1024)
        hogs = [room.machine()[0] for _ in range(5)]
        had = [taken(each.relays) for each in hogs]
        self.assertEqual(had, [384, 192, 96, 48, 24])
        self.assertEqual(room.files.used, sum(had))
        self.assertGreater(taken(room.machine()[0].part().connections), 5)
        self.assertLess(room.files.used, 768)

    def test_what_is_given_back_is_there_again(self) -> None:
        """In the part and in the whole."""
        shares, _ = Room(4096).machine()
        login = shares.part()
        for _ in range(taken(login.relays)):
            login.relays.give_back()
        self.assertEqual((login.in_use, shares.in_use), (False, False))
        self.assertEqual(taken(login.relays), 256)


class WaitingTests(SynchronousTestCase):
    def test_the_oldest_makes_place(self) -> None:
        """A newcomer always gets in."""
        waiting = Waiting(2)
        self.assertEqual([waiting.add(each) for each in ("a", "b", "c")], [None, None, "a"])
        waiting.discard("a")
        waiting.discard("b")
        self.assertIsNone(waiting.add("d"))
        self.assertEqual(len(waiting), 2)
