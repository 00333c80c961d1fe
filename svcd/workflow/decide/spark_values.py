"""Decides how the files and values of a Spark job reach its program. Pure.

The driver of a program is a container of YARN, and so is each executor. Spark names their files in
lists and URLs, and YARN writes the names and the program's arguments into scripts of a shell. Each
of these changes texts. So svcd chooses the names of the files in the execution's folder, writes the
values into one of them, and a starter that travels with the job hands them to the program.

Note: names. The fragment of a file's URL is the name of the link that YARN makes in each
container. YARN writes it between double quotes of a shell, and Spark puts the URL into a list with
commas. A library that is searched for classes or modules is found by its place, which a fragment
does not change: it keeps its name when Spark understands it. Otherwise the starter gives it its
name in the driver, and the executors have it under the name of its place.

Note: Python. The program of Spark is svcd's starter. It gives the files their names, and becomes
the program (`exec`), with an empty standard input. Modules are in a folder of their own on Python's
path, where Spark puts them, and in the driver's folder, too.

Note: classes. Spark calls a class of svcd, which calls the main class, or the class of the image
that runs scripts in SQL. The options are those of YARN alone: spark-submit itself loads no class of
the job, and warns of each jar of `spark.jars` that it cannot load.

Note: variables of SQL. Spark replaces variables in the value of a variable, too. So `${` in a value
is written as a variable for the `$`, and the brace.

Source: Spark 4.2.0 `yarn.Client`, `PythonRunner`, `ConfigReader`; Hadoop 3.5.0 `ContainerLaunch`.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from typing import Final

from svcd.model.job import JobType
from svcd.workflow.decide import arguments
from svcd.workflow.decide.arguments import SEARCHED, START_JAR, VALUES, fragment, values

SQL_CLASS: Final = "org.svcd.jobs.StartSql"
"""The class that starts a script in SQL; its source is in svcd.workflow.runner."""

_JAR: Final = ".jar"
_ARCHIVES: Final = SEARCHED - {_JAR}
"""Endings of the libraries that Python searches for modules."""
_MODULE: Final = ".py"
_SCRIPT: Final = ".sql"
_MODULES: Final = "__pyfiles__"
"""Spark's folder of the modules in a container."""
_DOLLAR: Final = "svcd.dollar"


def path(name: str, number: int) -> str:
    """The path of a file in the execution's folder. number: see `staged`."""
    return arguments.path(JobType.SPARK, name, number, False)


def options(program: str, libs: Sequence[str], folder: str) -> Mapping[str, Sequence[str]]:
    """The options of Spark that name the files, with their URLs. folder: the execution's, a URL."""
    kind = arguments.ending(program)
    is_python = kind == _MODULE
    by_option: dict[str, list[str]] = {}
    if not is_python:
        by_option["spark.yarn.dist.jars"] = [f"{folder}/{START_JAR}"]
        by_option["spark.yarn.dist.files"] = [f"{folder}/{VALUES}"]
    for number, name in enumerate((program, *libs)):
        url, ending = f"{folder}/{path(name, number)}", arguments.ending(name)
        if not number and kind == _SCRIPT:
            continue
        if ending == _JAR:
            option = "spark.yarn.dist.jars"
        elif is_python and number and (ending in _ARCHIVES or name.endswith(_MODULE)):
            option = "spark.yarn.dist.pyFiles"
        else:
            option = "spark.yarn.dist.files"
        if ending != _JAR and (ending not in _ARCHIVES or not is_python):
            url = f"{url}#{fragment(name)}"
        by_option.setdefault(option, []).append(url)
    return by_option


def start_python(program: str, libs: Sequence[str], args: Sequence[str]) -> bytes:
    """The starter of a Python program, with the values."""
    places = [
        (f"{_MODULES}/{name}" if number and name.endswith(_MODULE) else place, name)
        for number, place, name in _places(program, libs)
    ]
    call = f"\n\nstart({program!a}, {[*args]!a}, {places!a})\n"
    return _starter() + call.encode()


def main_values(program: str, libs: Sequence[str], args: Sequence[str]) -> bytes:
    """The values for `arguments.START_CLASS`: only what has no own name yet has a place."""
    pairs = [(place, name) for _, place, name in _places(program, libs) if place != name]
    return values(pairs, args)


def sql_values(variables: Mapping[str, str]) -> bytes:
    """The values for `SQL_CLASS`."""
    words = {_DOLLAR: "$"}
    words |= {n: value.replace("${", f"${{{_DOLLAR}}}{{") for n, value in variables.items()}
    return "".join(f"{name}\0{value}\0" for name, value in words.items()).encode()


def _places(program: str, libs: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """Each file: its number, the name under which a container has it, and its own name."""
    is_python = arguments.ending(program) == _MODULE
    for number, name in enumerate((program, *libs)):
        ending = arguments.ending(name)
        searched = ending == _JAR or (is_python and ending in _ARCHIVES)
        yield number, path(name, number) if searched else name, name


@functools.cache
def _starter() -> bytes:
    return resources.files("svcd.workflow").joinpath("runner/svcd_start.py").read_bytes()
