"""Writes the list of failures as a page: `python -m svcd.cli.failures > docs/failures.md`.

`svcd.model.failures` is the only source of the page; a test compares the page with the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from svcd.cli.words import in_commands
from svcd.model.failures import Code, Of

_HEAD = """# Failures

Every failure has a code of this closed list, a text, the machine, and the step. The text quotes
the words of the service or program that failed. Advice follows where the code alone shows the
cause; else svcd gives none. The list in the code makes this page (`python -m svcd.cli.failures >
docs/failures.md`).

- Of a cluster: `status_description` has the form `CODE: text (advice)`, and the cluster's events
  have the code too.
- Of a job execution: `info.failure` has `code`, `step` and `text`. While the execution waits for
  a missing service, `info.waiting` has the code, the begin (`since`) and the deadline (`until`).
- svcd checks an Active cluster every few minutes. While a part of it is dead,
  `status_description` has the code ([operating.md](operating.md#active-clusters)).
- On the command line: `svcd why ID` shows the whole history, `svcd why CODE` explains a code.

A cluster whose creation fails goes to `Error`. When the creation fails before `Configuring`, svcd
removes the cluster's objects from the cloud (`provisioning.on_failure`). A cluster whose resize
fails goes back to `Active` with its former machines. In both cases an empty resize
(`svcd cluster retry CLUSTER`, or `PUT …/clusters/ID` with `{}`) tries again, and `DELETE` removes
the cluster.

## The events of a cluster

`GET …/clusters/ID/events` lists the events, the oldest first. svcd keeps the newest 2,000 of a
cluster. `?since=N` lists only those with a larger number; the header `X-Events-Trimmed` says how
many of them are no longer kept. With `&wait=S` (at most 60) the answer comes when there is an event
after `N`, or after S seconds without one. A stop of the daemon ends the wait early. At most 200
requests of a project wait at the same time.

| Field | Meaning |
|---|---|
| `number` | of the event within the cluster, from 1, without gaps |
| `at` | time of the event |
| `generation` | number of the accepted request that caused it; 1 is the creation |
| `step` | `request`, a status (`Spawning`, …), or a step such as `create server` |
| `kind` | `request`, `status`, `health`, `job`, `wait`, `cloud`, `machine`, `daemons`, `files` |
| `machine` | the instance, or `""` |
| `outcome` | `accepted`, `started`, `waiting`, `retry`, `done`, `failed` |
| `code`, `text` | for `retry`, `waiting` and `failed`: a code of this page, and the details |
| `attempt` | number of failed attempts of the step; 0 for a step that does not count them |
| `until` | deadline of the step, or null |
| `began`, `ended` | this attempt of the step on this machine; `ended` is null while it goes on |
| `waited_for` | the step, with its machine, whose end let this one begin; null when unknown |

A step on a machine has one event, at its end, with its begin. A stage of a distribution (`start
the daemons`) has one at its begin too. `log in` begins with its first try, `wait for server` with
the end of the create call. Requests and statuses have neither `began` nor `ended`; a status ends
with the next one. Files that svcd writes in less than a second have no event. A cluster of 200
machines of the distribution `vanilla` has some 1,600 events when it is made.
"""


def page() -> str:
    """The page as Markdown."""
    return "".join(_lines())


def explained(code: Code) -> str:
    """Lines with the kind and the meaning of one code, and its advice if it has one."""
    of = " or ".join(f"a {kind}" for kind in code.of)
    told = f"{code}: of {of}\n  {code.meaning}\n"
    return told + (f"  What to do: {in_commands(code.advice)}.\n" if code.advice else "")


def _lines() -> Iterator[str]:
    yield _HEAD
    for title, of in (("Clusters", Of.CLUSTER), ("Job executions", Of.EXECUTION)):
        yield f"\n## {title}\n\n| Code | Meaning | Advice |\n|---|---|---|\n"
        for code in Code:
            if of in code.of:
                advice = code.advice and f"{code.advice[0].upper()}{code.advice[1:]}."
                yield f"| `{code}` | {code.meaning} | {advice} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
