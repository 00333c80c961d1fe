"""The Oozie action of a Spark job: what the class SubmitSpark of the image reads. Pure.

SubmitSpark runs in the launcher, submits the program to YARN in cluster mode, and waits for its
end. The program and its files lie in the execution's folder, beside `lib/`, so they are not on the
launcher's class path. YARN reads them there by their URLs.

Note: configurations. A name that begins with `spark.` goes to Spark. Any other name is an option of
Hadoop, which Spark takes with `spark.hadoop.` before it. SubmitSpark moves the passwords of the
object store into a credential provider, a file in the execution's folder.

Note: a script in SQL has no arguments. Its data sources and parameters are variables, which Spark
replaces itself: `${INPUT}`, `${OUTPUT}`, and the names of the parameters. Spark does so in the
value of a variable, too, and puts in nothing for a variable without a value.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import PurePath
from typing import Final

from attrs import frozen

from svcd.model.choices import listed
from svcd.model.cluster import Cluster
from svcd.model.job import DataSource, JobConfigs
from svcd.workflow.decide import stalls
from svcd.workflow.decide.job_configs import MAIN_CLASS, SPARK_ARGUMENTS, shown

SUBMIT_CLASS: Final = "org.svcd.spark.SubmitSpark"
SQL_CLASS: Final = "org.svcd.spark.RunSql"
FOLDER: Final = "svcdFolder"
"""The submission property with the URL of the execution's folder."""
ENDINGS: Final = (".jar", ".py", ".sql")
"""The endings of the file names of programs."""

_WORKER: Final = "nodemanager"
_SPARK: Final = "spark"
"""The process that starts programs, and the folder of Spark in the software of a machine."""
_EXPLICIT: Final = "explicit"
_NO_FILE: Final = "spark-internal"
"""Spark's word for a program whose class is in the image."""
_PYTHON: Final = frozenset({".py", ".zip", ".egg"})
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
_VARIABLE: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\Z")


@frozen(kw_only=True)
class Action:
    """configuration, arguments: of the action."""

    configuration: Mapping[str, str]
    arguments: Sequence[str]


def ending(name: str) -> str:
    """`.jar`, `.py` or `.sql`; "" for any other name."""
    found = PurePath(name).suffix.lower()
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
                " ${NAME}: use letters, digits and _"
            )
    for name in sorted(_RESERVED.intersection(configs.configs)):
        yield (
            f'$.job_configs.configs["{name}"]: svcd sets this configuration itself, to run a Spark'
            " job in YARN's cluster mode and to find its application; remove it"
        )


def source_faults(mains: Sequence[str], sources: Mapping[str, DataSource | None]) -> Iterator[str]:
    """Data sources that a script in SQL cannot use. sources: by the field of the request."""
    for key, source in sources.items() if mains and ending(mains[0]) == ".sql" else ():
        if source is not None and "${" in source.url:
            yield (
                f"$.{key}: data source {source.name}: its URL contains ${{, which begins a variable"
                " in a .sql program; rename it or use a .py program"
            )


def action(
    mains: Sequence[str],
    libs: Sequence[str],
    places: Mapping[str, str],
    params: Mapping[str, str],
    args: Sequence[str],
    options: Mapping[str, str],
) -> Action:
    """The action of a job without faults. places: URLs of the data sources, by their variables.

    mains, libs, places: quoted for the engine. options: configurations of caller and object store.
    """
    program, kind = mains[0], ending(mains[0])
    explicit = SPARK_ARGUMENTS in options
    own = {name: value for name, value in options.items() if not name.startswith("edp.")}
    made = {_named(name): value for name, value in own.items()}
    made |= _files(kind, libs, made)
    made["svcd.spark.folder"] = f"${{{FOLDER}}}"
    made[_TYPE] = stalls.SPARK  # the cluster's own configuration may have another one
    if kind == ".sql":
        variables = {**places, **params}
        made |= {f"spark.svcd.variable.{name}": value for name, value in variables.items()}
        made |= {"svcd.spark.main": _NO_FILE, "svcd.spark.class": SQL_CLASS}
        made.setdefault("spark.app.name", program)
        return Action(configuration=made, arguments=[_url(program)])
    made["svcd.spark.main"] = _url(program)
    if kind == ".jar":
        made["svcd.spark.class"] = options[MAIN_CLASS]
    return Action(configuration=made, arguments=[*(() if explicit else places.values()), *args])


def _named(name: str) -> str:
    """The name under which the action has a configuration."""
    return name if name.startswith(("spark.", "oozie.")) else f"spark.hadoop.{name}"


def _files(kind: str, libs: Sequence[str], options: Mapping[str, str]) -> Mapping[str, str]:
    """The options that name the libraries, after those that the caller names."""
    found: dict[str, list[str]] = {}
    for name in libs:
        suffix = PurePath(name).suffix.lower()
        if suffix == ".jar":
            option = "spark.jars"
        elif kind == ".py" and suffix in _PYTHON:
            option = "spark.submit.pyFiles"
        else:
            option = "spark.files"
        found.setdefault(option, [options[option]] if options.get(option) else [])
        found[option].append(_url(name))
    return {option: ",".join(urls) for option, urls in found.items()}


def _url(name: str) -> str:
    return f"${{{FOLDER}}}/{name}"


HIVE: Final = (
    "$.type: svcd runs no Hive jobs: for a script in SQL use a job of type Spark whose main binary"
    f" ends in .sql; there are {listed(ENDINGS)} programs of Spark"
)
