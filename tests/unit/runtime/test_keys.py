"""SSH key pairs."""

from __future__ import annotations

from twisted.conch.ssh.keys import Key
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime.keys import new_key_pair


class NewKeyPairTest(SynchronousTestCase):
    """A fresh pair."""

    def test_halves_belong_together(self) -> None:
        """The public line is that of the private text."""
        public, private = new_key_pair("svcd c1")
        key = Key.fromString(private.reveal())
        self.assertEqual(key.type(), "Ed25519")
        self.assertEqual(key.public(), Key.fromString(public.encode()))

    def test_comment_stays_on_one_line(self) -> None:
        """The line ends in the comment, blanks squeezed."""
        public, _ = new_key_pair("svcd\ncluster  one")
        self.assertTrue(public.startswith("ssh-ed25519 AAAA"))
        self.assertTrue(public.endswith(" svcd cluster one"))

    def test_pairs_differ(self) -> None:
        """No two calls give the same key."""
        self.assertNotEqual(new_key_pair("")[0], new_key_pair("")[0])
