"""Log lines: what they look like, what they carry, and what is left out."""

from __future__ import annotations

import io
import json
import re
from typing import Any

from constantly import NamedConstant
from twisted.logger import Logger, LogLevel, LogPublisher
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from svcd.runtime import logs


def event(level: NamedConstant, form: str, /, **fields: object) -> dict[str, Any]:
    """An event of the first second of time."""
    return {
        "log_time": 0.5,
        "log_level": level,
        "log_namespace": "svcd.x",
        "log_format": form,
        **fields,
    }


class _Narrow(io.StringIO):
    """A stream that at times takes nothing. fault: what a write raises."""

    fault: Exception | None = None

    def write(self, text: str) -> int:
        if self.fault is not None:
            raise self.fault
        return super().write(text)


class LinesTests(SynchronousTestCase):
    """One publisher with one observer of ours."""

    def said(self, form: str = "human", level: str = "info") -> tuple[io.StringIO, LogPublisher]:
        stream = io.StringIO()
        return stream, LogPublisher(logs.observer(stream, form, level))

    def test_escape_sequences_are_shown(self) -> None:
        """A machine chose them: they must not reach a terminal, in both forms and in tracebacks."""
        for form in ("human", "json"):
            stream, publisher = self.said(form)
            text = "\x1b[2J\x9b31m\x07 a\tb"
            failure = Failure(ValueError(text))
            publisher(event(LogLevel.warn, "{text}", text=text, log_failure=failure))
            self.assertEqual(re.findall("[\x00-\x08\x0b-\x1f\x7f-\x9f]", stream.getvalue()), [])
            self.assertIn("[2J", stream.getvalue())

    def test_human_line(self) -> None:
        """Time, level, logger, text and the ids of the context."""
        stream, publisher = self.said()
        with logs.about(tenant="demo", cluster="c-1"):
            publisher(event(LogLevel.warn, "{what} failed", what="It"))
        self.assertEqual(
            stream.getvalue(),
            "1970-01-01T00:00:00.500Z warn     svcd.x: It failed tenant=demo cluster=c-1\n",
        )

    def test_json_line(self) -> None:
        """One object a line, whatever the text holds."""
        stream, publisher = self.said("json")
        with logs.about(request="req-1"):
            publisher(event(LogLevel.info, "{text}", text='a\n"b" é'))
        (line,) = stream.getvalue().splitlines()
        self.assertEqual(
            json.loads(line),
            {
                "time": "1970-01-01T00:00:00.500Z",
                "level": "info",
                "logger": "svcd.x",
                "message": 'a\\n"b" é',
                "request": "req-1",
            },
        )

    def test_fields_are_fields_of_the_json_line(self) -> None:
        """The other fields of an event are not. A text stays in its line."""
        stream, publisher = self.said("json")
        publisher(event(LogLevel.info, "x", secret="s", fields=lambda: {"a": 1, "b": "c\nd"}))
        line = json.loads(stream.getvalue())
        self.assertEqual({name: line.get(name) for name in ("a", "b")}, {"a": 1, "b": "c\\nd"})
        self.assertNotIn("secret", line)

    def test_ids_cannot_forge_a_line(self) -> None:
        """A tenant with line ends in its name stays in its line."""
        stream, publisher = self.said()
        with logs.about(tenant="a\r\nb"):
            publisher(event(LogLevel.info, "text"))
        self.assertEqual(stream.getvalue().count("\n"), 1)
        self.assertIn("tenant=a\\r\\nb", stream.getvalue())

    def test_context_ends_with_the_block(self) -> None:
        """Also an inner one: the outer value is back."""
        stream, publisher = self.said()
        log = Logger("svcd.x", observer=publisher)
        with logs.about(tenant="outer"):
            with logs.about(tenant="inner"):
                log.info("one")
            log.info("two")
        log.info("three")
        ends = [line.partition("svcd.x: ")[2] for line in stream.getvalue().splitlines()]
        self.assertEqual(ends, ["one tenant=inner", "two tenant=outer", "three"])

    def test_failure_comes_with_its_traceback(self) -> None:
        """Indented for people, in a field for machines."""
        for form in ("human", "json"):
            stream, publisher = self.said(form)
            log = Logger("svcd.x", observer=publisher)
            try:
                raise ValueError("no such thing")
            except ValueError:
                log.failure("It broke")
            lines = stream.getvalue().splitlines()
            if form == "human":
                self.assertIn("critical svcd.x: It broke", lines[0])
                self.assertEqual([row for row in lines[1:] if not row.startswith("    ")], [])
                self.assertIn("no such thing", lines[-1])
            else:
                (record,) = [json.loads(line) for line in lines]
                self.assertIn("no such thing", record["traceback"])

    def test_lines_that_could_not_be_written_are_counted(self) -> None:
        """A full disk or a closed pipe harms nobody; when there is room again the log says so."""
        for form in ("human", "json"):
            stream = _Narrow()
            publisher = LogPublisher(logs.observer(stream, form, "info"))
            publisher(event(LogLevel.info, "first"))
            for fault in (OSError(28, "No space left on device"), ValueError("closed file")):
                stream.fault = fault
                publisher(event(LogLevel.error, "unsaid", log_failure=Failure(KeyError("k"))))
            stream.fault = None
            publisher(event(LogLevel.info, "second"))
            publisher(event(LogLevel.info, "third"))
            rows = [row for row in stream.getvalue().splitlines() if row]
            self.assertEqual(len(rows), 4, rows)
            if form == "human":
                self.assertEqual(
                    rows[1:],
                    [
                        "1970-01-01T00:00:00.500Z warn     svcd.runtime.logs:"
                        " 2 log lines could not be written",
                        "1970-01-01T00:00:00.500Z info     svcd.x: second",
                        "1970-01-01T00:00:00.500Z info     svcd.x: third",
                    ],
                )
            else:
                messages = [json.loads(row)["message"] for row in rows]
                self.assertEqual(
                    messages, ["first", "2 log lines could not be written", "second", "third"]
                )

    def test_chatter_of_twisted_is_for_debug(self) -> None:
        """Its warnings are not left out."""
        for level, words in (("info", ["warn"]), ("debug", ["info", "warn"])):
            stream, publisher = self.said(level=level)
            log = Logger("twisted.web.server.Site", observer=publisher)
            log.info("Starting factory")
            log.warn("Trouble")
            shown = [line.split()[1] for line in stream.getvalue().splitlines()]
            self.assertEqual(shown, words)
