"""Draws the tables of states as docs/states.md: `python -m tests.support.states >
docs/states.md`.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from svcd.workflow.decide.lifecycle import MOVES, SUBMITS

_HEAD = """\
# States of a job execution

These drawings are made from the tables in `svcd/workflow/decide/lifecycle.py`
(`python -m tests.support.states > docs/states.md`). A move that is not drawn is ignored.

## `info.status`

`Pending` is svcd's word; the others are words of the workflow engine.
"""

_SUBMIT = """\
## The submit of a `Pending` execution

svcd writes `sent` to the row before it calls the engine. From then on the engine may have a job
that svcd does not know. Only a refusal (`turn away`) or the whole way by `denied` and `fenced`
leads back to `idle`, from where svcd submits again. So no job runs twice. The notes in
`svcd/workflow/decide/submission.py` say how long each state lasts and why.
"""


def drawn() -> str:
    """The page."""
    executions = {before: dict.fromkeys(afters, "") for before, afters in MOVES.items()}
    submits: dict[str, dict[str, str]] = {}
    for before, moves in SUBMITS.items():
        ways = submits.setdefault(before, {})
        for move, after in moves.items():
            ways[after] = ", ".join(filter(None, (ways.get(after, ""), move.value)))
    return "\n".join([_HEAD, *_diagram(executions), "", _SUBMIT, *_diagram(submits), ""])


def _diagram(table: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """table: state -> next state -> moves."""
    yield "```mermaid"
    yield "stateDiagram-v2"
    yield f"    [*] --> {next(iter(table))}"
    for before, ways in table.items():
        for after in sorted(ways, key=list(table).index):
            yield f"    {before} --> {after}{': ' if ways[after] else ''}{ways[after]}"
        if not ways:
            yield f"    {before} --> [*]"
    yield "```"


if __name__ == "__main__":
    sys.stdout.write(drawn())
