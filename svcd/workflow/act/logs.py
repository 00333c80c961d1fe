"""Builds a job's log as one text: the output of its programs, then the engine's own log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from attrs import frozen

from svcd.model.job import Execution
from svcd.model.log_title import ENGINE, PROGRAMS, without_titles
from svcd.model.redaction import last_lines
from svcd.model.secret import Secret
from svcd.ports.engine import Engine, EngineError
from svcd.workflow.act.containers import Containers, Output
from svcd.workflow.act.rows import Place
from svcd.workflow.decide.causes import own_words
from svcd.workflow.decide.masking import masked_end, masked_text

_CONTAINERS_S: Final = 10.0
"""Time for reading the output of all programs."""


@frozen(kw_only=True)
class Files:
    """The files of an execution now. parts: their titles and masked texts.

    missed: why some text could not be read, or "". may_grow: see `containers.Output`.
    """

    parts: Sequence[tuple[str, str]] = ()
    missed: str = ""
    may_grow: bool = False


class Logs:
    """Builds logs. most_bytes: the largest answer."""

    def __init__(self, engine: Engine, containers: Containers, most_bytes: int) -> None:
        self._engine = engine
        self._containers = containers
        self._most_bytes = most_bytes

    async def of(self, row: Execution, place: Place, secrets: Sequence[Secret]) -> bytes:
        """The log of an execution whose cluster exists. The text names the faults.

        It has the programs' own words only: each file gets the same share of the answer.
        """
        if row.workflow_job_id is None:
            return self.without_cluster(row)
        room = self._most_bytes
        output, engine, fault = await self._read(row, place)
        parts = [(part.title, part.content) for part in output.parts]
        if output.missed:
            parts.append((PROGRAMS, f"not available: {output.missed}".encode()))
        parts.append((ENGINE, f"not available: {fault}".encode() if fault else engine))
        share = max(1024, room // max(1, len(parts)))
        texts = (
            (title, _text(last_lines(own_words(content), share), secrets))
            for title, content in parts
        )
        text = "".join(
            f"==> {title} <==\n{without_titles(text).rstrip()}\n\n" for title, text in texts
        )
        return (_head(row) + masked_text(text, secrets)).encode()[-room:]

    async def files(self, row: Execution, place: Place, secrets: Sequence[Secret]) -> Files:
        """The files as they are: what was read of one must not change when the file grows."""
        if row.workflow_job_id is None:
            return Files()
        output, engine, fault = await self._read(row, place)
        parts = [(part.title, _text(part.content, secrets)) for part in output.parts]
        if not fault:
            parts.append((ENGINE, _text(engine, secrets)))
        missed = "; ".join(filter(None, (output.missed, fault)))
        return Files(parts=parts, missed=masked_text(missed, secrets), may_grow=output.may_grow)

    async def _read(self, row: Execution, place: Place) -> tuple[Output, bytes, str]:
        """The programs' output; the engine's log, or why it is missing."""
        assert row.workflow_job_id is not None
        most = self._most_bytes // 2
        output = await self._containers.logs(place, row.engine_record, most, _CONTAINERS_S)
        try:
            return output, await self._engine.log(place.engine, row.workflow_job_id), ""
        except EngineError as error:
            return output, b"", error.text

    def without_cluster(self, row: Execution) -> bytes:
        """The text for an execution without an engine: its status and its failure."""
        return _head(row).encode()


def _text(content: bytes, secrets: Sequence[Secret]) -> str:
    return masked_end(content.decode("utf-8", "replace"), secrets)


def _head(row: Execution) -> str:
    text = f"==> job execution {row.id}: {row.status.value} <==\n"
    if row.failure is not None:
        text += f"{row.failure.code} in {row.failure.step}: {row.failure.text}\n"
    return text + "\n"
