"""Texts in a form from which the engine, or Hadoop behind it, reads the same text. Pure.

Note: white space. Oozie trims the values of an action's configuration, and drops an empty value: a
separator that is a tab would be lost. Hadoop 3 replaces a variable that is not set in the
environment by the default beside its name. White space in this default is not at an end.

Source: Oozie 5.2.1; Hadoop 3.5.0 `Configuration`.
"""

from __future__ import annotations

import re
from typing import Final

_UNSET: Final = "env.SVCD_UNSET"
_BACKSLASH: Final = "${'\\\\'}"
"""A backslash in the engine's expression language."""


def untrimmed(text: str) -> str:
    """`text`; a value of only tabs and line feeds in a form that the engine does not trim."""
    return quoted(f"${{{_UNSET}:-{text}}}") if text and not text.strip("\t\n") else text


def quoted(text: str) -> str:
    """`text`, quoted for the engine's expression language.

    A backslash before `${` would make it plain text, and stay out of the value itself.
    """
    return re.sub(r"(\\*)\$\{", lambda found: _BACKSLASH * len(found[1]) + "${'$'}{", text)
