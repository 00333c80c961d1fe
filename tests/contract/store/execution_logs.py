"""What rows of kept logs must do on every driver: a mixin beside families."""

from __future__ import annotations

import random
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from attrs import evolve

from svcd.model.execution_log import HEAD_BYTES, TAIL_BYTES, ExecutionLog, LogPart, LogSource
from svcd.model.ids import ExecutionId
from svcd.ports.store import Tx
from svcd.store.store import SqlStore
from tests.contract.store.rows import at, execution

T = TypeVar("T")
LOG = ExecutionId("e-1")


def noise(size: int, seed: int = 1) -> bytes:
    """Text that compresses little."""
    return random.Random(seed).randbytes(size // 2).hex().encode()


class ExecutionLogsContract:
    """The kept logs of executions."""

    store: SqlStore
    now: Callable[[Callable[[Tx], Awaitable[Any]]], Any]
    assertEqual: Callable[..., None]
    assertIsNone: Callable[..., None]
    assertFalse: Callable[..., None]
    assertTrue: Callable[..., None]
    assertLess: Callable[..., None]

    def logged(self, number: int = 1, **changes: object) -> ExecutionId:
        row = execution(number, **changes)
        self.now(lambda tx: tx.executions.add(row))
        return row.id

    def log_of(self, id_: ExecutionId) -> ExecutionLog:
        found = self.now(lambda tx: tx.execution_logs.find(id_))
        return found or ExecutionLog(execution_id=id_)

    def append_log(self, id_: ExecutionId, text: bytes, second: int = 1, **changes: object) -> bool:
        log = evolve(self.log_of(id_), **changes)
        return bool(self.now(lambda tx: tx.execution_logs.append(log, text, at(second))))

    def log_part(self, id_: ExecutionId, offset: int = 0) -> LogPart:
        found: LogPart = self.now(lambda tx: tx.execution_logs.read(id_, offset))
        return found

    def test_a_log_is_appended_to(self) -> None:
        """Offsets count its bytes."""
        id_ = self.logged()
        self.assertIsNone(self.now(lambda tx: tx.execution_logs.find(id_)))
        self.assertIsNone(self.now(lambda tx: tx.execution_logs.read(id_, 0)))
        self.assertTrue(self.append_log(id_, "one\n\u00e9\n".encode()))
        self.assertTrue(self.append_log(id_, b"two\n"))
        whole = "one\n\u00e9\ntwo\n".encode()
        self.assertEqual(self.log_part(id_), LogPart(start=0, end=11, complete=False, text=whole))
        self.assertEqual(self.log_part(id_, 7).text, b"two\n")
        self.assertEqual(self.log_part(id_, 11).text, b"")

    def test_the_state_is_kept(self) -> None:
        """What was seen of the files, and that the log is complete."""
        id_ = self.logged()
        sources = (LogSource(title="engine", file="f", seen=3, cut=True),)
        self.append_log(id_, b"abc", sources=sources, last="engine", complete=True)
        found = self.log_of(id_)
        self.assertEqual((found.sources, found.last, found.complete), (sources, "engine", True))
        self.assertTrue(self.log_part(id_).complete)

    def test_one_of_two_writers_wins(self) -> None:
        """The other one reads again."""
        id_ = self.logged()
        first = self.log_of(id_)
        self.assertTrue(self.append_log(id_, b"one"))
        self.assertFalse(self.now(lambda tx: tx.execution_logs.append(first, b"two", at(1))))
        second = self.log_of(id_)
        self.assertTrue(self.append_log(id_, b"two"))
        self.assertFalse(self.now(lambda tx: tx.execution_logs.append(second, b"three", at(1))))
        self.assertEqual(self.log_part(id_).text, b"onetwo")

    def test_the_beginning_and_the_end_are_kept(self) -> None:
        """One line, and the title of what follows, stand in place of the middle."""
        id_ = self.logged()
        lines = [b"==> engine <==\n"]
        lines += [b"%06d %b\n" % (number, noise(100, number)) for number in range(20_000)]
        lines[13_000] = b"==> node attempt_1 stdout <==\n"
        text = b"".join(lines)
        for start in range(0, len(text), 50_001):
            self.assertTrue(self.append_log(id_, text[start : start + 50_001]))
        found = self.log_part(id_)
        self.assertEqual((found.start, found.end, found.gap), (0, len(text), True))
        self.assertEqual(found.text.count(b"[svcd: "), 1)
        head, _, rest = found.text.partition(b"[svcd: ")
        line, title, tail = rest.split(b"\n", 2)
        begin, end = len(head), len(text) - len(tail)
        self.assertEqual((head, tail), (text[:begin], text[end:]))
        self.assertEqual(
            line.decode(),
            f"{end - begin} bytes are missing here, from byte {begin} of this log on:"
            " svcd keeps the beginning and the end of a long log]",
        )
        self.assertEqual(title, b"==> engine <==")
        self.assertTrue(HEAD_BYTES <= begin < HEAD_BYTES + 65_537, begin)
        self.assertTrue(TAIL_BYTES <= len(tail) < TAIL_BYTES + 65_537, len(tail))
        self.assertEqual(self.log_part(id_, len(text) - 70_000).text, text[-70_000:])

    def test_a_large_append_is_cut_between_characters(self) -> None:
        id_ = self.logged()
        text = ("\u20ac" * 100_000).encode()
        self.append_log(id_, text)
        self.assertEqual(self.log_part(id_, 3 * 65_000).text, text[3 * 65_000 :])
