"""Ownership tags are recognised, and no other text is taken for one."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from svcd.model import ownership_tags
from svcd.model.ownership_tags import Tag

C = "00000008-23a7-411a-8133-287637ebdcd9"
I = "0000000a-1b2c-4d3e-8f90-a1b2c3d4e5f6"  # noqa: E741
S = "0123456789abcdef"


class TagTests(SynchronousTestCase):
    def test_tags_are_recognised(self) -> None:
        """With an installation and without one."""
        for installation in (S, ""):
            tag = Tag(C, installation)
            found = [
                ownership_tags.of_metadata(ownership_tags.metadata(C, I, installation)),
                ownership_tags.of_address(ownership_tags.address_text(C, I, installation)),
                ownership_tags.of_security_group(
                    ownership_tags.group_name(C), ownership_tags.group_text("a-1", installation)
                ),
            ]
            self.assertEqual(found, [tag, tag, tag])
        self.assertEqual(ownership_tags.of_server_group(ownership_tags.group_name(C)), Tag(C))

    def test_texts(self) -> None:
        """They are kept in clouds: not to be changed."""
        self.assertEqual(
            ownership_tags.metadata(C, I, S),
            {"svcd_cluster_id": C, "svcd_instance_id": I, "svcd_installation": S},
        )
        self.assertEqual(ownership_tags.address_text(C, I, S), f"svcd:{C}:{S}:{I}")
        self.assertEqual(ownership_tags.address_text(C, I, ""), f"svcd:{C}:{I}")
        self.assertEqual(ownership_tags.group_name(C), f"svcd-{C}")
        self.assertEqual(ownership_tags.group_text("mine", S), f"cluster mine of svcd {S}")
        self.assertEqual(ownership_tags.group_text("mine", ""), "cluster mine of svcd")

    def test_what_others_wrote_is_no_tag(self) -> None:
        """However near it comes."""
        for metadata in (
            {},
            {"svcd_cluster_id": C},
            {"svcd_instance_id": I},
            {"svcd_cluster_id": "mine", "svcd_instance_id": I},
            {"svcd_cluster_id": C + "x", "svcd_instance_id": I},
        ):
            self.assertIsNone(ownership_tags.of_metadata(metadata))
        for text in (
            "",
            "svcd",
            f"svcd:{C}",
            f"svcd:{C}:mine",
            f" svcd:{C}:{I}",
            f"svcd:{C}:{I}\n",
        ):
            self.assertIsNone(ownership_tags.of_address(text), text)
        for name, text in (
            (f"svcd-{C}", "my own group"),
            (f"svcd-{C}", ""),
            ("svcd-mine", "cluster mine of svcd"),
            (f"my-svcd-{C}", "cluster mine of svcd"),
        ):
            self.assertIsNone(ownership_tags.of_security_group(name, text), (name, text))
        self.assertIsNone(ownership_tags.of_server_group("svcd-"))

    def test_ends_of_trusts(self) -> None:
        """Only ours last so long, to the second."""
        self.assertTrue(ownership_tags.is_trust_end("2134-05-06T07:08:09.000000Z"))
        for text in ("", "2027-05-06T07:08:09.000000Z", "2134-05-06T07:08:09.123456Z"):
            self.assertFalse(ownership_tags.is_trust_end(text), text)
