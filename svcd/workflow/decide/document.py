"""The workflow definition and the submission properties of one execution. Pure, deterministic.

A definition has one action node between start and end, and a kill node with the action's error.
svcd quotes its own values (urls, credentials, file names) for the engine's expression language. It
does not quote the caller's values, so that configurations can use `${nameNode}` and the like.

Note: names of both generations. A caller may describe a map-reduce job with the classic names of
the interface's hints or with today's names; Hadoop accepts both. This module adds two things that
Hadoop does not do for a job of the engine. It turns on the new-API switches, which are off by
default, when the caller names a new-API class. It drops an empty hint, because Hadoop refuses an
empty class of the other API.

Note: refused at once. `workflow` decides whether svcd can write a definition. svcd calls it before
it accepts an execution and again at the start. So svcd refuses a faulty request to the caller, with
the JSON paths, and no fault of the request is left for later. `properties` holds only values that
`workflow` has checked.

Note: one attempt. YARN would restart a launcher that died. The second attempt does not know the
children of the first one: it searches only for applications younger than itself. Then two jobs run
at a time, and the second finds the output of the first. So each launcher has one attempt, and
svcd kills the children of a dead one. The action holds the number of attempts, because
without it Oozie takes the number from `mapreduce.map.maxattempts`.

Source: Oozie 5.2.1, workflow schema 0.5, shell-action 0.3 (element order is part of the schema).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import islice
from typing import Final

from attrs import field, frozen

from svcd.model import small_jobs
from svcd.model.ids import ExecutionId
from svcd.model.job import DataSource, JobConfigs, JobType
from svcd.model.redaction import listed, named
from svcd.model.secret import Secret
from svcd.model.template import Configs
from svcd.model.xml import content
from svcd.ports.engine import Endpoints
from svcd.workflow.decide import object_store, pig_job, spark_job
from svcd.workflow.decide.arguments import (
    LIB,
    START,
    START_CLASS,
    START_JAR,
    VALUES,
    args_of,
    java_values,
    links,
    path,
    staged,
    start_jar,
    start_script,
    text,
    texts,
)
from svcd.workflow.decide.data_urls import input_property, pig_parameter
from svcd.workflow.decide.engine_text import quoted, untrimmed
from svcd.workflow.decide.job_configs import (
    ATTEMPTS,
    ENGINES_OWN,
    MOST_FAULTS,
    source_faults,
    xml_fault,
)
from svcd.workflow.decide.job_credentials import Logins
from svcd.workflow.decide.job_types import (
    JAVA_OPTS,
    MAIN_CLASS,
    SPARK_ARGUMENTS,
    STREAMING_MAPPER,
    STREAMING_REDUCER,
)
from svcd.workflow.decide.object_store import ObjectStoreAccess
from svcd.workflow.decide.rules import config_faults

SCHEMA: Final = "uri:oozie:workflow:0.5"
SHELL_SCHEMA: Final = "uri:oozie:shell-action:0.3"
_INPUT_NAMES: Final = ("mapred.input.dir", "mapreduce.input.fileinputformat.inputdir")
_OUTPUT_NAMES: Final = ("mapred.output.dir", "mapreduce.output.fileoutputformat.outputdir")
_NEW_MAP: Final = ("mapreduce.map.class", "mapreduce.job.map.class")
_NEW_REDUCE: Final = ("mapreduce.reduce.class", "mapreduce.job.reduce.class")
_EMPTY_IS_UNSET: Final = frozenset(
    {
        *_INPUT_NAMES,
        *_OUTPUT_NAMES,
        *_NEW_MAP,
        *_NEW_REDUCE,
        "mapred.mapper.class",
        "mapred.reducer.class",
        "mapred.mapoutput.key.class",
        "mapred.mapoutput.value.class",
        "mapred.output.key.class",
        "mapred.output.value.class",
        "mapred.jar",
        "mapred.job.name",
    }
)
_STEP_PREFIXES: Final = ("oozie.launcher.", "oozie.action.")
_ONE_ATTEMPT: Final = {ATTEMPTS: "1"}

MOST_SECRETS: Final = 100
"""Values of one execution that are secrets by their names."""
MOST_CHARACTERS: Final = 100_000
"""Largest definition that the engine accepts by default."""
MOST_CHARACTERS_OPTION: Final = "oozie.service.WorkflowAppService.WorkflowDefinitionMaxLength"


class DocumentError(Exception):
    """svcd cannot write the definition. args[0]: one line for each fault, with its JSON path."""


@frozen(kw_only=True)
class Work:
    """The input of a definition.

    project: the tenant whose object store is used. mains, libs: names of the staged files, in the
    order of the job. logins: at the object store. most_characters: limit of the definition; None
    when unknown.
    """

    execution_id: ExecutionId
    type: JobType
    project: str
    mains: tuple[str, ...] = ()
    libs: tuple[str, ...] = ()
    input: DataSource | None = None
    output: DataSource | None = None
    configs: JobConfigs = field(factory=JobConfigs)
    object_store: ObjectStoreAccess | None = None
    logins: Logins = field(factory=dict, repr=False)
    most_characters: int | None = None


def workflow(work: Work) -> bytes:
    """The workflow definition. Raises DocumentError."""
    sources = {"input_id": work.input, "output_id": work.output}
    faults = [
        *islice(config_faults(work.type, work.mains, work.configs), MOST_FAULTS),
        *source_faults(sources),
    ]
    if work.type is JobType.SPARK:
        faults += spark_job.main_faults(work.mains)
    if faults:
        raise DocumentError("\n".join(faults))
    secrets = len(secrets_of([], work.configs))
    if secrets > MOST_SECRETS:
        raise DocumentError(
            f"$.job_configs: {secrets} values are secrets by their names, at most {MOST_SECRETS}"
            " are allowed, because svcd removes each from all that the engine shows; put the"
            " others into a file that the job reads"
        )
    body = "".join(
        [
            f'<workflow-app xmlns="{SCHEMA}" name="svcd-{_xml(work.execution_id)}">',
            '<start to="job-node"/><action name="job-node">',
            _action(work),
            '<ok to="end"/><error to="fail"/></action>',
            '<kill name="fail"><message>${wf:errorMessage(wf:lastErrorNode())}</message></kill>',
            '<end name="end"/></workflow-app>',
        ]
    )
    length = len(body.encode("utf-16-le")) // 2
    if work.most_characters is not None and length > work.most_characters:
        raise _too_long(work.most_characters)
    return body.encode()


def further_files(work: Work) -> Mapping[str, bytes]:
    """The files of the execution's folder beside the definition and the job's own files."""
    files, args = (*work.mains, *work.libs), args_of(work.configs)
    if work.type is JobType.SHELL:
        return {START: start_script(files, args, texts(work.configs.params))}
    if work.type is JobType.JAVA:
        return {VALUES: java_values(files, args), f"{LIB}{START_JAR}": start_jar()}
    if work.type is JobType.PIG:
        params = {**_places(work, pig_parameter), **texts(work.configs.params)}
        values = pig_job.values(work.mains[0], args, params)
        return {VALUES: values, f"{LIB}{START_JAR}": start_jar()}
    if work.type is JobType.SPARK:
        return spark_job.files(_program(work))
    return {}


def most_characters(configs: Sequence[Configs]) -> int:
    """The largest definition for an engine with these options; the last option wins."""
    most = MOST_CHARACTERS
    for options in configs:
        for target in options.values():
            value = str(target.get(MOST_CHARACTERS_OPTION, ""))
            if value.isdecimal() and len(value) < 10:
                most = int(value)
    return most


def _too_long(most: int) -> DocumentError:
    return DocumentError(
        f"$.job_configs: the workflow definition would have more than {most} characters, the limit "
        "of the cluster's engine; move long values into a file"
    )


def properties(work: Work, endpoints: Endpoints, folder: str) -> Mapping[str, str]:
    """The properties of a submit. folder: the application's, an absolute path in HDFS."""
    mine = {
        "oozie.use.system.libpath": "true",
        **{
            name: text(value)
            for name, value in work.configs.configs.items()
            if name.startswith("oozie.") and name not in ENGINES_OWN
        },
        "jobTracker": endpoints.resource_manager,
        "nameNode": endpoints.name_node,
        "user.name": endpoints.user,
        "oozie.wf.application.path": f"{endpoints.name_node}{folder}/workflow.xml",
        "oozie.wf.external.id": work.execution_id,
    }
    if work.type is JobType.SPARK:
        mine[spark_job.FOLDER] = f"{endpoints.name_node}{folder}"
    return {name: mine[name] for name in sorted(mine)}


def secrets_of(
    sources: Sequence[DataSource | None], configs: JobConfigs | None = None
) -> Sequence[Secret]:
    """The secrets in the definition, which the engine's record holds too.

    These are the passwords of accounts, and the secrets in the caller's configurations.
    """
    secrets = [Secret(s.credentials.password) for s in sources if s is not None and s.credentials]
    if configs is not None:
        args = configs.args
        secrets += [*named(configs.configs), *named(configs.params)]
        secrets += named(args) if isinstance(args, Mapping) else listed(args)
    return secrets


def _action(work: Work) -> str:
    match work.type:
        case JobType.JAR | JobType.MAP_REDUCE:
            return _map_reduce(work)
        case JobType.PIG:
            return _pig(work)
        case JobType.JAVA:
            return _java(work)
        case JobType.SHELL:
            return _shell(work)
        case JobType.SPARK:
            return _spark(work)
        case _:
            raise DocumentError(f"$: the workflow engine cannot run jobs of type {work.type}")


_NODES: Final = "<job-tracker>${jobTracker}</job-tracker><name-node>${nameNode}</name-node>"


def _map_reduce(work: Work) -> str:
    given = _callers(work)
    options = dict(_object_store(work))
    for source, names, written in (
        (work.input, _INPUT_NAMES, input_property),
        (work.output, _OUTPUT_NAMES, str),
    ):
        if source is not None and not any(name in given for name in names):
            options[names[0]] = quoted(written(source.url))
    for names, old, switch in (
        (_NEW_MAP, "mapred.mapper.class", "mapred.mapper.new-api"),
        (_NEW_REDUCE, "mapred.reducer.class", "mapred.reducer.new-api"),
    ):
        if any(name in given for name in names) and old not in given:
            options[switch] = "true"
    mapper = work.configs.configs.get(STREAMING_MAPPER)
    reducer = work.configs.configs.get(STREAMING_REDUCER)
    streaming = ""
    if mapper is not None and reducer is not None:
        streaming = (
            f"<streaming><mapper>{_xml(text(mapper))}</mapper>"
            f"<reducer>{_xml(text(reducer))}</reducer></streaming>"
        )
        options["stream.addenvironment"] = "PYTHONPATH=."  # the program links to another folder
    elif mapper is not None or reducer is not None:
        raise DocumentError(
            f"$.job_configs.configs: {STREAMING_MAPPER} and {STREAMING_REDUCER} "
            "must be given together; cat passes lines on"
        )
    configuration = _configuration({**options, **_apart(given), **given, **_ONE_ATTEMPT})
    files = "".join(f"<file>{link}</file>" for link in links((*work.mains, *work.libs)))
    return f"<map-reduce>{_NODES}{streaming}{configuration}{files}</map-reduce>"


def _pig(work: Work) -> str:
    if not work.mains:
        raise DocumentError("$: a Pig job needs a main binary: the script")
    configuration = _configuration({**_configs(work), pig_job.MAIN: pig_job.START_CLASS})
    files = [f"{VALUES}#{VALUES}", *links((*work.mains, *work.libs))]
    return "".join(
        [
            f"<pig>{_NODES}{configuration}",
            f"<script>{path(JobType.PIG, work.mains[0], 0, True)}</script>",
            *(f"<file>{file}</file>" for file in files),
            "</pig>",
        ]
    )


def _places(work: Work, written: Callable[[str], str]) -> Mapping[str, str]:
    """The URLs of the data sources, written for the program, by the names of their variables."""
    sources = (("INPUT", work.input), ("OUTPUT", work.output))
    return {name: written(source.url) for name, source in sources if source is not None}


def _java(work: Work) -> str:
    main = work.configs.configs.get(MAIN_CLASS)
    if not isinstance(main, str) or not main.strip():
        raise DocumentError(
            f"$.job_configs.configs: a Java job needs {MAIN_CLASS}: the class with main()"
        )
    opts = work.configs.configs.get(JAVA_OPTS)
    return "".join(
        [
            f"<java>{_NODES}{_configuration(_configs(work))}",
            f"<main-class>{START_CLASS}</main-class>",
            "" if opts is None else f"<java-opts>{_xml(text(opts))}</java-opts>",
            f"<arg>{_xml(text(main))}</arg><file>{VALUES}#{VALUES}</file></java>",
        ]
    )


def _shell(work: Work) -> str:
    if not work.mains:
        raise DocumentError("$: a Shell job needs a main binary: the script")
    files = [START, *(staged(number) for number in range(len(work.mains) + len(work.libs)))]
    return "".join(
        [
            f'<shell xmlns="{SHELL_SCHEMA}">{_NODES}',
            _configuration(_configs(work)),
            f"<exec>sh</exec><argument>{START}</argument>",
            *(f"<file>{name}#{name}</file>" for name in files),
            "</shell>",
        ]
    )


def _spark(work: Work) -> str:
    configuration, arguments = spark_job.action(_program(work), _configs(work))
    args = "".join(f"<arg>{_xml(argument)}</arg>" for argument in arguments)
    main = f"<main-class>{spark_job.SUBMIT_CLASS}</main-class>"
    return f"<java>{_NODES}{_configuration(configuration)}{main}{args}</java>"


def _program(work: Work) -> spark_job.Program:
    return spark_job.Program(
        file=work.mains[0],
        main_class=text(work.configs.configs.get(MAIN_CLASS, "")),
        libs=work.libs,
        places=_places(work, str),
        params=texts(work.configs.params),
        args=args_of(work.configs),
        is_explicit=SPARK_ARGUMENTS in work.configs.configs,
    )


def _object_store(work: Work) -> dict[str, str]:
    if work.object_store is None:
        return {}
    sources, given = (work.input, work.output), work.configs.configs
    return object_store.options(work.object_store, work.project, sources, given, work.logins)


def _configs(work: Work) -> dict[str, str]:
    given = _callers(work)
    return {**_object_store(work), **_apart(given), **given, **_ONE_ATTEMPT}


def _apart(given: Mapping[str, str]) -> dict[str, str]:
    """The option by which tasks get containers of their own, for a job whose options need it."""
    return {small_jobs.ENABLED: "false"} if small_jobs.keeps_tasks_apart(given) else {}


def _callers(work: Work) -> dict[str, str]:
    """The caller's configurations that go into the action."""
    return {
        name: untrimmed(text(value))
        for name, value in work.configs.configs.items()
        if not name.startswith("edp.")
        and (not name.startswith("oozie.") or name.startswith(_STEP_PREFIXES))
        and not (name in _EMPTY_IS_UNSET and value == "")
    }


def _configuration(configs: Mapping[str, str]) -> str:
    inner = "".join(
        f"<property><name>{_xml(name)}</name><value>{_xml(configs[name])}</value></property>"
        for name in sorted(configs)
    )
    return f"<configuration>{inner}</configuration>"


def _xml(text: str) -> str:
    wrong = xml_fault(text)
    if wrong:
        raise DocumentError(f"$: a value {wrong}")
    return content(text)
