"""The programs' lines of a job's log, picked from recorded output of Oozie's launcher."""

from __future__ import annotations

import json
from collections.abc import Generator
from pathlib import Path
from typing import TypeVar, cast

from twisted.trial.unittest import SynchronousTestCase

from svcd.model.frames import FRAMEWORK
from svcd.model.log_title import without_titles
from svcd.workflow.decide.program_output import (
    ProgramOutput,
    place_behind,
    program_lines,
)

T = TypeVar("T")

FIXTURES = Path(__file__).parents[3] / "fixtures"
RECORDED = FIXTURES / "launchers"
CAUSES = FIXTURES / "causes"
OUT = "==> job-node application_1_0001 stdout <==\n"
LAUNCHED = OUT + "Launcher AM configuration loaded\n"
STARTED = LAUNCHED + ">>> Invoking Main class now >>>\n\n"
JAVA = STARTED + "Java action arguments         :\n\n"
LOADED = "INFO [main] org.apache.hadoop.conf.Configuration: loaded\n"


def shown(text: str) -> str:
    return ProgramOutput().of(text)[0]


def result_of(steps: Generator[None, None, T]) -> T:
    """The result of `steps`, without their pauses."""
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return cast(T, end.value)


def lines_of(above: bytes, text: bytes) -> tuple[bytes, int]:
    """The lines of the programs in `text`, below `above`, and the number of lines left out."""
    before = result_of(place_behind(above))
    lines, after = result_of(program_lines(before, text))
    return lines, after.left_out - before.left_out


def recorded(name: str) -> str:
    return (RECORDED / f"{name}.txt").read_text(encoding="utf-8")


class SparkTests(SynchronousTestCase):
    """Errors of a driver, whose loggers write their whole names."""

    AT = "2026-11-23 14:53:27.951"
    TITLE = "==> job-node application_1_0002 stderr <==\n"

    def test_rule_of_the_program_hides_nothing(self) -> None:
        """A program draws such a line behind any message of Spark, too."""
        mine = f"{'=' * 79}\nTraceback (most recent call last):\nKeyError: 'EUR'\n"
        for message in ("SparkContext: started", "deploy.yarn.ApplicationMaster: Registered"):
            step = f"{self.AT} INFO org.apache.spark.{message}\n"
            self.assertEqual(shown(self.TITLE + step + mine), self.TITLE + mine, message)


def of_cause(name: str) -> dict[str, str]:
    """The files of a recorded failure by their titles; a launcher's output with its beginning."""
    files = json.loads((CAUSES / f"{name}.json").read_text(encoding="utf-8"))["evidence"]["files"]
    made = {}
    for each in files:
        is_launcher = each["place"] == "launcher"
        place = "job-node application_1_0001" if is_launcher else each["place"]
        begin = STARTED.removeprefix(OUT) if is_launcher and each["name"] == "stdout" else ""
        made[f"{place} {each['name']}"] = begin + each["text"].rstrip("\n") + "\n"
    return made


class FailedSparkTests(SynchronousTestCase):
    """Recorded failures of Spark jobs: the reason once, and all that the program has written."""

    def test_the_output_of_the_programs_is_whole(self) -> None:
        """Of each recorded Spark job, line by line."""
        names = [each.stem for each in CAUSES.glob("*spark*.json")]
        self.assertGreater(len(names), 20)
        for name in names:
            text = shown(log_of(name))
            for title, wanted in of_cause(name).items():
                if title.startswith("application_") and title.endswith(" stdout"):
                    body = text.partition(f"==> {title} <==\n")[2].partition("\n==> ")[0]
                    lines = [w for w in wanted.splitlines() if w and not FRAMEWORK.match(w)]
                    self.assertEqual([line for line in body.splitlines() if line], lines, name)

    def test_errors_that_only_the_report_has(self) -> None:
        """The driver's own file may be lost: its end stays, without the steps of Spark."""
        spark = "Java action main class        : org.svcd.spark.SubmitSpark\n"
        begun = f"{STARTED}{spark}Java action arguments         :\n\n"
        exited = "[2026-11-23 20:48:05.784]Container exited with a non-zero exit code 13.\n"
        tail = "2026-11-23 20:48:02.244 INFO org.apache.spark.A: a\nmy own words\n"
        more = "For more detailed output, check c\n"
        report = f"application_1 FAILED: b\n{exited}{tail}{exited}{tail}{more}"
        log = (
            f"{begun}java.lang.reflect.InvocationTargetException\nCaused by: {report}"
            f"Failing Oozie Launcher, {report}{report}"
            "Oozie Launcher, uploading action data to HDFS sequence file: d\nStopping AM\nafter\n"
        )
        once = f"{OUT}Failing Oozie Launcher, application_1 FAILED: b\n{exited}my own words\n"
        self.assertEqual(shown(log), f"{once}{more}after\n")


def log_of(name: str) -> str:
    """A recorded log: of a launcher, or of all containers of a failed Spark job."""
    if (RECORDED / f"{name}.txt").exists():
        return recorded(name)
    return "".join(f"==> {title} <==\n{text}" for title, text in of_cause(name).items())


class RecordedTests(SynchronousTestCase):
    """Real output; what is shown of it lies beside it."""

    def test_programs_words_and_the_reason_of_a_failure_are_shown_once(self) -> None:
        """Without the launcher's, Spark's and Hadoop's own; Pig's progress is its output."""
        paths = sorted((RECORDED / "shown").glob("*.txt"))
        self.assertGreater(len(paths), 10)
        for path in paths:
            self.assertEqual(shown(log_of(path.stem)), path.read_text(encoding="utf-8"), path.stem)

    def test_pieces(self) -> None:
        """A file may be cut between two parts of the log; each line comes once."""
        for name in ("pig", "shell", "java", "mapreduce", "pig-broken"):
            text, made = recorded(name).encode(), b""
            for size in (7, 100):
                lines = text.splitlines(keepends=True)
                parts = [b"".join(lines[at : at + size]) for at in range(0, len(lines), size)]
                left_out, above, made = 0, b"", b""
                for part in parts:
                    new, number = lines_of(above, part)
                    made, left_out, above = made + new, left_out + number, above + part
                self.assertEqual((made, left_out), lines_of(b"", text), (name, size))
                self.assertEqual(made.decode(), shown(recorded(name)))


STEP = f"2026-01-01 00:00:00,000 {LOADED}"
PROGRAM = "Classpath         :\n\nEnvironment variables\nStopping AM\nSetting [a] tag: b\n"
COMPLETED = "<<< Invocation of Main class completed <<<\n"
DUMP = f"{STARTED}pig.properties:\n{'-' * 20}\n a : b\n"
ANEW = f"{OUT}[svcd: this file was begun anew]\n"
FAILED = "Failing Oozie Launcher, Prepare failed\njava.io.IOException: no\n\tat a.b(C.java)\n"
REFUSED = "Callback notification to http://a failed: refused\n"
SYSLOG = "==> job-node attempt_1_0001_m_000000_0 syslog <==\n"
ARROWS = "==> engine <==\n==> job-node application_1_0001 stderr <==\nException: the reason\n"
BAR = "a\n\rb\rc\n\u2028Stopping AM\n\x0cd\x85e\n\x1c\n"

SHOWN = {
    "the launcher fails early: its own errors": (f"{LAUNCHED}{FAILED}Stopping AM\n", FAILED),
    "the launcher fails late": (f"{STARTED}{COMPLETED}{REFUSED}", REFUSED),
    "a dump without an end: the next phase ends it": (
        f"{DUMP}>>> Invoking Pig command line now >>>\n\nhello\n",
        "hello\n",
    ),
    "a file without its beginning: nothing is taken for the launcher's": (
        f"{OUT}Environment variables\n--------\nA=b\n\nc\n",
        "Environment variables\n--------\nA=b\n\nc\n",
    ),
    "words of the launcher in a program are the program's": (f"{JAVA}{PROGRAM}", PROGRAM),
    "... up to its end": (f"{JAVA}{PROGRAM}\n{COMPLETED}\n", PROGRAM),
    "titles that a program prints: svcd keeps them with a space": (
        f"{JAVA}{without_titles(ARROWS)}",
        without_titles(ARROWS),
    ),
    "a logger in the output of a program": (f"{JAVA}{STEP}", STEP),
    "a logger in the output of a script": (
        f"{STARTED}>>> Invoking Shell command line now >>>\n\n{STEP}a\n",
        f"{STEP}a\n",
    ),
    "a logger of Pig's client: a step of Hadoop": (
        f"{STARTED}>>> Invoking Pig command line now >>>\n\n{STEP}a\n",
        "a\n",
    ),
    "only a line feed ends a line": (f"{JAVA}{BAR}", BAR),
    "a Java program with the words of Spark's launcher": (
        f"{JAVA}java.lang.reflect.InvocationTargetException\nmine\n",
        "java.lang.reflect.InvocationTargetException\nmine\n",
    ),
}
"""Situation -> the output of a launcher, and what is shown of it below its title."""


class OpenTests(SynchronousTestCase):
    """Unknown text is shown."""

    def test_lines_of_the_program_are_shown_and_those_of_the_launcher_are_not(self) -> None:
        for situation, (log, wanted) in SHOWN.items():
            self.assertEqual(shown(log), OUT + wanted, situation)

    def test_unknown_lines_in_each_phase_are_shown(self) -> None:
        for before in (
            LAUNCHED,
            LAUNCHED + "Classpath         :\n",
            LAUNCHED + f"Classpath         :\n{'-' * 24}\n  /a.jar\n{'-' * 24}\n",
            STARTED + "Launcher class: class org.apache.oozie.action.hadoop.PigMain\n",
            STARTED + "Launcher class: class org.svcd.jobs.StartPig\n",
            STARTED + "pig.properties:\n",
            STARTED + ">>> Invoking Pig command line now >>>\n",
            STARTED + f"{COMPLETED}Stopping AM\n",
        ):
            self.assertEqual(shown(before + "strange\n"), OUT + "strange\n", before)

    def test_a_file_may_begin_anew_below_missing_text_or_go_on_anywhere(self) -> None:
        self.assertEqual(shown(f"{DUMP}{ANEW} c : d\n"), f"{ANEW} c : d\n")
        again = STARTED.removeprefix(OUT) + ">>> Invoking Shell command line now >>\n"
        self.assertEqual(shown(f"{DUMP}{ANEW}{again}Stdoutput e\n"), f"{ANEW}e\n")

    def test_lines_like_titles_are_words_of_the_program(self) -> None:
        """`head a b` prints such: the phase of the program goes on below them."""
        for title in ("part-0", "engine ", "Engine", "job-node application_1 stdin", "a b stdout"):
            program = f"==> {title} <==\na\n"
            self.assertEqual(
                shown(f"{JAVA}{program}{COMPLETED}Stopping AM\n"), OUT + program, title
            )

    def test_outputs_of_tasks_examples_and_drivers_are_whole(self) -> None:
        """They are programs, in each file."""
        launched = "Launcher AM configuration loaded\nStdoutput a\n\n"
        example = "2026-01-01 00:00:00,000 INFO org.apache.hadoop.examples.MyTool: result=42\n"
        for text in (
            f"==> job-node attempt_1_0001_m_000000_0 stdout <==\n{launched}",
            f"==> attempt_1_2_x_3_0 stdout <==\n{launched}",
            f"{OUT}{example}",
            f"{SYSLOG}{example}",
            f"==> job-node application_1_2 stdout <==\n{SparkTests.AT} INFO org.apache.spark.A: \n",
        ):
            self.assertEqual(shown(text), text)

    def test_messages_of_loggers(self) -> None:
        """Hadoop's steps go with their further lines; others' and each exception stay."""
        at = "2026-01-01 00:00:00,000 "
        mine = f"{at}INFO [main] org.example.Mine: one\n\ttwo\n"
        bad = "java.io.IOException: no\n\tat a.b(C.java)\nCaused by: d.E\n"
        text = f"{SYSLOG}{STEP}Final Counters:\n\t\tBytes=0\n{mine}{STEP}{bad}"
        self.assertEqual(shown(text), SYSLOG + mine + bad)
        warning = f"{at}WARN [main] org.apache.hadoop.mapred.Task: slow\n"
        self.assertEqual(shown(f"{SYSLOG}{warning}"), f"{SYSLOG}{warning}")

    def test_the_engine_is_left_out(self) -> None:
        """Each of its lines counts; the last line of a text needs no end."""
        text = "==> engine <==\na\n\n==> attempt_1 stdout <==\nhello\n==> engine <==\nc"
        made, state = ProgramOutput().of(text)
        self.assertEqual((made, state.left_out), ("==> attempt_1 stdout <==\nhello\n", 3))
        self.assertEqual(shown("==> attempt_1 stdout <==\na"), "==> attempt_1 stdout <==\na")

    def test_part_of_a_log(self) -> None:
        """The text above it tells the file, the phase and the empty lines; it is not repeated."""
        above = f"{JAVA}one\n\n".encode()
        self.assertEqual(lines_of(above, b"Stopping AM\n"), (b"\nStopping AM\n", 0))
        self.assertEqual(lines_of(b"", above), (f"{OUT}one\n".encode(), 3))
        self.assertEqual(lines_of(b"==> engine <==\na\n", b"b\n"), (b"", 1))
        self.assertEqual(
            lines_of(above + "half of a l\u00ef".encode()[:-1], b"two\n")[0], b"\ntwo\n"
        )

    def test_text_that_is_no_utf_8_has_signs_for_the_wrong_bytes(self) -> None:
        self.assertEqual(lines_of(OUT.encode(), b"a\xff\n"), (f"{OUT}a\ufffd\n".encode(), 0))

    def test_many_titles(self) -> None:
        """What is remembered is bounded."""
        _, state = ProgramOutput().of(
            "".join(f"==> attempt_{n} stderr <==\na\n" for n in range(500))
        )
        self.assertEqual(len(state.files), 200)
