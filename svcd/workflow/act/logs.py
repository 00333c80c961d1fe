"""Builds a job's log as one text: the output of its programs, then the engine's own log."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from svcd.model.job import Execution
from svcd.model.redaction import last_lines
from svcd.model.secret import Secret
from svcd.ports.engine import Engine, EngineError
from svcd.workflow.act.containers import Containers
from svcd.workflow.act.rows import Place
from svcd.workflow.decide.causes import own_words
from svcd.workflow.decide.masking import masked_end, masked_text

_ENGINE: Final = "engine"
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

        It has the programs' own words only: each file gets the same share of the answer.
        """
        if row.workflow_job_id is None:
            return self.without_cluster(row)
        room = self._most_bytes
        parts, fault = await self._read(row, place)
        if fault:
            parts.append((_ENGINE, f"not available: {fault}".encode()))
        share = max(1024, room // max(1, len(parts)))
        text = "".join(
            f"==> {title} <==\n{_text(last_lines(own_words(content), share), secrets).rstrip()}\n\n"
            for title, content in parts
        )
        return (_head(row) + masked_text(text, secrets)).encode()[-room:]

    async def parts(
        self, row: Execution, place: Place, secrets: Sequence[Secret]
    ) -> tuple[Sequence[tuple[str, str]], str]:
        """Title and masked text of each file, and why the engine's log is missing, or "".

        The text is that of the file: what was read of it once must not change when it grows.
        """
        parts, fault = await self._read(row, place)
        return [(title, _text(content, secrets)) for title, content in parts], fault

    async def _read(self, row: Execution, place: Place) -> tuple[list[tuple[str, bytes]], str]:
        if row.workflow_job_id is None:
            return [], ""
        room = self._most_bytes
        found = await self._containers.logs(place, row.engine_record, room // 2, _CONTAINERS_S)
        parts = [(part.title, part.content) for part in found]
        try:
            parts.append((_ENGINE, await self._engine.log(place.engine, row.workflow_job_id)))
        except EngineError as error:
            return parts, error.text
        return parts, ""

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
