"""Runs the commands of pages as a reader does: block after block, in one shell.

A block of `sh` runs; a block of another language whose title names a file is saved under that name;
a block of `text` after it has lines of the output (in this order, with others between them). Marks
in comments before a block: `real Hadoop` (skipped without), `exit code N`. A block with the title
`at the end` runs after all others. Any other block is not run.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import frozen

_BLOCK: Final = re.compile(
    r"((?:^<!-- [^\n]* -->\n)*)^```(\w*) ?([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL
)
_STEP: Final = "@@@ step "
AT_THE_END: Final = "at the end"


@frozen(kw_only=True)
class Block:
    """One block. title: the words after the language; expected: lines of its output."""

    page: str
    language: str
    title: str
    text: str
    real: bool = False
    code: int = 0
    expected: tuple[str, ...] = ()

    @property
    def runs(self) -> bool:
        """Whether a shell runs it, or it is saved as a file for another block."""
        return self.language == "sh" or bool(self.title)


def blocks(page: str, text: str) -> Sequence[Block]:
    """The blocks of a page, those of `text` with the block before them."""
    found: list[Block] = []
    for marks, language, title, content in _BLOCK.findall(text):
        if language == "text" and found:
            last = found.pop()
            found.append(
                Block(
                    page=last.page, language=last.language, title=last.title, text=last.text,
                    real=last.real, code=last.code, expected=tuple(content.splitlines()),
                )
            )  # fmt: skip
            continue
        code = re.search(r"exit code (\d+)", marks)
        found.append(
            Block(
                page=page, language=language, title=title, text=content,
                real="real Hadoop" in marks, code=int(code[1]) if code else 0,
            )
        )  # fmt: skip
    return found


def ordered(found: Sequence[Block], real: bool) -> Sequence[Block]:
    """The blocks that run, in their order."""
    here = [block for block in found if block.runs and (real or not block.real)]
    late = [block for block in here if block.title == AT_THE_END]
    return [*(block for block in here if block not in late), *late]


def script(steps: Sequence[Block], replaced: Mapping[str, str]) -> str:
    """The program for bash. replaced: texts of the pages and what stands for them here."""
    lines = ["set -euo pipefail"]
    for number, step in enumerate(steps):
        text = step.text
        for old, new in replaced.items():
            text = text.replace(old, new)
        lines.append(f"echo; echo '{_STEP}{number}'")
        if step.language != "sh":
            lines.append(f"cat > {step.title} <<'END OF FILE'\n{text}END OF FILE")
        elif step.code:
            lines.append(f"code=0; (\n{text}) || code=$?; [ $code = {step.code} ]")
        else:
            lines.append(text)
    lines.append(f"echo; echo '{_STEP}{len(steps)}'")
    return "\n".join([*lines, ""])


def faults(steps: Sequence[Block], output: str, replaced: Mapping[str, str]) -> Iterator[str]:
    """A text for the block that failed, and for each one that lacks an expected line."""
    parts = re.split(rf"^{_STEP}\d+$\n?", output, flags=re.MULTILINE)[1:]
    for step, said in zip(steps, parts, strict=False):
        lines = iter(_plain(line) for line in said.splitlines())
        for line in step.expected:
            wanted = line
            for old, new in replaced.items():
                wanted = wanted.replace(old, new)
            if not any(_plain(wanted) in each for each in lines):
                yield f"{step.page}: no line {wanted!r} after\n{step.text}but\n{said[-2000:]}"
                break
    if len(parts) <= len(steps):
        step = steps[max(len(parts) - 1, 0)]
        yield f"{step.page}: this block failed\n{step.text}{(parts or [output])[-1][-2000:]}"


def _plain(line: str) -> str:
    return " ".join(line.split())
