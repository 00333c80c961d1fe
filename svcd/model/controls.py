"""Shows control characters and characters that change the direction of foreign texts. Pure.

A machine or a service may send escape sequences, which would change the terminal of the person who
reads a log or the output of a command: move its cursor, hide lines, set its title. A character that
changes the direction of the text lets a name or a URL look like another one.
"""

from __future__ import annotations

import re
from typing import Final

_CONTROLS: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]"
)
_IN_NAME: Final = re.compile(r"[\x00-\x1f\x7f-\x9f]")


def name_fault(name: str) -> str:
    """The reason why the API takes no such name of a value; "" when it does."""
    character = _IN_NAME.search(name)
    if character is None:
        return ""
    return f"control character U+{ord(character[0]):04X} in the name is not allowed; remove it"


def visible(text: str) -> str:
    r"""`text` with such characters written as \x1b or ⟨U+202E⟩; tabs and newlines stay."""
    return _CONTROLS.sub(lambda found: _shown(ord(found[0])), text)


def _shown(code: int) -> str:
    return f"\\x{code:02x}" if code < 0x100 else f"⟨U+{code:04X}⟩"
