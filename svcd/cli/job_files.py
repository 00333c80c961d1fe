"""The files of `svcd run`: the type of a job, and the names of what is uploaded. Pure.

Note: names that hold a digest. The API does not show digests, and a name is unique in a tenant. So
`svcd run` gives a binary's data a name with a part of its SHA-256. A second run of the same file
finds the name and uploads nothing. A changed file gets another name, and old jobs keep their data.
The name of the first job means all of them (`job_contents.versions`).
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Any, Final

from attrs import frozen

from svcd.cli.exits import USAGE, CommandError
from svcd.model.choices import listed
from svcd.model.controls import name_fault
from svcd.model.job import INTERNAL_URL, MAX_JOB_VALUES, JobConfigs, JobType
from svcd.model.names import MAX_NAME
from svcd.model.redaction import shown_url
from svcd.workflow.decide import arguments, spark_job
from svcd.workflow.decide.job_configs import (
    MOST_FAULTS,
    starts,
    unusable,
)
from svcd.workflow.decide.job_types import (
    MAIN_CLASS,
    STREAMING_MAPPER,
    STREAMING_REDUCER,
    traits_of,
)
from svcd.workflow.decide.rules import config_faults

DIGITS: Final = 12
"""Hexadecimal digits of a digest in a name."""
_BY_ENDING: Final[Mapping[str, JobType]] = {
    ".pig": JobType.PIG,
    ".py": JobType.SPARK,
    ".sql": JobType.SPARK,
    ".sh": JobType.SHELL,
    ".bash": JobType.SHELL,
    ".rb": JobType.SHELL,
    ".pl": JobType.SHELL,
}
_OF_HIVE: Final = frozenset({".hql", ".hive"})
_NEEDS_PROGRAM: Final = frozenset({".rb", ".pl"})
"""Endings of scripts that a shell would misread without a first line that names their program."""
_MAPPERS: Final = frozenset(
    {
        "mapred.mapper.class",
        "mapreduce.map.class",
        "mapreduce.job.map.class",
        STREAMING_MAPPER,
    }
)
"""Configurations that name the mapper of a MapReduce job."""
_TYPES: Final = [type_ for type_ in JobType if type_ is not JobType.HIVE]
_BY_NAME: Final = {type_.value.lower(): type_ for type_ in JobType}


class Unusable(CommandError):
    """The arguments of a command are unusable: one line with fault, reason and remedy."""

    def __init__(self, text: str) -> None:
        super().__init__(text, USAGE)


@frozen(kw_only=True)
class Kind:
    """The type of a job. why: for people; "" when it was given. main_class: of a Java job."""

    type: JobType
    why: str = ""
    main_class: str = ""


def kind_of(
    file: str, head: bytes, manifest_class: str, given: str, main_class: str, configs: Iterable[str]
) -> Kind:
    """The type of the job in `file`. Raises Unusable.

    head: its first bytes. manifest_class: of a jar. given: `--type`, "" without it. configs: the
    names of the given configurations.
    """
    ending = PurePath(file).suffix.lower()
    main = main_class or manifest_class
    mapper = next((config for config in configs if config in _MAPPERS), "")
    if given:
        found = _given(given)
        if found is JobType.SPARK:
            _check_spark(file, main_class)
        is_java = found is JobType.JAVA or (found is JobType.SPARK and ending == ".jar")
        if is_java and not main and MAIN_CLASS not in configs:
            raise Unusable(f"{file} names no main class in its manifest: give --main-class")
        if found is JobType.MAP_REDUCE and ending != ".jar" and not mapper:
            raise Unusable(
                f"a MapReduce job does not run {file} by itself: give -c {STREAMING_MAPPER}=COMMAND"
                f" and -c {STREAMING_REDUCER}=COMMAND, for example ./{file}"
            )
        return Kind(type=found, main_class=main if is_java else "")
    if ending in _OF_HIVE:
        raise Unusable(_NO_HIVE)
    if ending == ".jar":
        if mapper and not main_class:
            return Kind(type=JobType.MAP_REDUCE, why=f"a .jar with {mapper}")
        if main or MAIN_CLASS in configs:
            why = "a .jar with a main class"
            return Kind(type=JobType.JAVA, why=why, main_class=main)
        raise Unusable(
            f"{file} names no main class in its manifest: give --main-class CLASS for a program,"
            " or -c mapreduce.map.class=CLASS and so on for a MapReduce job"
        )
    if main_class:
        raise Unusable(f"--main-class is for a .jar, not for {file}")
    if STREAMING_MAPPER in configs:
        return Kind(type=JobType.MAP_REDUCE, why=f"a file with {STREAMING_MAPPER}")
    type_ = _BY_ENDING.get(ending)
    if type_ is not None and (type_ is not JobType.SHELL or ending not in _NEEDS_PROGRAM):
        kind = Kind(type=type_, why=f"a {ending} file")
    elif head.startswith(b"#!"):
        kind = Kind(type=JobType.SHELL, why="a script with a #! line")
    elif wrong := arguments.script_fault(JobType.SHELL, head, True):
        raise Unusable(f"{file}: {wrong}")
    elif type_ is not None:
        raise Unusable(
            f"{file} has no first line that names its program, such as"
            f" #!/usr/bin/env {_program(ending)}, so no machine can start it: add the line"
        )
    else:
        raise Unusable(
            f"the type of {file} cannot be guessed from its name: give --type,"
            f" one of {listed([type_.value for type_ in _TYPES])}"
        )
    return kind


def _given(name: str) -> JobType:
    found = _BY_NAME.get(name.lower())
    if found is None:
        known = listed([type_.value for type_ in _TYPES])
        raise Unusable(f"--type {name}: there is no such type of job; there are {known}")
    if found is JobType.HIVE:
        raise Unusable(_NO_HIVE)
    return found


_NO_HIVE: Final = (
    "svcd runs no Hive jobs: Spark runs scripts in SQL; give the file a name that ends in .sql"
)


def _check_spark(file: str, main_class: str) -> None:
    ending = spark_job.ending(file)
    if not ending:
        raise Unusable(
            f"{file} is no program of Spark: its name must end in {listed(spark_job.ENDINGS)}"
        )
    if main_class and ending != ".jar":
        raise Unusable(f"--main-class is for a .jar, not for {file}")


def _program(ending: str) -> str:
    return {".rb": "ruby", ".pl": "perl"}[ending]


def faults(kind: JobType, files: Sequence[tuple[str, bytes]], given: JobConfigs) -> Iterator[str]:
    """The faults for which the API would refuse the job. files: names and content, main first."""
    seen = set()
    for number, (name, data) in enumerate(files):
        if name in seen:
            yield f"two files of the job are named {name}: rename one of them"
        seen.add(name)
        if wrong := arguments.file_name_fault(name) or arguments.taken(kind, name):
            yield f"{name}: {wrong}"
        started = starts(kind, given.configs, name)
        if started and (wrong := arguments.script_fault(kind, data, number == 0)):
            yield f"{name}: {wrong}"
    for option, count in (("arguments", len(given.args)), ("values of -p", len(given.params))):
        if count > MAX_JOB_VALUES:
            yield f"{count:,} {option}; a job has at most {MAX_JOB_VALUES:,}: put them into a file"
    faults_ = [*unusable(kind, given), *config_faults(kind, [files[0][0]], given)]
    for fault in faults_[:MOST_FAULTS]:
        yield fault.removeprefix("$.job_configs.").removeprefix("$.job_configs: ")


def missing_places(kind: JobType, has_input: bool, has_output: bool) -> str:
    """The refusal of a run that lacks places for its data; "" when it lacks none."""
    if not traits_of(kind).needs_data or (has_input and has_output):
        return ""
    lacks = [
        option for option, given in (("--input", has_input), ("--output", has_output)) if not given
    ]
    return (
        f"a {kind.value} job needs {' and '.join(lacks)}, for example --input ./folder and"
        " --output hdfs:///out"
    )


def takes_mains(kind: JobType) -> bool:
    """Whether the file of a job of this type is its main binary, and not a library."""
    return kind not in (JobType.JAR, JobType.MAP_REDUCE, JobType.JAVA)


# ---- names --------------------------------------------------------------------------------------


def slug(text: str, most: int = MAX_NAME) -> str:
    """`text` as a name of data processing, of at most `most` characters."""
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", text).lstrip("._-")
    return plain[:most].rstrip("-") or "x"


def digest_of(parts: Iterable[str]) -> str:
    """A short digest of several texts in their order."""
    whole = hashlib.sha256()
    for part in parts:
        data = part.encode("utf-8", "surrogatepass")
        whole.update(len(data).to_bytes(8, "big") + data)
    return whole.hexdigest()[:DIGITS]


def with_digest(name: str, digest: str) -> str:
    """`name` with the first digits of `digest` before its ending: `count-3f2a9c0b1d4e.pig`."""
    return _with_ending(name, f"-{digest[:DIGITS]}")


def _with_ending(name: str, more: str = "") -> str:
    """`name` with `more` before its ending, which says what the file is. The stem is cut to fit."""
    path = PurePath(name)
    ending = slug(path.suffix, 10) if path.suffix else ""
    ending = f"{more}.{ending}" if ending else more
    return f"{slug(path.stem, MAX_NAME - len(ending))}{ending}"


# ---- reuse --------------------------------------------------------------------------------------


@frozen(kw_only=True)
class Reuse:
    """An existing row, or a free name. id: "" when the row must be created under `name`."""

    name: str
    id: str = ""


Rows = Sequence[Mapping[str, Any]]


def internal(name: str, digest: str, size: int, known: Rows) -> Reuse:
    """The data of a binary. known: the internals of the tenant."""
    wanted = with_digest(name, digest)
    for binary in known:
        if binary["name"] == wanted and binary["datasize"] == size:
            return Reuse(name=wanted, id=str(binary["id"]))
    return Reuse(name=wanted)


def plain(file: str) -> str:
    """The name of the job binary for the first content of a file."""
    name = slug(file)
    return name if name == slug(file, len(file)) else _with_ending(file)


def binary(file: str, digest: str, internal_id: str, known: Rows) -> Reuse:
    """The job binary for data of svcd. Raises Unusable.

    file: the name of its file for the job. known: the job binaries of the tenant.
    """
    url = INTERNAL_URL + internal_id
    by_name = {str(binary["name"]): binary for binary in known}
    own = digest_of([file, digest])
    for wanted in (plain(file), with_digest(file, digest), with_digest(file, own)):
        row = by_name.get(wanted)
        if row is None:
            return Reuse(name=wanted)
        if internal_id and row["url"] == url and row.get("file_name", wanted) == file:
            return Reuse(name=wanted, id=str(row["id"]))
    raise Unusable(f"the binary {wanted} of the project has another content: remove or rename it")


def job(name: str, kind: JobType, mains: Sequence[str], libs: Sequence[str], known: Rows) -> Reuse:
    """The job of these binaries. mains, libs: ids. known: the jobs of the tenant."""
    by_name = {str(binary["name"]): binary for binary in known}
    wanted = [kind.value, *mains, "", *libs]
    first = slug(name)
    own = with_digest(first, digest_of(wanted))
    for free_name in (first, own):
        row = by_name.get(free_name)
        if row is None:
            return Reuse(name=free_name)
        if content_of(row) == wanted:
            return Reuse(name=free_name, id=str(row["id"]))
    raise Unusable(f"the jobs {first} and {own} exist with other binaries: rename the file")


def content_of(row: Mapping[str, Any]) -> Sequence[str]:
    """The parts of a job whose digest its name may have."""
    mains, libs = ([str(b["id"]) for b in row.get(key) or ()] for key in ("mains", "libs"))
    return [str(row.get("type")), *mains, "", *libs]


def source(kind: str, url: str, user: str, password: str, known: Rows, invocation: str) -> Reuse:
    """The data source of a place. known: the data sources of the tenant."""
    for source_row in known:
        account = source_row["credentials"]
        same = (account.get("user", ""), account.get("password", "")) == (user, password)
        if (source_row["type"], source_row["url"]) == (kind, url) and same:
            return Reuse(name=str(source_row["name"]), id=str(source_row["id"]))
    last = url.rstrip("/").rpartition("/")[2] or kind
    return Reuse(name=f"{slug(last, MAX_NAME - 9)}-{digest_of([invocation, url])[:8]}")


# ---- places -------------------------------------------------------------------------------------


def place_type(option: str, text: str) -> str:
    """The type of the data source for a URL; "" when `text` is none. Raises Unusable."""
    scheme, separator, rest = text.partition("://")
    if not separator:
        return ""
    if scheme == "hdfs" and rest.strip("/"):
        return "hdfs"
    if scheme == "objstore" and all(rest.partition("/")[::2]):
        return "objstore"
    raise Unusable(
        f"{option} {shown_url(text)}: expected hdfs:///PATH or objstore://CONTAINER/PATH"
    )


def pairs(option: str, given: Sequence[str]) -> dict[str, str]:
    """The names and values of a repeated option `NAME=VALUE`. Raises Unusable."""
    values = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not name or not equals:
            shown = name if equals else text.partition("=")[0]
            raise Unusable(f"{option} {shown}: expected NAME=VALUE")
        if wrong := name_fault(name):
            raise Unusable(f"{option} {name}: {wrong}")
        if name in values:
            raise Unusable(f"{option} {name}: given more than once: keep one")
        values[name] = value
    return values
