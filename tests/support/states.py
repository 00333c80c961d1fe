"""`python -m tests.support.states > docs/states.md`: draw the tables of states as a page."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping

from svcd.workflow.decide.lifecycle import MOVES, SUBMITS

_HEAD = """\
# States of a job execution

`python -m tests.support.states > docs/states.md` draws this page from the tables in
`svcd/workflow/decide/lifecycle.py`. svcd ignores a move that the drawings do not show.

## `info.status`

`Pending` is a status of svcd. All other statuses are those of the workflow engine.
"""

_SUBMIT = """\
## The submit of a `Pending` execution

svcd writes `sent` to the row before it calls the engine. From then on the engine may have a job
that svcd does not know. svcd submits again only from `idle`, and two ways lead back there:

- `turn away`: the call did not leave svcd, or the engine was too busy to process it.
- `deny`, `fence`, `clear`: the engine denies the job, svcd removes the definition, and the engine
  still denies the job. From then on the submit cannot start a job.

So no job runs twice. `silence` means that the engine does not answer, `take` that it has the job,
and `end` that the execution has ended. The notes in `svcd/workflow/decide/submission.py` say how
long each state lasts and why.
"""


def drawn() -> str:
    """Return the text of the page."""
    executions = {before: dict.fromkeys(afters, "") for before, afters in MOVES.items()}
    submits: dict[str, dict[str, str]] = {}
    for before, moves in SUBMITS.items():
        ways = submits.setdefault(before, {})
        for move, after in moves.items():
            ways[after] = ", ".join(filter(None, (ways.get(after, ""), move.value)))
    return "\n".join([_HEAD, *_diagram(executions), "", _SUBMIT, *_diagram(submits), ""])


def _diagram(table: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
    """Yield the lines of one drawing. table: state -> next state -> moves."""
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
