"""Which rule takes which call."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.embedded.faults import Effect, FaultRule, Faults


class FaultsTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.faults = Faults()

    def hit(self, where: str = "compute", method: str = "GET", path: str = "/servers") -> str:
        rule = self.faults.match(where, method, path)
        return "" if rule is None else rule.effect

    def test_place_method_and_path_must_fit(self) -> None:
        """The path is searched, not matched whole; no method is any."""
        self.faults.add(FaultRule(where="compute", method="POST", path="/servers$"))
        self.assertEqual(self.hit(method="POST"), Effect.ANSWER)
        self.assertEqual(self.hit(), "")
        self.assertEqual(self.hit(method="POST", path="/servers/1"), "")
        self.assertEqual(self.hit("image", "POST"), "")
        self.faults.add(FaultRule(where="ssh", path="oozie", effect="timeout_before"))
        self.assertEqual(self.hit("ssh", "", "setsid oozie start"), Effect.TIMEOUT_BEFORE)

    def test_the_first_rule_that_takes_a_call_decides(self) -> None:
        """When it is used up, the next one."""
        self.faults.add(FaultRule(where="compute", effect="reset_before", times=1))
        self.faults.add(FaultRule(where="compute", effect="garbage", times=1, after=1))
        self.assertEqual([self.hit() for _ in range(4)], ["reset_before", "", "garbage", ""])

    def test_an_unknown_place_is_refused_with_the_known_ones(self) -> None:
        """Such a rule would never take a call. Listeners decide about known calls only."""
        with self.assertRaises(ValueError) as raised:
            self.faults.add(where="object_store")
        self.assertEqual(
            str(raised.exception),
            "a fault rule cannot have where='object_store': did you mean object-store? known places"
            " are identity, compute, image, network, volume, object-store, engine, hdfs, yarn, ssh,"
            " probe, store",
        )
        self.assertRaises(ValueError, FaultRule, where="")
        self.assertEqual(self.faults.rules(), [])

    def test_an_effect_and_a_path_that_cannot_be_are_refused(self) -> None:
        """With the nearest effect, and with the place of the fault in the expression."""
        with self.assertRaises(ValueError) as raised:
            self.faults.add(where="compute", effect="timeout_befor")
        self.assertIn(
            "cannot have effect='timeout_befor': did you mean timeout_before? known effects are",
            str(raised.exception),
        )
        with self.assertRaises(ValueError) as raised:
            self.faults.add(where="compute", path="/servers(")
        self.assertIn("path='/servers(': it is no regular expression", str(raised.exception))

    def test_a_listener_hears_every_call_and_may_answer(self) -> None:
        """Before the rules, which do not count what it took."""
        heard: list[str] = []

        def listener(where: str, method: str, path: str) -> FaultRule | None:
            heard.append(f"{where} {method} {path}")
            taken = len(heard) == 2
            return FaultRule(where=where, effect="refused") if taken else None

        rule = self.faults.add(FaultRule(where="compute", effect="garbage"))
        self.faults.listen(listener)
        self.assertEqual([self.hit() for _ in range(3)], ["garbage", "refused", "garbage"])
        self.assertEqual((rule.hits(), len(heard)), (2, 3))
