"""Shows control characters of foreign texts. Pure.

A machine or a service may send escape sequences, which would change the terminal of the person who
reads a log or the output of a command: move its cursor, hide lines, set its title.
"""

from __future__ import annotations

import re
from typing import Final

_CONTROLS: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")


def visible(text: str) -> str:
    r"""`text` with control characters written as \x1b and the like; tabs and newlines stay."""
    return _CONTROLS.sub(lambda found: f"\\x{ord(found[0]):02x}", text)
