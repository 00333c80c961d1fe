"""Finds secrets in texts: whole or in pieces, plain or in URL, JSON, XML or base64.

Canaries carry sixteen hexadecimal digits, which no coding but base64 changes; ten of them in a row
are enough to be found, and base64 is decoded. Other secrets (tokens, keys) are found by any 24
characters of them. So a million lines take seconds.
"""

from __future__ import annotations

import base64
import random
import re
from collections.abc import Iterator

DIGITS = 16
_RUN = 10
_PIECE = 24
_HEX = re.compile(rf"[0-9a-f]{{{_RUN},}}")
_BASE64 = re.compile(rf"[A-Za-z0-9+/_-]{{{_RUN + 4},}}")
_LONG = re.compile(rf"[A-Za-z0-9+/_=-]{{{_PIECE},}}")
_TO_PLAIN = str.maketrans("-_", "+/")


class Canaries:
    """Makes secrets and knows them again. names: what they are for."""

    def __init__(self, seed: object) -> None:
        self._rng = random.Random(f"canaries {seed}")
        self._digits: dict[str, str] = {}
        self._pieces: dict[str, str] = {}
        self.count = 0
        self.names: set[str] = set()

    def make(self, what: str, around: str = "<&/é") -> str:
        """A secret that is nowhere else; some of its characters look different when encoded."""
        digits = f"{self._rng.getrandbits(4 * DIGITS):0{DIGITS}x}"
        for start in range(DIGITS - _RUN + 1):
            self._digits[digits[start : start + _RUN]] = what
        self.count += 1
        self.names.add(what)
        return f"{what}+{digits}{around}"

    def add(self, what: str, secret: str, public: str = "") -> None:
        """One that was made by somebody else; of a key the lines of its body.

        public: what of it is no secret.
        """
        for run in _LONG.findall(secret):
            for start in range(len(run) - _PIECE + 1):
                piece = run[start : start + _PIECE]
                if piece not in public:
                    self._pieces[piece] = what
        self.count += 1
        self.names.add(what)

    def found(self, text: str) -> Iterator[str]:
        """What of them is in `text`, and what stands before it."""
        for run in _HEX.finditer(text):
            name = self._by_digits(run.group())
            if name:
                yield f"{name}: {_around(text, run)}"
        for run in _LONG.finditer(text):
            letters = run.group()
            for start in range(len(letters) - _PIECE + 1):
                name = self._pieces.get(letters[start : start + _PIECE], "")
                if name:
                    yield f"{name}: {_around(text, run)}"
                    break
        for run in _BASE64.finditer(text):
            name = self._coded(run.group())
            if name:
                yield f"{name} in base64: {_around(text, run)}"

    def _by_digits(self, run: str) -> str:
        for start in range(len(run) - _RUN + 1):
            name = self._digits.get(run[start : start + _RUN])
            if name is not None:
                return name
        return ""

    def _coded(self, run: str) -> str:
        letters = run.translate(_TO_PLAIN)
        for start in range(4):
            part = letters[start:]
            raw = base64.b64decode(part[: len(part) // 4 * 4]).decode("latin-1")
            for digits in _HEX.finditer(raw):
                name = self._by_digits(digits.group())
                if name:
                    return name
        return ""


def _around(text: str, found: re.Match[str]) -> str:
    return f"…{text[max(0, found.start() - 200) : found.end() + 40]}"
