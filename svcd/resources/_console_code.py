"""Modules of the console without what a browser does not need: comments, and blanks between signs.

Readable modules have a sixth of such text. A pass over the signs finds it, so that strings,
patterns and templates stay as they are. In templates, which htm reads, it joins lines: htm ignores
blanks with the end of a line beside an element or a value. Within a text they become one such end.
A tag that ends an element loses its name, which htm does not read.

The modules must end their statements with semicolons. A template that is not for htm has one line.
"""

from __future__ import annotations

import re
from typing import Final

_STOP: Final = re.compile(r"""//[^\n]*|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|[`{}/]""")
"""Where code is no plain code: a comment, a string, a template, a brace, a pattern or division."""
_PATTERN: Final = re.compile(r"/(?:[^/\\\[\n]|\\.|\[(?:[^\]\\\n]|\\.)*\])+/[a-z]*")
_BEFORE_PATTERN: Final = re.compile(r"(?:^|[(,=:\[!&|?{};>]|\breturn)$")
_BLANKS: Final = re.compile(r"(?<![\w$+\- \n])[ \n]+|[ \n]+(?![\w$+\- \n])")
"""Blanks that do not part two words. Those beside `+` and `-` stay, too: `a - -b`."""
_TEXT: Final = re.compile(r"(?:[^`$\\]|\\.|\$(?!\{))+", re.DOTALL)
_LINES: Final = re.compile(r"\s*\n\s*")
_ENDS: Final = re.compile(r"\n(?=<)|(?<=>)\n")
_CLOSING: Final = re.compile(r"</[\w/]+>")


def squeezed(text: str) -> str:
    """The same module, shorter. Raises ValueError for a template or a brace without its end."""
    made: list[str] = []
    braces: list[int] = []  # open braces within each value of a template, the innermost last
    at = 0
    while (found := _STOP.search(text, at)) is not None:
        made.append(_BLANKS.sub("", text[at : found.start()]))
        sign, at = found[0], found.end()
        if sign == "/":
            pattern = _PATTERN.match(text, found.start())
            if pattern is not None and _BEFORE_PATTERN.search("".join(made[-3:])):
                sign, at = pattern[0], pattern.end()
        if sign.startswith("//"):
            made.append("\n")
            continue
        made.append(sign)
        if sign == "{" and braces:
            braces[-1] += 1
        elif sign == "}" and braces and braces[-1]:
            braces[-1] -= 1
        elif sign == "`" or (sign == "}" and braces):
            if sign == "}":
                braces.pop()
            at, value = _template(text, at, made)
            if value:
                braces.append(0)
    if braces:
        raise ValueError("a template has no end")
    made.append(_BLANKS.sub("", text[at:]))
    return "".join(made)


def _template(text: str, at: int, made: list[str]) -> tuple[int, bool]:
    """Adds the text of a template from `at` on. Returns where it stops; whether at a value."""
    found = _TEXT.match(text, at)
    if found is not None:
        text_of = _ENDS.sub("", _LINES.sub("\n", _CLOSING.sub("</>", found[0])))
        within_tag = text_of.rfind(">") <= text_of.rfind("<")  # there a blank parts two words
        made.append(text_of if within_tag else text_of.removesuffix("\n"))
        at = found.end()
    if text.startswith("`", at):
        made.append("`")
        return at + 1, False
    if text.startswith("${", at):
        made.append("${")
        return at + 2, True
    raise ValueError("a template has no end")
