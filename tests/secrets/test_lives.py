"""No secret in what the service says, in lives with canaries in every credential field.

`python -m tests.secrets` does the same for a million lines.
"""

from __future__ import annotations

import base64
import json
from urllib.parse import quote
from xml.sax.saxutils import escape

from twisted.trial.unittest import SynchronousTestCase

from tests.secrets.fields import LOOSE, SECRET
from tests.secrets.life import lived
from tests.secrets.search import Canaries

SEEDS = range(1, 5)


class SearchTests(SynchronousTestCase):
    def test_it_finds_what_it_looks_for(self) -> None:
        """In each coding, whole or in pieces, wherever in a longer text it begins."""
        canaries = Canaries("itself")
        secret = canaries.make("it")
        canaries.add("key", "MIGHaXNzZWNyZXRhbmRub2JvZHlzYnVzaW5lc3M", "MIGHaXNzZWNyZXRhbmRub2Jv")
        texts = [secret, quote(secret, safe=""), json.dumps({"k": secret}), escape(secret)]
        texts += [base64.b64encode(b"y" * n + secret.encode() + b"zz").decode() for n in range(4)]
        texts += [base64.urlsafe_b64encode(b"\xff" + secret.encode()).decode(), secret[3:16]]
        texts += ["x 2NyZXRhbmRub2JvZHlzYnVzaW5l y", repr(secret), repr(secret.encode())]
        for text in texts:
            self.assertEqual(len(list(canaries.found(f"it was ({text})"))[:1]), 1, text)
        for text in (secret[:9], "MIGHaXNzZWNyZXRhbmRub2Jv", base64.b64encode(b"nothing").decode()):
            self.assertEqual(list(canaries.found(text)), [], text)


class CanaryTests(SynchronousTestCase):
    def test_no_secret_is_said(self) -> None:
        """With and without tokens, a log in either form, evil peers, faults, bugs and restarts."""
        planted: set[str] = set()
        lines = echoed = 0
        for seed in SEEDS:
            life = lived(seed)
            self.assertEqual(list(life.leaks())[:3], [], f"seed {seed}")
            planted |= life.canaries.names
            lines += life.lines
            echoed += life.evil.echoed
        self.flushLoggedErrors()
        self.assertGreater(lines, 3000)
        self.assertGreater(echoed, 50)
        wanted = {n for n in (*SECRET.values(), *LOOSE.values()) if not n.startswith("command ")}
        self.assertEqual(wanted - planted, set())
