"""The closed list of failures as a page: `python -m svcd.cli.failures > docs/failures.md`.

Made of `svcd.model.failures` and of nothing else; a test compares the page with the file.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator

from svcd.model.failures import KNOWN, Code, Of

_HEAD = """# Failures

Whatever does not succeed says so with a code of this closed list, with what has happened, on which
machine and in which step, and with what to do. This page is made of that list
(`python -m svcd.cli.failures > docs/failures.md`).

- Of a cluster: in `status_description`, as `CODE: what happened (what to do)`, and in the story
  below, `GET …/clusters/ID/events`.
- Of a job execution: in `info.failure` (`code`, `step`, `text`). While something that it needs is
  missing, `info.waiting` says which, `since` when, and `until` when it is given up.
- An Active cluster is looked at every few minutes: what has died since says so in its
  `status_description` until it is well again ([operating.md](operating.md#active-clusters)).
- On the command line: `svcd why ID` tells the whole story, `svcd why CODE` explains a code.

A cluster that could not be made goes to `Error`; when it failed before `Configuring`, what was made
of it is removed again (`provisioning.on_failure`). One that could not be resized goes back to
`Active` with what it had. In both cases an empty resize (`PUT …/clusters/ID` with `{}`) tries
again, and `DELETE` removes it.

## The story of a cluster

`GET …/clusters/ID/events` lists what has happened, oldest first; the newest 2,000 lines are kept.

| Field | |
|---|---|
| `at` | when |
| `generation` | which accepted request it belongs to: 1 is the creation |
| `step` | `request`, a status (`Spawning`, …), or a step such as `create server` |
| `machine` | the instance it is about, or `""` |
| `outcome` | `accepted`, `started`, `waiting`, `retry`, `done`, `failed` |
| `code`, `text` | of a `retry`, `waiting` or `failed`: a code of this page, and what happened |
| `attempt` | how often the step has not succeeded, 0 where nothing is counted |
| `until` | when the step is given up at the latest, or null |
"""


def page() -> str:
    """The page as Markdown."""
    return "".join(_lines())


def explained(code: Code) -> str:
    """A few lines about one code."""
    known = KNOWN[code]
    of = " or ".join(f"a {each}" for each in known.of)
    return f"{code}: of {of}\n  {known.meaning}\n  What to do: {known.advice}.\n"


def _lines() -> Iterator[str]:
    yield _HEAD
    for title, of in (("Clusters", Of.CLUSTER), ("Job executions", Of.EXECUTION)):
        yield f"\n## {title}\n\n| Code | What has happened | What to do |\n|---|---|---|\n"
        for code, known in KNOWN.items():
            if of in known.of:
                advice = known.advice[0].upper() + known.advice[1:]
                yield f"| `{code}` | {known.meaning} | {advice}. |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
