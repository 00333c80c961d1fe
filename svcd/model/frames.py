"""Recognises lines of stacks, and those of Java, the frameworks and svcd's image. Pure."""

from __future__ import annotations

import re
from typing import Final

FRAMEWORK: Final = re.compile(
    r"[ \t]+(?:at (?:[\w.@-]{1,80}/)?(?:java|javax|jdk|sun|com\.sun|scala|py4j|org\.antlr\.runtime"
    r"|org\.apache\.(?:hadoop(?!\.examples\.)|oozie|pig|spark(?!\.examples\.))"
    r"|org\.svcd\.(?:hadoop|jobs|objstore|spark))\."
    r"|\.\.\. \d{1,9} (?:more|common frames omitted)\Z)",
    re.ASCII,
)
"""A line of a stack that is not of a program: a frame, or the number of repeated frames."""
FRAME: Final = re.compile(r"[ \t]+at [^\s(]{1,300}\(([\w$.-]{1,200}:\d{1,9})\)", re.ASCII)
"""A frame of Java with file and line, which the first group has."""
