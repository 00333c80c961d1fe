"""The kept logs of job executions: a state for each, and its text in compressed pieces.

A piece has at most 64 KiB of text, and whole lines unless a line is longer. An append fills the
last piece first, so it compresses little. Of a long text the first and the last pieces are kept.
A tenant's oldest texts give way to new ones; their states stay, with nothing kept.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator, Sequence
from typing import Any, Final

import msgspec
from attrs import evolve

from svcd.model.execution_log import HEAD_BYTES, TAIL_BYTES, ExecutionLog, LogPart, missing
from svcd.model.ids import ExecutionId, Timestamp
from svcd.model.log_title import last_title
from svcd.store.family import Scope

_PIECE_BYTES: Final = 65_536
_GONE: Final = "svcd no longer keeps them"
_MIDDLE_GONE: Final = "svcd keeps the beginning and the end of a long log"
_ALL: Final = 2**62
"""An offset behind every text."""

_FIND: Final = """
select version, start_offset, end_offset, complete, state from execution_logs
 where execution_id = :id
"""
_ADD: Final = """
insert into execution_logs (execution_id, tenant_id, version, start_offset, end_offset, complete,
                            size, saved_at, state)
select id, tenant_id, 1, 0, 0, 0, 0, '', '' from executions where id = :id
on conflict (execution_id) do nothing
"""
_SET: Final = """
update execution_logs
   set version = version + 1, start_offset = :start, end_offset = :end, complete = :complete,
       size = :size, saved_at = :saved_at, state = :state
 where execution_id = :id and version = :version
"""
_TENANT: Final = "select tenant_id from execution_logs where execution_id = :id"
_PIECES: Final = """
select start_offset, content from execution_log_pieces
 where execution_id = :id and end_offset > :offset order by start_offset
"""
_LAST: Final = """
select start_offset, end_offset, content from execution_log_pieces
 where execution_id = :id order by start_offset desc limit 1
"""
_PUT: Final = """
insert into execution_log_pieces (execution_id, start_offset, end_offset, size, content)
values (:id, :start, :end, :size, :content)
on conflict (execution_id, start_offset) do update
   set end_offset = excluded.end_offset, size = excluded.size, content = excluded.content
"""
_MIDDLE: Final = """
select content from execution_log_pieces
 where execution_id = :id and start_offset >= :head and end_offset <= :offset order by start_offset
"""
_TRIM: Final = """
delete from execution_log_pieces
 where execution_id = :id and start_offset >= :head and end_offset <= :offset
"""
_KEPT: Final = """
select min(start_offset), coalesce(sum(size), 0) from execution_log_pieces
 where execution_id = :id
"""
_USED: Final = """
select coalesce(sum(size), 0) from execution_logs where tenant_id = :tenant_id and size > 0
"""
_OLDEST: Final = """
select execution_id, size from execution_logs where tenant_id = :tenant_id and size > 0
 order by saved_at, execution_id limit 20
"""
_EMPTY: Final = """
update execution_logs set version = version + 1, start_offset = end_offset, size = 0
 where execution_id = :id
"""
_state_encoder = msgspec.json.Encoder()
_state_decoder = msgspec.json.Decoder(ExecutionLog)


class ExecutionLogs:
    """Implements ports.ExecutionLogRows within one transaction."""

    def __init__(self, scope: Scope) -> None:
        self._sql = scope.sql
        self._most_bytes = scope.limits.log_bytes

    async def find(self, id_: ExecutionId) -> ExecutionLog | None:
        row = await self._sql.one(_FIND, {"id": id_})
        if row is None:
            return None
        return evolve(
            _state_decoder.decode(row[4]),
            execution_id=id_,
            version=row[0],
            start=row[1],
            end=row[2],
            complete=bool(row[3]),
        )

    async def read(self, id_: ExecutionId, offset: int) -> LogPart | None:
        log = await self.find(id_)
        if log is None:
            return None
        text, at = b"", offset
        for begin, content in await self._sql.all(_PIECES, {"id": id_, "offset": offset}):
            piece = zlib.decompress(bytes(content))
            if begin > at:
                text += _gap(log, at, begin, text)
                at = begin
            text += piece[at - begin :]
            at = begin + len(piece)
        if at < log.end:
            text += _gap(log, at, log.end, text)
        gap = log.gap or log.start > 0
        return LogPart(start=log.start, end=log.end, complete=log.complete, text=text, gap=gap)

    async def append(self, log: ExecutionLog, text: bytes, at: Timestamp) -> bool:
        id_ = log.execution_id
        version = log.version
        if not version:
            if not await self._sql.run(_ADD, {"id": id_}):
                return False
            version = 1
        values = {"id": id_, "version": version, "complete": int(log.complete), "saved_at": at}
        end = log.end + len(text)
        state = _state_encoder.encode(log).decode()
        now = {**values, "start": log.start, "end": end, "size": 0, "state": state}
        # the statement locks the row, so it comes before the pieces
        if not await self._sql.run(_SET, now):
            return False
        await self._add(id_, log.end, text)
        log = await self._trimmed(log, end - TAIL_BYTES)
        now["state"] = _state_encoder.encode(log).decode()
        kept = await self._sql.one(_KEPT, {"id": id_})
        start, size = (None, 0) if kept is None else kept
        now = {**now, "version": version + 1, "start": end if start is None else start}
        await self._sql.run(_SET, {**now, "size": size})
        if text:
            await self._make_room(id_)
        return True

    async def _trimmed(self, log: ExecutionLog, offset: int) -> ExecutionLog:
        """The state after the removal of the pieces between the beginning and `offset`."""
        middle = {"id": log.execution_id, "head": HEAD_BYTES, "offset": offset}
        pieces = await self._sql.all(_MIDDLE, middle) if offset > HEAD_BYTES else []
        if not pieces:
            return log
        title = last_title(_text(pieces)) or log.resumed
        if not title:
            head = {"id": log.execution_id, "head": 0, "offset": HEAD_BYTES + _PIECE_BYTES}
            title = last_title(_text(await self._sql.all(_MIDDLE, head)))
        await self._sql.run(_TRIM, middle)
        return evolve(log, gap=True, resumed=title)

    async def _add(self, id_: ExecutionId, at: int, text: bytes) -> None:
        last = await self._sql.one(_LAST, {"id": id_}) if text else None
        if last is not None and last[1] - last[0] < _PIECE_BYTES:
            at, text = last[0], zlib.decompress(bytes(last[2])) + text
        for piece in _pieces(text):
            content = zlib.compress(piece)
            await self._sql.run(
                _PUT,
                {
                    "id": id_,
                    "start": at,
                    "end": at + len(piece),
                    "size": len(content),
                    "content": content,
                },
            )
            at += len(piece)

    async def _make_room(self, id_: ExecutionId) -> None:
        """Empty the tenant's oldest texts until the rest is within the limit."""
        row = await self._sql.one(_TENANT, {"id": id_})
        if not self._most_bytes or row is None:
            return
        tenant = {"tenant_id": row[0]}
        used = await self._sql.one(_USED, tenant)
        over = (0 if used is None else int(used[0])) - self._most_bytes
        while over > 0 and (found := await self._sql.all(_OLDEST, tenant)):
            for oldest, size in found:
                await self._sql.run(_EMPTY, {"id": oldest})
                await self._sql.run(_TRIM, {"id": oldest, "head": 0, "offset": _ALL})
                over -= size
                if over <= 0:
                    break


def _gap(log: ExecutionLog, begin: int, end: int, before: bytes) -> bytes:
    """The line in place of bytes that svcd does not keep, and the title of the text behind it."""
    line = missing(end - begin, begin, "log", _GONE if log.start else _MIDDLE_GONE)
    title = f"==> {log.resumed} <==\n" if log.resumed and not log.start else ""
    return (("\n" if before and not before.endswith(b"\n") else "") + line + title).encode()


def _text(pieces: Sequence[Sequence[Any]]) -> str:
    return b"".join(zlib.decompress(bytes(piece[0])) for piece in pieces).decode("utf-8", "replace")


def _pieces(text: bytes) -> Iterator[bytes]:
    """Parts of at most `_PIECE_BYTES`, which end with a line, or at least with a character."""
    at = 0
    while at < len(text):
        end = at + _PIECE_BYTES
        if end < len(text):
            while text[end] & 0xC0 == 0x80:
                end -= 1
            end = text.rfind(b"\n", at, end) + 1 or end
        yield text[at:end]
        at = end
