"""URLs of data sources, as the programs of a job read them. Pure.

It decides which URLs a job can use, and writes a URL in the form that a program reads. It never
decides whether a data source may be created: svcd does not check the location of one.

Note: one meaning for all job types. Hadoop gives the characters of an input's URL a meaning: a
comma separates two paths, `* ? [ ] { }` are patterns, and a backslash before one of these takes the
meaning away. Everything else stands for itself, `%` included. In an output's URL each character
stands for itself. Hadoop's own reader of a list of paths understands this. The property of a
MapReduce job and the parameter of a Pig script do not, so svcd writes them in a form that gives the
program the same text.

Source: Hadoop 3.5.0 `Path`, `Globber`, `FileInputFormat.setInputPaths`; Pig 0.18.0;
measured on HDFS and Swift with each name of the list in docs/jobs.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Final

from svcd.model.job import DataSource, JobType
from svcd.workflow.decide.job_types import traits_of

SCHEMES: Final[Mapping[str, Collection[str]]] = {
    "hdfs": ("hdfs", "webhdfs", "swebhdfs"),
    "objstore": ("objstore",),
}
"""The schemes that jobs of every type can use, by the type of the data source."""
_ACCEPTED: Final = {
    "hdfs": "hdfs://, webhdfs:// and swebhdfs:// URLs and paths of the cluster's HDFS (/path)",
    "objstore": "objstore://CONTAINER/PATH",
}
_SCHEME: Final = re.compile(r"([^/:]*):")
"""Hadoop's scheme: the text before a colon that comes before the first slash."""
_CONTROL: Final = re.compile(r"[\x00-\x1f\x7f]")
_MOST_SCHEME: Final = 30


def faults_of(
    job_type: JobType, sources: Mapping[str, DataSource | None], configs: Collection[str]
) -> Iterator[str]:
    """The data sources that a job of this type cannot use, each with its JSON path.

    sources: by the field of the request that names them. configs: the names of the caller's
    configurations.
    """
    reads_urls = traits_of(job_type).reads_urls
    for key, source in sources.items():
        if source is None:
            continue
        where = f"$.{key}: data source {source.name}"
        listed = key == "input_id" and reads_urls
        paths = paths_of(source.url) if listed else [source.url]
        wrong = next((w for path in paths if (w := _wrong_scheme(source.type, path, configs))), "")
        if not wrong and reads_urls:
            wrong = _wrong_text(source.url, job_type) or (
                _wrong_input(paths) if listed else _wrong_output(source.url, job_type)
            )
        if wrong:
            yield f"{where}: {wrong}"


def paths_of(url: str) -> list[str]:
    """The paths of an input: Hadoop separates them by commas outside of braces."""
    paths = [""]
    depth = 0
    for character in url:
        depth = max(0, depth + (character == "{") - (character == "}"))
        if character == "," and not depth:
            paths.append("")
        else:
            paths[-1] += character
    return paths


def input_property(url: str) -> str:
    """The paths of an input in the property of a MapReduce job, which has escapes of its own."""
    return ",".join(path.replace("\\", "\\\\").replace(",", "\\,") for path in paths_of(url))


def pig_parameter(url: str) -> str:
    """A URL as the text in place of a parameter that a script names inside of quotation marks.

    Pig reads a path without a slash only up to its first blank, hence `./`.
    """
    text = url if url.startswith("/") or _SCHEME.match(url) else f"./{url}"
    return re.sub(r"([\\'])", r"\\\1", text)


def _wrong_scheme(source_type: str, path: str, configs: Collection[str]) -> str:
    found = _SCHEME.match(path)
    scheme = found.group(1) if found else ""
    accepted = SCHEMES.get(source_type, ())
    if scheme in accepted or (source_type == "hdfs" and found is None):
        if scheme == "objstore" and not _container(path):
            return "its URL names no container; write objstore://CONTAINER/PATH"
        return ""
    own = f"fs.{scheme}.impl"
    if scheme and (own in configs or f"spark.hadoop.{own}" in configs):
        return ""
    has = f"the scheme {_shown(scheme)}" if found else "no scheme"
    text = (
        f"its URL has {has}, and jobs use data sources of type {source_type} with"
        f" {_ACCEPTED.get(source_type, 'no URL')}"
    )
    if scheme == "file":
        return (
            f"{text}; each machine of the cluster has files of its own: put the data into HDFS or"
            " the object store"
        )
    if scheme and scheme not in ("hdfs", "objstore"):
        return (
            f"{text}; for another file system give its class as fs.{_shown(scheme)}.impl in configs"
        )
    return text


def _container(path: str) -> str:
    return path.partition("://")[2].partition("/")[0]


def _wrong_text(url: str, job_type: JobType) -> str:
    """The fault of characters that neither an input nor an output can have, or ""."""
    if control := _CONTROL.search(url):
        return f"its URL contains the control character U+{ord(control.group()):04X}; remove it"
    if url != url.strip() and job_type is not JobType.SPARK:
        return "its URL begins or ends with a blank, which the workflow engine removes; rename it"
    if "${" in url and job_type in (JobType.JAR, JobType.MAP_REDUCE):
        return (
            "its URL contains ${, which begins a variable in a configuration of Hadoop; rename it"
            " or use a Pig job"
        )
    return ""


def _wrong_input(paths: list[str]) -> str:
    for path in paths:
        if not path:
            return "its URL has an empty path beside a comma, which separates the paths of an input"
        if fault := _colon(path):
            return fault
        escaped = re.sub(r"\\[*?\[\]{}\\]", "", path)
        if escaped.endswith("\\"):
            return (
                "its URL contains a backslash at the end of a path (a comma separates paths); a"
                " comma in a name is written ?"
            )
        if "\\" in escaped:
            return (
                "its URL contains a backslash before another character than * ? [ ] { } and \\;"
                " a backslash in a name is written \\\\"
            )
    return ""


def _wrong_output(url: str, job_type: JobType) -> str:
    if "," in url and job_type is JobType.PIG:
        return (
            "its URL contains a comma (,), at which Pig splits the name of an output, and writes to"
            " another place; use another name, or a Spark or MapReduce job"
        )
    if "\\" in url:
        return (
            "its URL contains a backslash (\\), which takes the meaning of the next character where"
            " the URL is an input; use another name"
        )
    return _colon(url)


def _colon(path: str) -> str:
    rest = path[scheme.end() :] if (scheme := _SCHEME.match(path)) else path
    if rest.startswith("//"):
        rest = rest[2:].partition("/")[2]
    if ":" in rest:
        return (
            "its URL contains a colon (:) in the path, which Hadoop cannot read there; use another"
            " name, or ? for the colon of an input"
        )
    return ""


def _shown(scheme: str) -> str:
    """A scheme for a text: short, printable; it can be no part of a password."""
    plain = "".join(c if c.isalnum() or c in "+-." else "?" for c in scheme[:_MOST_SCHEME])
    return f"{plain}…" if len(scheme) > _MOST_SCHEME else plain
