"""The Oozie action of a Spark job: what the class SubmitSpark of the image reads. Pure.

SubmitSpark runs in the launcher, submits the program to YARN in cluster mode, and waits for its
end. The program and its files lie in the execution's folder, beside `lib/`, so they are not on the
launcher's class path. YARN reads them there by their URLs.

Note: configurations. A name that begins with `spark.` goes to Spark. Any other name is an option of
Hadoop, which Spark takes with `spark.hadoop.` before it. SubmitSpark moves the passwords of the
object store into a credential provider, a file in the execution's folder.

Note: a script in SQL has no arguments. Its data sources and parameters are variables, which Spark
replaces itself: `${INPUT}`, `${OUTPUT}`, and the names of the parameters.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from attrs import field, frozen

from svcd.model.choices import listed
from svcd.model.cluster import Cluster
from svcd.model.job import JobConfigs
from svcd.workflow.decide import arguments, spark_values, stalls
from svcd.workflow.decide.arguments import (
    START_CLASS,
    START_JAR,
    START_PYTHON,
    VALUES,
    start_jar,
)
from svcd.workflow.decide.engine_text import quoted
from svcd.workflow.decide.job_configs import shown
from svcd.workflow.decide.job_types import MAIN_CLASS, SPARK_ARGUMENTS

SUBMIT_CLASS: Final = "org.svcd.spark.SubmitSpark"
FOLDER: Final = "svcdFolder"
"""The submission property with the URL of the execution's folder."""
ENDINGS: Final = (".jar", ".py", ".sql")
"""The endings of the file names of programs."""

_WORKER: Final = "nodemanager"
_SPARK: Final = "spark"
"""The process that starts programs, and the folder of Spark in the software of a machine."""
_EXPLICIT: Final = "explicit"
_NO_FILE: Final = "spark-internal"
"""Spark's word for a program whose class is among the jars."""
_TYPE: Final = "spark.yarn.applicationType"
"""The type of the application in YARN: svcd and SubmitSpark find a job's application by it."""
_RESERVED: Final = frozenset(
    {
        "spark.master",
        "spark.submit.deployMode",
        _TYPE,
        "spark.yarn.stagingDir",
        "spark.yarn.submit.waitAppCompletion",
    }
)
_VARIABLE: Final = re.compile(r"[^\s:}]+\Z")
_OTHERS: Final = ("spark.", "svcd.")


@frozen(kw_only=True)
class Program:
    """The program of a job without faults, and what it gets.

    file: its name. main_class: of a .jar. places: the URLs of the data sources, by their variables.
    """

    file: str
    main_class: str
    libs: Sequence[str]
    places: Mapping[str, str]
    params: Mapping[str, str] = field(repr=False)
    args: Sequence[str] = field(repr=False)
    is_explicit: bool


def ending(name: str) -> str:
    """`.jar`, `.py` or `.sql`; "" for any other name."""
    found = arguments.ending(name)
    return found if found in ENDINGS else ""


def main_faults(mains: Sequence[str]) -> Iterator[str]:
    """Faults of the names of a job's main binaries, with their JSON paths."""
    if len(mains) > 1:
        yield "$.mains: a Spark job has one main binary, its program; give the others in libs"
    elif mains and not ending(mains[0]):
        yield (
            f"$.mains[0]: the program of a Spark job is a .jar, a .py or a .sql file, by the end of"
            f" its name: rename the job binary {shown(mains[0])}"
        )


def image_fault(cluster: Cluster) -> str:
    """The lack of Spark in the software of a machine, as svcd read it there; "" without one.

    Any worker may be the one that starts the program.
    """
    for group in cluster.node_groups:
        for instance in group.instances if _WORKER in group.node_processes else ():
            facts = instance.facts
            if facts is not None and facts.software and _SPARK not in facts.software:
                return (
                    f"the software of {instance.instance_name} has no Spark: make an image with"
                    f" svcd image build {cluster.plugin_name} {facts.prefix}, and a cluster of it"
                )
    return ""


def config_faults(mains: Sequence[str], configs: JobConfigs) -> Iterator[str]:
    """Faults of `job_configs` that depend on the program, with their JSON paths."""
    kind = ending(mains[0]) if mains else ""
    main_class = configs.configs.get(MAIN_CLASS)
    if kind == ".jar" and not (isinstance(main_class, str) and main_class.strip()):
        yield (
            f"$.job_configs.configs: a Spark job with a .jar needs {MAIN_CLASS}: the class with"
            " main()"
        )
    if kind in (".py", ".sql") and MAIN_CLASS in configs.configs:
        yield f'$.job_configs.configs["{MAIN_CLASS}"]: only a .jar has a main class, no {kind} file'
    if configs.configs.get(SPARK_ARGUMENTS, _EXPLICIT) != _EXPLICIT:
        yield (
            f'$.job_configs.configs["{SPARK_ARGUMENTS}"]: expected {_EXPLICIT}: the program then'
            " gets only its own args, and not the data sources before them"
        )
    if kind == ".sql" and configs.args:
        yield "$.job_configs.args: a .sql program takes no args; it takes params, as variables"
    if kind in (".jar", ".py") and configs.params:
        yield f"$.job_configs.params: a {kind} program takes no params; it takes args"
    for name in configs.params if kind == ".sql" else ():
        if not _VARIABLE.match(name):
            yield (
                f"$.job_configs.params: the name {shown(name)} cannot be written as a variable,"
                " ${NAME}: use no white space, : and }"
            )
        elif name.startswith(_OTHERS):
            yield (
                f"$.job_configs.params: the name {shown(name)} is that of a setting: give settings"
                " of Spark in configs, and the variable another name"
            )
    for name in sorted(_RESERVED.intersection(configs.configs)):
        yield (
            f'$.job_configs.configs["{name}"]: svcd sets this configuration itself, to run a Spark'
            " job in YARN's cluster mode and to find its application; remove it"
        )


def action(program: Program, options: Mapping[str, str]) -> tuple[Mapping[str, str], Sequence[str]]:
    """The configuration and the arguments of the action of a program.

    options: configurations of caller and object store.
    """
    kind = ending(program.file)
    configs = {_named(name): value for name, value in options.items()}
    folder = f"${{{FOLDER}}}"
    for option, urls in spark_values.options(program.file, program.libs, folder).items():
        configs[option] = ",".join([*urls, *([configs[option]] if configs.get(option) else [])])
    configs["svcd.spark.folder"] = folder
    configs[_TYPE] = stalls.SPARK  # the cluster's own configuration may have another one
    configs["svcd.spark.main"] = _NO_FILE
    configs.setdefault("spark.app.name", program.main_class or _title(program.file))
    if kind == ".py":
        configs["svcd.spark.main"] = f"{folder}/{START_PYTHON}"
        return configs, []
    if kind == ".jar":
        configs["svcd.spark.class"] = START_CLASS
        return configs, [program.main_class]
    configs["svcd.spark.class"] = spark_values.SQL_CLASS
    return configs, [f"{folder}/{spark_values.path(program.file, 0)}"]


def files(program: Program) -> Mapping[str, bytes]:
    """What the execution's folder holds for the start of a program."""
    kind = ending(program.file)
    args = [*(() if program.is_explicit else program.places.values()), *program.args]
    if kind == ".py":
        return {START_PYTHON: spark_values.start_python(program.file, program.libs, args)}
    if kind == ".sql":
        values = spark_values.sql_values({**program.places, **program.params})
    else:
        values = spark_values.main_values(program.file, program.libs, args)
    return {VALUES: values, START_JAR: start_jar()}


def _title(name: str) -> str:
    """The name of a file as that of an application, quoted for the engine."""
    return quoted("".join(character if character.isprintable() else "?" for character in name))


def _named(name: str) -> str:
    """The name under which the action has a configuration."""
    return name if name.startswith(("spark.", "oozie.")) else f"spark.hadoop.{name}"


HIVE: Final = (
    "$.type: svcd runs no Hive jobs: for a script in SQL use a job of type Spark whose main binary"
    f" ends in .sql; there are {listed(ENDINGS)} programs of Spark"
)
