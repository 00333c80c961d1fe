"""What a machine says of itself at the first contact."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.cluster import MachineFacts
from svcd.provisioning.decide.shell import facts


class FactsTests(SynchronousTestCase):
    """The image of a machine is the tenant's, and may say anything."""

    def test_facts_of_a_machine(self) -> None:
        """One on a line; the folders of the software are several."""
        said = "hello\nhome=/h\nprefix=/p\nsoftware=hadoop\nsoftware=spark\ncores=4\nmemory_mib=8\n"
        self.assertEqual(
            facts(said),
            MachineFacts(
                home="/h", prefix="/p", software=("hadoop", "spark"), cores=4, memory_mib=8
            ),
        )
        self.assertIsNone(facts("hello\n"))

    def test_software_is_bounded(self) -> None:
        """The facts are a part of the row of the cluster."""
        folders = "".join(f"software={number}{'a' * 999}\n" for number in range(9999))
        found = facts(f"home=/h\n{folders}")
        assert found is not None
        self.assertEqual(len(found.software), 100)
        self.assertEqual({len(each) for each in found.software}, {100})

    def test_number_without_end_counts_as_unknown(self) -> None:
        """Python refuses to read one."""
        found = facts(f"home=/h\ncores={'9' * 9999}\nmemory_mib=0\n")
        assert found is not None
        self.assertEqual((found.cores, found.memory_mib), (1, 1024))
