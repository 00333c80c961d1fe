"""Picks from a job's log the lines that its programs have written. Pure, line by line.

A log of Hadoop has few lines of the job's programs between many of others: Oozie's launcher prints
its files, its class path and each of its settings, Hadoop and Pig log each of their steps. These
lines are recognised one by one, and left out. Everything else is shown, so also each warning and
each error of the launcher, of Hadoop and of Pig.

Note: phases of a launcher. Its stdout has a preamble, then the introduction of its main class
(`PigMain`, `ShellMain`), the output of the program, and an epilogue. Lines that a launcher prints
are recognised only in the phase in which it prints them: a program may print the same words.

Note: loggers. The steps of Hadoop and Pig are left out by the names of their loggers. Hadoop's own
examples are programs. In the output of a program only Pig's client writes such steps: elsewhere a
program has written them.

Note: frames. Most lines of a stack are of Java, Hadoop, Pig, Oozie and Spark, and name no mistake
of the user. They are left out in each file and phase; the exceptions, their causes and the frames
of other programs stay.

Note: dumps. A heading, a rule, the settings or files, the same rule. Within a dump nothing is
shown: the values have any form. A dump without its rules, as where a part of the log is missing,
is no dump. The driver of a Spark program logs one, up to the second rule or the next message: the
message before the first rule has no words.

Note: reasons of Spark. The launcher of a Spark job runs no program of the user: YARN does. It tells
why the application failed four times, and YARN tells the end of the driver's errors twice in each.
The first reason behind `Failing Oozie Launcher` is shown, without the steps of Spark in it.

Source: Oozie 5.2.1, `LauncherAM`, `LauncherMain`, `JavaMain`, `MapReduceMain`, `PigMain`,
`ShellMain`; recorded output of the four types of jobs.
"""

from __future__ import annotations

import re
from collections.abc import Generator, Iterator, Mapping
from enum import Enum
from functools import partial
from io import StringIO
from itertools import islice
from typing import Final

from attrs import evolve, field, frozen

from svcd.model.frames import FRAMEWORK
from svcd.model.log_title import ENGINE, TITLE

_pattern: Final = partial(re.compile, flags=re.ASCII)
_BLANK: Final = " \t\r\n"
_LAUNCHER: Final = _pattern(r"application_\d+_\d+ stdout\Z")
"""The end of the title of a launcher's output."""
_JVM_ERRORS: Final = _pattern(r"(?:application|attempt)_\w+ stderr\Z")
"""The end of the title of a file with errors of a JVM: a launcher's, or a task's."""
_OF_SVCD: Final = "[svcd: "
"""The beginning of svcd's own lines, for example on missing text."""
_PIECE_LINES: Final = 500
"""Lines that are read without a pause: a millisecond or two."""
_MOST_FILES: Final = 200
"""Files whose phases are remembered; svcd keeps fewer for an execution."""


class Phase(Enum):
    """Who writes the lines of a launcher's output."""

    PREAMBLE = "the launcher, before it calls the main class"
    INTRODUCTION = "the main class, before it calls the program"
    ARGUMENTS = "the main class lists the arguments of a Java program, up to an empty line"
    PROGRAM = "the program"
    EPILOGUE = "the launcher, after the program"


_START: Final = "Launcher AM configuration loaded"
"""The first line of a launcher's output."""
_MAIN: Final = ">>> Invoking Main class now >>>"
_PROGRAM: Final = _pattern(r">>> Invoking (\w+) (?:command line|class) now >>>?\Z")
_ENDED: Final = _pattern(r"<<< Invocation of (?:\w+ )+completed <<<\Z")
_FAILED: Final = "Failing Oozie Launcher, "
_RULE: Final = _pattern(r"[-=]{8,}\Z")
_JAVA_ARGUMENTS: Final = _pattern(r"Java action arguments +:\Z")
_DUMP: Final = _pattern(
    r"Classpath +:\Z|Java System Properties:\Z|Environment variables\Z|pig\.properties:\Z"
    r"| Pig script \[.*\] content: \Z|Map-Reduce job configuration:\Z|Full Command \.\. \Z"
    r"|Content of script .* \(size = \d+b\):\Z"
)
_ENVIRONMENT: Final = "List of passing environment"
"""The heading of a dump that ends with another rule, and may come within one without an end."""
_ENVIRONMENT_END: Final = "=" * 65
_STDOUT: Final = "Stdoutput "
"""The launcher of a Shell job writes it before each line of the script."""
_PREAMBLE: Final = _pattern(
    r"Launcher AM configuration loaded\Z|Executing (?:Oozie Launcher|Action Main) with tokens:\Z"
    r"|Kind: |Removing token from the Ugi: |Starting the execution of prepare actions\Z"
    r"|Completed the execution of prepare actions successfully\Z|Files in current dir:"
    r"|  (?:File|Dir): |Oozie Launcher Application Master configuration\Z"
    r"|Workflow (?:job|action) id *: |Main class +: |Maximum output +: "
)
_INTRODUCTION: Final = _pattern(
    r"Launcher class: class org\.(?:apache\.oozie|svcd\.jobs)\.|INFO: loading log4j config file "
    r"|INFO: log4j config file .* loaded successfully\.\Z|\{\"properties\":\[\{"
    r"|Setting (?:\[.*\] tag|env property for .* to):|Fetching child yarn jobs\Z|tag id : "
    r"|No child applications found\Z|Oozie (?:Java|Map-Reduce|Pig) action configuration\Z"
    r"|Java action main class +: |Current working dir |Creating /.*\Z|Current \(local\) dir = "
    r"|Pig command arguments :\Z| {13}[^ ]|Submitting Oozie action Map-Reduce job\Z"
)
_EPILOGUE: Final = _pattern(
    r"Stopping AM\Z|Callback notification (?:attempts left \d+|trying .*|to .* succeeded|succeeded)"
    r"\Z|job_\d+_\d+\Z"
)
_HANDED_OVER: Final = _pattern(
    r"Oozie Launcher, (?:uploading action data to HDFS sequence file: "
    r"|propagating new Hadoop job id to Oozie\Z)"
)
"""The launcher's first words after a program, also after one that failed."""
_SUBMIT: Final = _pattern(r"Java action main class +: org\.svcd\.spark\.SubmitSpark\Z")
_STACK: Final = "java.lang.reflect.InvocationTargetException"
"""The launcher's first word on a failure; the reason comes again below `_FAILED`."""
_HANDS_OVER: Final = "Oozie Launcher, "
_CONTAINER: Final = _pattern(r"\[[\d :.-]{23}\]Container exited with ")
"""The title of the end of a container's errors in YARN's report."""
_MORE: Final = "For more detailed output, check "
"""The line of the report below these errors."""
_EXIT_CODE: Final = "Exit code of the Shell command 0"
_FRAMEWORK: Final = _pattern(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} "
    r"(?:(?:\[[^]]{1,80}\] )?(?:INFO|DEBUG|TRACE) +(?:\[[^]]{1,80}\] )?"
    r"(?:(?:SecurityLogger\.)?org\.apache\.(?:hadoop|pig)|org\.eclipse\.jetty)\."
    r"(?!examples\.|tools\.pigstats\.\w+\.SimplePigStats|backend\.hadoop\.executionengine"
    r"\.mapReduceLayer\.MapReduceLauncher)"
    r"|WARN \[(?:main|uber-\w+)\] org\.apache\."
    r"(?:hadoop\.util\.NativeCodeLoader: Unable to load native-hadoop"
    r"|hadoop\.metrics2\.impl\.MetricsSystemImpl: \w+ metrics system already initialized!"
    r"|hadoop\.security\.authentication\.server\.AuthenticationFilter: Unable to initialize"
    r" FileSigner"
    r"|hadoop\.mapred\.LocalContainerLauncher: Returning, interrupted : "
    r"|pig\.data\.SchemaTupleBackend: SchemaTupleBackend has already been initialized\Z))"
)
"""Steps of Hadoop and Pig, except Hadoop's examples, the progress of Pig's jobs and statistics."""
_SPARK: Final = _pattern(
    r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} (?:INFO|DEBUG|TRACE) "
    r"org\.(?:apache\.(?:spark|hadoop)|sparkproject)\.(?!examples\.)"
    r"|WARNING: Using incubator modules: jdk\.incubator\.vector\Z"
)
"""Steps of Spark, except its examples, in the errors of a driver."""
_SPARK_MOMENT: Final = _pattern(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} ")
_EXECUTORS: Final = " org.apache.spark.deploy.yarn.ApplicationMaster: "
"""The end of a message of the driver whose text, the command of the executors, comes below it."""
_CONTEXT: Final = "=" * 79
"""The rule around this text."""
_MOMENT: Final = _pattern(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} ")
_EXCEPTION: Final = _pattern(r"(?:Caused by: )?(?:\w+\.)+[\w$]*(?:Exception|Error)\b")
_JVM: Final = _pattern(
    r"WARNING: (?:A terminally deprecated method in java\.lang\.System has been called\Z"
    r"|System::setSecurityManager (?:has been called by org\.apache\.oozie\."
    r"|will be removed in a future release\Z)"
    r"|Please consider reporting this to the maintainers of org\.apache\.oozie\.)"
    r"|log4j:WARN (?:No appenders could be found for logger |Please initialize the log4j system "
    r"properly\.\Z|See http://logging\.apache\.org/log4j/)"
    r"|Error while trying to clean up previous job's temporary files"
)
"""Warnings of the JVM about Oozie's launcher, and of the log4j and the end of a job's master."""


@frozen
class FileState:
    """The place in one file. phase: None for files that are no launcher's output.

    within: the rule that ends the present dump. heading: that of a dump, if it was the last line.
    left_out: the last message of a logger was. blanks: empty lines of the program that no other
    line has followed. begun: the program has written. pig: the program is Pig's client. spark: it
    submits a Spark job. told: first lines of texts that come again. again: how the line begins that
    ends such a text.
    """

    phase: Phase | None = None
    within: str = ""
    heading: str = ""
    left_out: bool = False
    blanks: int = 0
    begun: bool = True
    pig: bool = False
    spark: bool = False
    told: tuple[str, ...] = ()
    again: str = ""


@frozen
class ProgramOutput:
    """The place in a log, of which the text comes in pieces of whole lines.

    title: of the present part. shown: the title that was shown last. files: by title. left_out: the
    number of lines left out so far, those of the engine too.
    """

    title: str = ""
    shown: str = ""
    files: Mapping[str, FileState] = field(factory=dict, repr=False)
    left_out: int = 0

    def of(self, text: str) -> tuple[str, ProgramOutput]:
        """The lines of the programs in the next piece, and the place behind it."""
        title, shown, left_out = self.title, self.shown, self.left_out
        files, texts = dict(self.files), list[str]()
        for line in StringIO(text, newline="\n"):
            heading = TITLE.match(line)
            if heading is not None:
                title = heading[1]
                continue
            if title == ENGINE:
                left_out += 1
                continue
            wanted, after = _line(title, line, files.pop(title, None))
            if after is not None:
                files[title] = after
            while len(files) > _MOST_FILES:
                del files[next(iter(files))]
            left_out += not wanted and bool(line.strip(_BLANK))
            if wanted and title != shown:
                texts.append(f"==> {title} <==\n")
                shown = title
            texts.append(wanted)
        return "".join(texts), ProgramOutput(title, shown, files, left_out)


def program_lines(
    place: ProgramOutput, text: bytes
) -> Generator[None, None, tuple[bytes, ProgramOutput]]:
    """The lines of the programs in `text`, a part of a log, and the place behind it.

    place: before this part. The work pauses at each `yield`: a log of 1 MiB takes a tenth of a
    second, and one of very short lines a second.
    """
    texts = list[str]()
    for piece in _pieces(text):
        lines, place = place.of(piece)
        texts.append(lines)
        yield
    return "".join(texts).encode(), place


def place_behind(above: bytes) -> Generator[None, None, ProgramOutput]:
    """The place behind the whole lines of `above`, the beginning of a log."""
    _, place = yield from program_lines(ProgramOutput(), above[: above.rfind(b"\n") + 1])
    return place


def _pieces(text: bytes) -> Iterator[str]:
    lines = StringIO(text.decode("utf-8", "replace"), newline="\n")
    while piece := "".join(islice(lines, _PIECE_LINES)):
        yield piece


def _line(title: str, line: str, before: FileState | None) -> tuple[str, FileState | None]:
    """The text to show of a line of a file, with the empty lines before it, and the place after.

    None is the place at the beginning of a file, and behind a line of svcd about missing text.
    """
    words = line.rstrip("\r\n")
    if words.startswith(_OF_SVCD):
        return line, None
    if before is None:
        is_launcher = _LAUNCHER.search(title) is not None
        phase = Phase.PROGRAM if is_launcher else None
        if is_launcher and words == _START:
            phase = Phase.PREAMBLE
        before = FileState(phase=phase)
    if FRAMEWORK.match(words):
        return "", before
    if _is_known(title, words, before) or (before.left_out and _continues(title, words)):
        if before.phase is None:
            before = evolve(before, heading=words if words.endswith(_EXECUTORS) else "", within="")
        return "", evolve(before, left_out=True)
    if before.phase is None:
        return _of_driver(line, words, before)
    if before.left_out:
        before = evolve(before, left_out=False)
    return _of_launcher(line, words, before)


def _is_known(title: str, words: str, before: FileState) -> bool:
    """Whether it is a step of Hadoop or Pig, or a warning about the launcher itself."""
    if (before.phase is None or before.spark) and _SPARK.match(words):
        return True
    if _FRAMEWORK.match(words):
        return before.phase is not Phase.PROGRAM or before.pig
    return _JVM_ERRORS.search(title) is not None and _JVM.match(words) is not None


def _continues(title: str, words: str) -> bool:
    """Whether it is a further line of the message before. Only loggers write to a syslog."""
    if not title.endswith(" syslog"):
        return False
    return not _MOMENT.match(words) and not _EXCEPTION.match(words)


def _of_driver(line: str, words: str, before: FileState) -> tuple[str, FileState]:
    """A line of any file but a launcher's output; the dump is in that of a Spark driver."""
    within = before.within and not _SPARK_MOMENT.match(words)
    if before.left_out or before.heading or before.within:
        after = evolve(before, left_out=False, heading="", within="")
    else:
        after = before
    if within or (before.heading and words == _CONTEXT):
        ends = within and words == _CONTEXT
        return "", after if ends else evolve(after, within=_CONTEXT)
    return line, after


def _of_launcher(line: str, words: str, before: FileState) -> tuple[str, FileState]:
    after = _turned(words, before)
    if after is not None:
        return "", after
    if words.startswith(_FAILED):
        told = (words.removeprefix(_FAILED),) if before.spark else ()
        after = FileState(phase=Phase.EPILOGUE, spark=before.spark, told=told)
        return "\n" * before.blanks + line, after
    if before.spark:
        before = _told(words, before)
        if before.again:
            return "", before
    if before.phase is Phase.PROGRAM:
        return _of_program(line, words, before)
    if before.phase is Phase.ARGUMENTS:
        if not words:
            return "", FileState(phase=Phase.PROGRAM, spark=before.spark)
        return "", before
    inside = _in_dump(words, before)
    if inside is not None:
        return "", inside
    before = evolve(before, heading="", within="")
    if not words or _RULE.match(words) or _known_in(before.phase, words):
        return "", before
    return line, before


def _turned(words: str, before: FileState) -> FileState | None:
    """The place after a line that begins another phase and is not shown; else None."""
    phase = before.phase
    early = phase in (Phase.PREAMBLE, Phase.INTRODUCTION)
    if early and words == _MAIN:
        return FileState(phase=Phase.INTRODUCTION)
    if phase is Phase.INTRODUCTION and not before.within:
        if _SUBMIT.match(words):
            return evolve(before, heading="", spark=True)
        if _JAVA_ARGUMENTS.match(words):
            return FileState(phase=Phase.ARGUMENTS, spark=before.spark)
    program = _PROGRAM.match(words) if early else None
    if program is not None:
        return FileState(phase=Phase.PROGRAM, begun=False, pig=program[1] == "Pig")
    if _ENDED.match(words) or _HANDED_OVER.match(words):
        return FileState(phase=Phase.EPILOGUE)
    return None


def _told(words: str, before: FileState) -> FileState:
    """The place of a line of a Spark job's launcher, with `again` if it was told before."""
    if before.again and not words.startswith(before.again):
        return before
    again = ""
    if before.phase is Phase.PROGRAM and words == _STACK:
        again = _FAILED
    elif words in before.told:
        again = _MORE if _CONTAINER.match(words) else _HANDS_OVER
    elif _CONTAINER.match(words):
        before = evolve(before, told=(*before.told, words))
    return evolve(before, again=again)


def _in_dump(words: str, before: FileState) -> FileState | None:
    """The place after a line of a dump; None for a line that is of none."""
    if words == _ENVIRONMENT or (not before.within and _DUMP.match(words)):
        return evolve(before, heading=words, within="")
    if before.heading and _RULE.match(words):
        end = _ENVIRONMENT_END if before.heading == _ENVIRONMENT else words
        return evolve(before, heading="", within=end)
    if before.within:
        return evolve(before, within="" if words == before.within else before.within)
    return None


def _known_in(phase: Phase | None, words: str) -> bool:
    match phase:
        case Phase.PREAMBLE:
            return _PREAMBLE.match(words) is not None
        case Phase.INTRODUCTION:
            return _INTRODUCTION.match(words) is not None
        case Phase.EPILOGUE:
            return _EPILOGUE.match(words) is not None
    return False


def _of_program(line: str, words: str, before: FileState) -> tuple[str, FileState]:
    if words == _EXIT_CODE:
        return "", before
    if not words:
        return "", evolve(before, blanks=before.blanks + 1 if before.begun else 0)
    text = "\n" * before.blanks + line.removeprefix(_STDOUT)
    if before.blanks or not before.begun:
        before = evolve(before, blanks=0, begun=True)
    return text, before
