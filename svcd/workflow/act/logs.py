"""Builds a job's log as one text: the output of its programs, then the engine's own log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import evolve

from svcd.model.execution_log import FileEnds, ReadFile
from svcd.model.job import Execution
from svcd.model.log_title import ENGINE, PROGRAMS, without_titles
from svcd.model.redaction import last_lines
from svcd.model.secret import Secret
from svcd.ports.engine import Engine, EngineError
from svcd.workflow.act.containers import Containers, Output
from svcd.workflow.act.rows import Place
from svcd.workflow.decide.container_page import own_words
from svcd.workflow.decide.masking import masked_end, masked_text

_LEFT_OUT: Final = "[svcd: the beginning of this file is left out here: ?offset=0 answers it]\n"
_MOST_ID: Final = 200
"""Characters of the engine's first line, by which svcd knows its log again."""
_CONTAINERS_S: Final = 10.0
"""Time for reading the output of all programs."""


class Logs:
    """Builds logs. most_bytes: the largest answer."""

    def __init__(self, engine: Engine, containers: Containers, most_bytes: int) -> None:
        self._engine = engine
        self._containers = containers
        self._most_bytes = most_bytes

    async def of(self, row: Execution, place: Place, secrets: Sequence[Secret]) -> bytes:
        """The log of an execution whose cluster exists. The text names the faults.

        The text has only what programs wrote: each file gets the same share of the answer.
        """
        if row.workflow_job_id is None:
            return self.without_cluster(row)
        room = self._most_bytes
        output, engine, fault = await self._read(row, place)
        parts = [(file.title, file.ends) for file in output.files]
        if output.missed:
            parts.append((PROGRAMS, _said(f"not available: {output.missed}")))
        parts.append((ENGINE, _said(f"not available: {fault}") if fault else engine))
        lines = len(_head(row)) + sum(len(title) + len(_LEFT_OUT) + 16 for title, _ in parts)
        share = max(1024, (room - lines) // len(parts))
        texts = ((title, _newest(ends, share, secrets)) for title, ends in parts)
        text = "".join(
            f"==> {title} <==\n{without_titles(text).rstrip()}\n\n" for title, text in texts
        )
        return (_head(row) + masked_text(text, secrets)).encode()[-room:]

    async def files(self, row: Execution, place: Place, secrets: Sequence[Secret]) -> Output:
        """The output of an execution whose cluster exists, and the engine's log, as they are.

        Only `missed` is masked. secrets: see Output.
        """
        if row.workflow_job_id is None:
            return Output()
        output, engine, fault = await self._read(row, place)
        files = list(output.files)
        if not fault:
            files.append(ReadFile(title=ENGINE, id=_first_line(engine, secrets), ends=engine))
        missed = "; ".join(filter(None, (output.missed, fault)))
        hidden = masked_text(missed, secrets)
        return evolve(output, files=files, missed=hidden, secrets=secrets)

    async def _read(self, row: Execution, place: Place) -> tuple[Output, FileEnds, str]:
        """The programs' output; the engine's log, or why it is missing."""
        assert row.workflow_job_id is not None
        most = self._most_bytes
        output = await self._containers.logs(place, row.engine_record, most, _CONTAINERS_S)
        try:
            return output, await self._engine.log(place.engine, row.workflow_job_id), ""
        except EngineError as error:
            return output, _said(""), error.text

    def without_cluster(self, row: Execution) -> bytes:
        """The text for an execution without an engine: its status and its failure."""
        return _head(row).encode()


def _said(text: str) -> FileEnds:
    content = text.encode("utf-8", "replace")
    return FileEnds(tail=content, size=len(content))


def _newest(ends: FileEnds, share: int, secrets: Sequence[Secret]) -> str:
    """The last lines of a file, of which `share` bytes are wanted, and a line if it has more."""
    is_all = len(ends.tail) == ends.size
    content = own_words(ends.tail if is_all else last_lines(ends.tail, len(ends.tail)))
    text = masked_end(last_lines(content, share).decode("utf-8", "replace"), secrets)
    return text if is_all and len(content) < share else _LEFT_OUT + text


def _first_line(ends: FileEnds, secrets: Sequence[Secret]) -> str:
    line = ends.pieces[0][1].partition(b"\n")[0]
    return masked_text(line.decode("utf-8", "replace"), secrets)[:_MOST_ID]


def _head(row: Execution) -> str:
    text = f"==> job execution {row.id}: {row.status.value} <==\n"
    if row.failure is not None:
        text += f"{row.failure.code} in {row.failure.step}: {row.failure.text}\n"
    return text + "\n"
